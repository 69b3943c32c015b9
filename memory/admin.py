"""People's memory in the administration: a list of people by numbers, and pages that only show behind it."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, URLResolver, include, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from memory import wording
from memory.models import Memory


class Healthy(admin.SimpleListFilter):
    """People whose folder needs somebody to look at it."""

    title = _("health")
    parameter_name = "healthy"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Healthy")), ("no", _("Not healthy"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        match self.value():
            case "yes":
                return queryset.filter(facts__trouble="")
            case "no":
                return queryset.exclude(facts__trouble="").exclude(facts=None)
            case _:
                return queryset


@admin.register(Memory)
class MemoryAdmin(admin.ModelAdmin):
    """Whoever has `memory.view_memory` may look; nobody may add, change or delete anything here."""

    list_display = (
        "name",
        "email",
        "slices",
        "strands",
        "last_activity",
        "dry",
        "damaged",
        "unfinished",
        "size",
        "health",
    )
    list_display_links = None
    list_filter = (Healthy,)
    list_select_related = ("facts",)
    list_per_page = 50
    search_fields = ("email", "called")
    ordering = ("email",)
    actions = None
    change_list_template = "admin/memory/memory/list.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """The list and what lies behind it; Django's own pages of one object, which can change it, are not there."""
        people = self.admin_site.admin_view(require_safe(self.changelist_view))
        return [
            path("", people, name="memory_memory_changelist"),
            path("", include("memory.views.administration.urls")),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return super().changelist_view(request, {"title": _("Memory")} | (extra_context or {}))

    @admin.display(description=_("name"), ordering="called")
    def name(self, person: Memory) -> str:
        return format_html('<a href="{}"><bdi>{}</bdi></a>', reverse("admin:memory_person", args=[person.pk]), person)

    @admin.display(description=_("slices"), ordering=F("facts__slices").desc(nulls_last=True))
    def slices(self, person: Memory) -> Any:
        return _fact(person, "slices")

    @admin.display(description=_("strands"), ordering=F("facts__strands").desc(nulls_last=True))
    def strands(self, person: Memory) -> Any:
        return _fact(person, "strands")

    @admin.display(description=_("last activity"), ordering=F("facts__last_activity").desc(nulls_last=True))
    def last_activity(self, person: Memory) -> Any:
        return _fact(person, "last_activity")

    @admin.display(description=_("dry"), ordering=F("facts__dry").desc(nulls_last=True))
    def dry(self, person: Memory) -> Any:
        return _fact(person, "dry")

    @admin.display(description=_("damaged"), ordering=F("facts__damaged").desc(nulls_last=True))
    def damaged(self, person: Memory) -> Any:
        return _fact(person, "damaged")

    @admin.display(
        description=_("unfinished"),
        ordering=(F("facts__owed") + F("facts__closes") + F("facts__uncommitted")).desc(nulls_last=True),
    )
    def unfinished(self, person: Memory) -> Any:
        return _fact(person, "unfinished")

    @admin.display(description=_("size"), ordering=F("facts__size").desc(nulls_last=True))
    def size(self, person: Memory) -> Any:
        size = _fact(person, "size")
        return None if size is None else filesizeformat(size)

    @admin.display(description=_("health"), ordering="facts__trouble")
    def health(self, person: Memory) -> Any:
        trouble = _fact(person, "trouble")
        if trouble is None:
            return _("not counted yet")
        if not trouble:
            return _("healthy")
        return format_html('<span class="unwell">{}</span>', wording.trouble(trouble).what)


def _fact(person: Memory, name: str) -> Any:
    """One of the numbers, None while nobody has counted."""
    return getattr(getattr(person, "facts", None), name, None)
