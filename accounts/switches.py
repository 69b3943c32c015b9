"""The two switches on every page, language and theme: kept in a cookie, and in the account of who is signed in."""

from django.conf import settings
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from accounts.forms import LanguageForm, ThemeForm

THEME_COOKIE = "theme"


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    return _switch(request, LanguageForm(request.POST), "language", settings.LANGUAGE_COOKIE_NAME)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    return _switch(request, ThemeForm(request.POST), "theme", THEME_COOKIE)


def _switch(request: HttpRequest, form: Form, name: str, cookie: str) -> HttpResponse:
    """Keep one choice and go back to the page; a choice that does not exist changes nothing."""
    response = HttpResponseRedirect(_page_to_return_to(request))
    if form.is_valid():
        choice = form.cleaned_data[name]
        keep_in_cookie(response, cookie, choice)
        if request.user.is_authenticated:
            setattr(request.user, name, choice)
            request.user.save(update_fields=[name])
    return response


def keep_in_cookie(response: HttpResponse, cookie: str, choice: str) -> None:
    """Remember the choice on this device for the pages before signing in."""
    response.set_cookie(
        cookie,
        choice,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
        samesite=settings.LANGUAGE_COOKIE_SAMESITE,
    )


def _page_to_return_to(request: HttpRequest) -> str:
    """`next` when it lies on this server, else the start."""
    wanted = request.POST.get("next", "")
    here = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if here else "/"
