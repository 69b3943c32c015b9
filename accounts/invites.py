"""Invitations: a link for one address that makes one account, with the rights it was meant for.

Only the hash of the link's token is kept. Using it takes its row away inside the transaction that makes the account:
of two visitors at once one takes the row, and the other finds none.
"""

import hashlib
import logging
import secrets
import smtplib
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.models import Invite, Role, User, normal_email

LIFE_DAYS = 7
LONGEST_DAYS = 90

log = logging.getLogger(__name__)


class Spent(Exception):
    """The link has been used, was withdrawn, has expired, or never was one."""


class HasAccount(Exception):
    """There is an account with this address already."""


def are_possible() -> bool:
    """Whether this server takes invited people in; under `closed` accounts are made in the administration alone."""
    return bool(settings.PREVIOUSLY.signup != "closed")


def issue(email: str, *, role: str, by: User | None, now: datetime, days: int = LIFE_DAYS) -> str:
    """A fresh link for this address, as a path on this server; an earlier one stops working. Raises HasAccount."""
    email = normal_email(email)
    if User.objects.filter(email=email).exists():
        raise HasAccount(email)
    token = secrets.token_urlsafe(32)
    found = {"token_hash": _hash(token), "role": role, "by": by, "made_at": now, "expires_at": now + timedelta(days)}
    Invite.objects.update_or_create(email=email, defaults=found)
    return reverse("invited", args=[token])


def mail(email: str, address: str, *, days: int = LIFE_DAYS) -> bool:
    """Send the link, in the server's language; False when this server sends no e-mail, or could not."""
    if not settings.PREVIOUSLY.email_url:
        return False
    with translation.override(settings.LANGUAGE_CODE):
        text = render_to_string("accounts/mail/invited.txt", {"address": address, "days": days})
        subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + _("you are invited")
    try:
        send_mail(subject, text, None, [email])
    except (OSError, smtplib.SMTPException) as error:
        log.warning("an invitation could not be mailed: %s", type(error).__name__)
        return False
    return True


def find(token: str, now: datetime) -> Invite | None:
    """The invitation that this link would use up now."""
    if not are_possible():
        return None
    return Invite.objects.filter(token_hash=_hash(token), expires_at__gt=now).first()


def is_invited(email: str, now: datetime) -> bool:
    """Whether an invitation waits for this address, which somebody else has proved to be the visitor's."""
    return are_possible() and Invite.objects.filter(email=normal_email(email), expires_at__gt=now).exists()


def accept(token: str, *, called: str, password: str, language: str, now: datetime) -> User:
    """The account of the invited person, and the link is spent. Raises Spent; IntegrityError for a used address."""
    with transaction.atomic():
        invite = find(token, now)
        if invite is None or not _take(invite):
            raise Spent
        user = User.objects.create_user(invite.email, password, called=called, language=language, **rights(invite.role))
        # The link came to this address, or an administrator handed it over and vouches for it.
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def take(email: str, now: datetime) -> str:
    """Use up the invitation of an address and give its role; inside the transaction that makes the account.

    Raises Spent.
    """
    invite = Invite.objects.filter(email=normal_email(email), expires_at__gt=now).first()
    if invite is None or not _take(invite):
        raise Spent
    return invite.role


def rights(role: str) -> dict[str, bool]:
    """What an account of this role may do, as fields of it."""
    return dict.fromkeys(("is_staff", "is_superuser"), role == Role.ADMINISTRATOR)


def _take(invite: Invite) -> bool:
    taken, _ = Invite.objects.filter(pk=invite.pk, token_hash=invite.token_hash).delete()
    return bool(taken)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
