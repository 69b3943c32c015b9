"""Who may make an account: the one sign-up policy, asked by the sign-up page and by single sign-on alike."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms import BaseForm
from django.http import HttpRequest
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from accounts import approving, invites
from accounts.models import Role, User, normal_email

LONGEST_EMAIL = 254


def signup_is_open() -> bool:
    """Whether strangers may make an account: under `open` one that can talk, under `approve` one that waits."""
    return settings.PREVIOUSLY.signup in ("open", "approve")


def language_of_page() -> str:
    """The language the page was shown in, if it is one of ours: the new account keeps it."""
    language = get_language() or ""
    return language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return signup_is_open()

    def clean_email(self, email: str) -> str:
        cleaned = normal_email(super().clean_email(email))
        if len(cleaned) > LONGEST_EMAIL:
            # SQLite would keep it, PostgreSQL would answer with an error.
            raise ValidationError(_("This address is too long: use one of at most 254 characters."), code="too_long")
        return cleaned

    def save_user(self, request: HttpRequest, user: User, form: BaseForm, commit: bool = True) -> User:
        user.called = form.cleaned_data.get("called", "")
        user.language = language_of_page()
        approving.hold_back(user)
        saved: User = super().save_user(request, user, form, commit)
        return saved


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        email = _proved_email(sociallogin)
        return signup_is_open() or (bool(email) and invites.is_invited(email, timezone.now()))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """The new account, under the policy of the sign-up page; an invitation is used up and gives its role."""
        with transaction.atomic():
            try:
                role = invites.take(_proved_email(sociallogin), timezone.now())
            except invites.Spent as error:
                if not signup_is_open():
                    raise ImmediateHttpResponse(render(request, "account/signup_closed.html", status=403)) from error
                role = Role.PERSON
                approving.hold_back(sociallogin.user)
            for field, value in invites.rights(role).items():
                setattr(sociallogin.user, field, value)
            saved: User = super().save_user(request, sociallogin, form)
        return saved

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        user.called = data.get("name") or data.get("first_name") or user.email.partition("@")[0]
        user.language = language_of_page()
        return user


def _proved_email(sociallogin: Any) -> str:
    """The address that the single sign-on server says it has verified, '' when it says so of none."""
    return next((address.email for address in sociallogin.email_addresses if address.verified), "")
