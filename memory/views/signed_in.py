"""Who is not signed in goes to the sign-in page, unless a script asks: then the page itself says so."""

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase

View = Callable[..., HttpResponseBase]


def signed_in(view: View) -> View:
    """Let only signed-in people in. htmx gets 401, for a redirect would put the sign-in page into the chat."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **named: object) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **named)
        if request.htmx:  # type: ignore[attr-defined]
            return HttpResponse(status=401)
        return redirect_to_login(request.get_full_path())

    return guarded
