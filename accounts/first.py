"""The first administrator, made by a one-time link that only who starts the server can read.

There is never more than one link; a new one makes the old one worthless. Using it takes its row away inside the
transaction that makes the account: of two visitors at once one takes the row, and the other finds none.
"""

import hashlib
import secrets
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.db import transaction
from django.urls import reverse

from accounts.models import FirstLink, User

LIFE_HOURS = 24


class LinkSpent(Exception):
    """The link has been used, has expired, or never was one."""


def administrator_exists() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def is_last_administrator(person: User) -> bool:
    """Whether this person administers the server, and nobody else does."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=person.pk)
    return person.is_superuser and not others.exists()


def issue(now: datetime) -> str:
    """A fresh link, as a path on this server; earlier ones stop working."""
    token = secrets.token_urlsafe(32)
    FirstLink.objects.update_or_create(
        only=1, defaults={"token_hash": _hash(token), "expires_at": now + timedelta(hours=LIFE_HOURS)}
    )
    return reverse("first", args=[token])


def is_good(token: str, now: datetime) -> bool:
    """Whether the link would work now."""
    return FirstLink.objects.filter(token_hash=_hash(token), expires_at__gt=now).exists() and not administrator_exists()


def make_administrator(token: str, *, email: str, called: str, password: str, language: str, now: datetime) -> User:
    """The first administrator, and the link is spent. Raises LinkSpent; django.db.IntegrityError for a used address."""
    with transaction.atomic():
        taken, _ = FirstLink.objects.filter(token_hash=_hash(token), expires_at__gt=now).delete()
        if not taken or administrator_exists():
            raise LinkSpent
        user = User.objects.create_superuser(email, password, called=called, language=language)
        # The operator vouches for the address: there may be no mail server to prove it by.
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
