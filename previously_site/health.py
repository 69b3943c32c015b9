"""/healthz: whether this process answers at all. It tells nothing else, asks no database, and takes any host."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

HEALTHZ = "/healthz"


def healthz(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, for a probe asks by address, over plain http, and would fail the checks on host and scheme."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path_info == HEALTHZ:
            return HttpResponse("ok\n", content_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-store"})
        return get_response(request)

    return middleware
