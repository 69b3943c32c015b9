"""Language and time zone of a request: the account's, else what the cookie or the browser says, else the server's."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from accounts import zones

Handler = Callable[[HttpRequest], HttpResponseBase]


def preferences(get_response: Handler) -> Handler:
    """Middleware in the place of Django's LocaleMiddleware, which knows no accounts."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        user = request.user
        if user.is_authenticated:
            language, zone_name = user.language, user.timezone
        else:
            language, zone_name = translation.get_language_from_request(request), ""
        translation.activate(language)
        request.LANGUAGE_CODE = translation.get_language() or language  # type: ignore[attr-defined]
        if zone_name in zones.names():
            timezone.activate(zone_name)
        else:
            timezone.deactivate()
        response = get_response(request)
        # The view may have changed it: a page that saves a new language is already shown in it.
        response.headers.setdefault("Content-Language", translation.get_language() or language)
        if not user.is_authenticated:
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response

    return middleware
