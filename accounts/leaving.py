"""An account goes, and everything of it: signed-in devices, rows, files.

The order lets nothing come back: first it is noted on disk that the account goes, so that a crash does not leave half
of it; then nobody is signed in with it; then its rows go, after which a late task or page finds nobody and ends; then
the files.
"""

import logging
from typing import Any

from allauth.account.models import EmailAddress
from django import forms
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from accounts.models import Invite, User, normal_email
from memory import access

log = logging.getLogger(__name__)


class LeavingForm(forms.Form):
    """The password again; who has none types the e-mail address."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    email = forms.CharField(
        label=_("Your e-mail address"),
        help_text=_("Your account has no password: type the address instead, to show that you mean it."),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, person: User, **options: Any) -> None:
        super().__init__(*args, **options)
        self._person = person
        del self.fields["email" if person.has_usable_password() else "password"]

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not self._person.check_password(password):
            raise ValidationError(_("This is not your password. Nothing was deleted."), code="password")
        return password

    def clean_email(self) -> str:
        email = normal_email(self.cleaned_data["email"])
        if email != self._person.email:
            raise ValidationError(_("This is not the address of your account. Nothing was deleted."), code="email")
        return email


def leave(person: User) -> None:
    """Delete an account with everything of it. Raises OSError when files resist; the sweep goes on with them then."""
    user_id = str(person.pk)
    access.begin_erasing(user_id)
    finish(user_id)
    log.info("account %s was deleted, with all its files", user_id)


def shut(person: User) -> None:
    """The account has been closed to its person: nobody is signed in with it, and no reply goes on. The files stay."""
    _sign_out_everywhere(str(person.pk))
    access.stop_replies(str(person.pk))
    log.info("account %s was closed", person.pk)


def finish(user_id: str) -> None:
    """Do, or go on with, everything that follows `begin_erasing`."""
    User.objects.filter(pk=user_id).update(is_active=False)
    _sign_out_everywhere(user_id)
    with transaction.atomic():
        # What administrators did to the account is listed by its name.
        kinds = ContentType.objects.get_for_models(User, *User.__subclasses__(), for_concrete_models=False).values()
        LogEntry.objects.filter(content_type__in=kinds, object_id=user_id).delete()
        Invite.objects.filter(email__in=_addresses(user_id)).delete()
        User.objects.filter(pk=user_id).delete()
    access.erase(user_id)


def _addresses(user_id: str) -> list[str]:
    """Every address of the account, in the one spelling."""
    signing_in = User.objects.filter(pk=user_id).values_list("email", flat=True)
    others = EmailAddress.objects.filter(user_id=user_id).values_list("email", flat=True)
    return [normal_email(email) for email in (*signing_in, *others)]


def _sign_out_everywhere(user_id: str) -> None:
    for session in Session.objects.iterator():
        if session.get_decoded().get("_auth_user_id") == user_id:
            session.delete()
