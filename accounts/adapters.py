"""Who may make an account: the one sign-up policy, asked by the sign-up page and by single sign-on alike."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.http import HttpRequest
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from accounts.models import User, normal_email

LONGEST_EMAIL = 254


def signup_is_open() -> bool:
    """Only `open` lets people in by themselves; every other policy is closed to strangers."""
    return bool(settings.PREVIOUSLY.signup == "open")


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
        saved: User = super().save_user(request, user, form, commit)
        return saved


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return signup_is_open()

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        user.called = data.get("name") or data.get("first_name") or user.email.partition("@")[0]
        user.language = language_of_page()
        return user
