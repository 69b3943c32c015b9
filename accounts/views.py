"""The pages about a person: preferences, who looked at their memory, leaving, and making the first administrator."""

import logging

from allauth.core import ratelimit
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts import first, invites, leaving, zones
from accounts.adapters import language_of_page
from accounts.forms import FirstForm, InvitedForm, PreferencesForm
from accounts.switches import THEME_COOKIE, keep_in_cookie

A_PAGE = 50

log = logging.getLogger(__name__)


@login_required
@require_http_methods(["GET", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _preferences(request, PreferencesForm(instance=request.user))
    form = PreferencesForm(request.POST, instance=request.user)
    if not form.is_valid():
        # The form has written the refused values into the person that the page shows.
        request.user.refresh_from_db()
        return _preferences(request, form, status=422)
    person = form.save()
    translation.activate(person.language)
    messages.success(request, _("Saved. It takes effect with your next message."))
    response = redirect("settings")
    keep_in_cookie(response, settings.LANGUAGE_COOKIE_NAME, person.language)
    keep_in_cookie(response, THEME_COOKIE, person.theme)
    return response


def _preferences(request: HttpRequest, form: PreferencesForm, status: int = 200) -> HttpResponse:
    configured = settings.PREVIOUSLY
    context = {
        "form": form,
        "single_sign_on": bool(configured.oidc_issuer),
        "administrators_read": configured.admin_sees_content,
    }
    return render(request, "accounts/preferences.html", context, status=status)


@login_required
@require_safe
def looked(request: HttpRequest) -> HttpResponse:
    """Who opened what of this person's memory, the newest first."""
    opened = request.user.opened.select_related("who").order_by("-at", "-pk")
    page = Paginator(opened, A_PAGE).get_page(request.GET.get("page"))
    return render(request, "accounts/looked.html", {"page": page, "zone": zones.of(request.user)})


@login_required
@require_http_methods(["GET", "POST"])
def leave(request: HttpRequest) -> HttpResponse:
    """Delete the account: what goes, and the password once more."""
    person = request.user
    form = leaving.LeavingForm(request.POST or None, person=person)
    if request.method == "POST" and not ratelimit.consume(request, action="reauthenticate", user=person):
        return render(request, "429.html", status=429)
    if not form.is_valid():
        context = {"form": form, "last": first.is_last_administrator(person)}
        return render(request, "accounts/leave.html", context, status=422 if form.is_bound else 200)
    language = translation.get_language()
    left_files = False
    try:
        leaving.leave(person)
    except OSError:
        log.exception("files of the deleted account %s could not be removed yet", person.pk)
        left_files = True
    logout(request)
    response = render(request, "accounts/left.html", {"left_files": left_files})
    keep_in_cookie(response, settings.LANGUAGE_COOKIE_NAME, language)
    return response


@never_cache
@require_http_methods(["GET", "POST"])
def first_administrator(request: HttpRequest, token: str) -> HttpResponse:
    now = timezone.now()
    if not first.is_good(token, now):
        return _spent(request)
    form = FirstForm(request.POST or None)
    if not form.is_valid():
        return render(request, "accounts/first.html", {"form": form}, status=422 if form.is_bound else 200)
    try:
        person = first.make_administrator(
            token,
            email=form.cleaned_data["email"],
            called=form.cleaned_data["called"],
            password=form.cleaned_data["password"],
            language=language_of_page(),
            now=now,
        )
    except first.LinkSpent:
        return _spent(request)
    except IntegrityError:
        # Somebody signed up with this address since the form looked; the link is still good.
        form.add_error("email", _("There is an account with this address: choose another."))
        return render(request, "accounts/first.html", {"form": form}, status=422)
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    return redirect(settings.LOGIN_REDIRECT_URL)


@never_cache
@require_http_methods(["GET", "POST"])
def invited(request: HttpRequest, token: str) -> HttpResponse:
    """Make the account that an invitation is for."""
    now = timezone.now()
    invite = invites.find(token, now)
    if invite is None:
        return render(request, "accounts/invite_spent.html", status=404)
    form = InvitedForm(request.POST or None, email=invite.email)
    if not form.is_valid():
        context = {"form": form, "invite": invite}
        return render(request, "accounts/invited.html", context, status=422 if form.is_bound else 200)
    try:
        person = invites.accept(token, language=language_of_page(), now=now, **form.cleaned_data)
    except (invites.Spent, IntegrityError):
        # Used a moment ago in another tab, or somebody has made an account of the address since.
        return render(request, "accounts/invite_spent.html", status=404)
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    return redirect(settings.LOGIN_REDIRECT_URL)


def _spent(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/first_spent.html", status=404)
