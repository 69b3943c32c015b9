"""Headers that every page carries."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

Handler = Callable[[HttpRequest], HttpResponseBase]


def content_security_policy(oidc_origin: str) -> str:
    """The policy; a sign-in form may also lead to the single sign-on server, when there is one."""
    return "; ".join(
        (
            "default-src 'self'",
            "img-src 'self' data:",
            "base-uri 'none'",
            f"form-action 'self' {oidc_origin}".rstrip(),
            "frame-ancestors 'none'",
            "object-src 'none'",
        )
    )


def security_headers(get_response: Handler) -> Handler:
    """The content security policy on everything, errors and static files included."""
    policy = content_security_policy(settings.OIDC_ORIGIN)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return middleware


def no_store(get_response: Handler) -> Handler:
    """Pages of a signed-in person stay in no cache, so Back after signing out shows nothing. A stream says its own."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.user.is_authenticated:
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware
