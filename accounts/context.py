"""What every page needs to know of a person's preferences."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from accounts.models import Theme
from accounts.switches import THEME_COOKIE


def preferences(request: HttpRequest) -> dict[str, Any]:
    """What pages show differently.

    `theme` is for the page's root element, so that the first paint is right: the account's, else the cookie's.
    `sends_email` is whether this server can send any.
    """
    user = getattr(request, "user", None)  # an error page may come before anyone is known
    signed_in = user is not None and user.is_authenticated
    theme = user.theme if signed_in else request.COOKIES.get(THEME_COOKIE, "")
    return {
        "theme": theme if theme in Theme.values else Theme.SYSTEM.value,
        "sends_email": bool(settings.PREVIOUSLY.email_url),
    }
