"""Under the policy `approve` an account waits until an administrator lets the person in, who is then told."""

import logging
import smtplib

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.models import User

log = logging.getLogger(__name__)


def hold_back(person: User) -> None:
    """Make a new account wait, if the policy says so; the caller saves it."""
    if settings.PREVIOUSLY.signup == "approve":
        person.is_active = False
        person.awaits_approval = True


def approve(person: User, *, address: str) -> bool:
    """Let the person in and tell them; whether they were told. Nothing happens to one who does not wait."""
    # In one step, so that of two administrators at once only one writes the message.
    if not User.objects.filter(pk=person.pk, awaits_approval=True).update(awaits_approval=False, is_active=True):
        return False
    person.awaits_approval, person.is_active = False, True
    if not settings.PREVIOUSLY.email_url:
        return False
    with translation.override(person.language):
        text = render_to_string("accounts/mail/approved.txt", {"address": address, "called": person.called})
        subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + _("you are let in")
    try:
        send_mail(subject, text, None, [person.email])
    except (OSError, smtplib.SMTPException) as error:
        log.warning("account %s was approved, but could not be told: %s", person.pk, type(error).__name__)
        return False
    return True
