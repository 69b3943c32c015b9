"""Who may open these pages, and that nothing on them can be changed."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from accounts.models import User

View = Callable[..., HttpResponseBase]

PERMISSION = "memory.view_memory"


def only_shows(view: View) -> View:
    """For administrators with the permission, who may only look: anything but GET and HEAD is refused."""
    looked_at = require_safe(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        if not request.user.has_perm(PERMISSION):
            raise PermissionDenied
        return looked_at(request, *args, **named)

    return admin.site.admin_view(guarded)


def opens(view: View) -> View:
    """For a page with somebody's words on it: the view gets that person, and notes that it was opened."""

    @wraps(view)
    def guarded(request: HttpRequest, person_id: Any, *args: Any, **named: Any) -> HttpResponseBase:
        if not settings.PREVIOUSLY.admin_sees_content:
            context = admin.site.each_context(request)
            return render(request, "admin/memory/memory/closed.html", context, status=403)
        return view(request, get_object_or_404(User, pk=person_id), *args, **named)

    return only_shows(guarded)
