"""The administration as a site: Django's, in our words, and shut to whoever has no business there."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext_lazy as _

View = Callable[..., HttpResponseBase]


class Administration(AdminSite):
    site_title = "Previously"
    site_header = _("Administration")
    index_title = _("Administration")
    enable_nav_sidebar = False

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Whoever is signed in and no administrator finds nothing here; a script that is not signed in is told so."""
        inner = super().admin_view(view, cacheable)

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
            if not self.has_permission(request):
                if request.user.is_authenticated:
                    raise Http404
                if request.htmx:  # type: ignore[attr-defined]
                    return HttpResponse(status=401)
            return inner(request, *args, **named)

        return guarded
