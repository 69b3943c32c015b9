"""Headers that every page carries, and the number by which a request is found in the log."""

import re
import secrets
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from previously_site import logs

REQUEST_ID = "X-Request-ID"

Handler = Callable[[HttpRequest], HttpResponseBase]

# What a proxy hands on ends up in every line of the log: letters and digits, and no more of them than a UUID has.
_STRICT = re.compile(r"[0-9A-Za-z-]{8,36}")


def request_id(get_response: Handler) -> Handler:
    """Number each request, or keep the proxy's number if it has the strict form; the answer and log lines carry it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(REQUEST_ID, "")
        number = given if _STRICT.fullmatch(given) else secrets.token_hex(8)
        token = logs.request.set(number)
        try:
            response = get_response(request)
        finally:
            logs.request.reset(token)
        response.headers[REQUEST_ID] = number
        return response

    return middleware


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
