"""How people's memory is, without opening it: one person's numbers, and the health of the server."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from accounts import zones
from memory import health, wording
from memory.models import Memory

from .guard import only_shows
from .links import ReaderLinks


@only_shows
def person(request: HttpRequest, person_id: Any) -> HttpResponse:
    """One person's numbers, and the way to their memory: a reason is asked for first."""
    whose = get_object_or_404(Memory.objects.select_related("facts"), pk=person_id)
    facts = getattr(whose, "facts", None)
    context = admin.site.each_context(request) | {
        "title": whose.called,
        "whose": whose,
        "facts": facts,
        "trouble": wording.trouble(facts.trouble) if facts and facts.trouble else None,
        "links": ReaderLinks(whose),
        "zone": zones.of(request.user),
        "sees_content": settings.PREVIOUSLY.admin_sees_content,
    }
    return render(request, "admin/memory/memory/person.html", context)


@only_shows
def server(request: HttpRequest) -> HttpResponse:
    """What the server needs to remember and to reply, each with its remedy. The model is asked only if wanted."""
    context = admin.site.each_context(request) | {
        "title": _("Health"),
        "findings": health.look(ask_model="model" in request.GET),
        "asked": "model" in request.GET,
    }
    return render(request, "admin/memory/memory/health.html", context)
