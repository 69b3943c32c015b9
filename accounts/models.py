"""Accounts and their preferences. Nothing here holds a word of what people say."""

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.names import LONGEST, clean_name


def default_language() -> str:
    """The server's language, for an account made without a page."""
    language: str = settings.PREVIOUSLY.language
    return language


def normal_email(email: str) -> str:
    """The one spelling of an address, by which an account is found: trimmed and in small letters."""
    return email.strip().lower()


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """A saved account; without a password nobody can sign in with one. Raises ValueError without an address."""
        if not email.strip():
            raise ValueError("An account needs an e-mail address.")
        user = self.model(email=email, **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, **(fields | {"is_staff": True, "is_superuser": True}))

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=normal_email(username or ""))


class Theme(models.TextChoices):
    SYSTEM = "system", _("As the system has it")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class Effort(models.TextChoices):
    USUAL = "", _("As the model has it")
    LOW = "low", _("Little")
    MEDIUM = "medium", _("Some")
    HIGH = "high", _("Much")


class User(AbstractBaseUser, PermissionsMixin):
    """A person. The UUID names the memory folder, so nothing that a person can choose ever becomes a path."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(_("e-mail address"), unique=True)
    called = models.CharField(_("name to be called"), max_length=LONGEST)
    timezone = models.CharField(_("time zone"), max_length=64, blank=True)  # '' until the person chooses one
    language = models.CharField(_("language"), max_length=10, choices=settings.LANGUAGES, default=default_language)
    theme = models.CharField(_("theme"), max_length=6, choices=Theme.choices, default=Theme.SYSTEM)
    slice_minutes = models.PositiveSmallIntegerField(
        _("minutes in a slice"), default=30, validators=[MinValueValidator(5), MaxValueValidator(120)]
    )
    slice_turns = models.PositiveSmallIntegerField(
        _("turns in a slice"), default=50, validators=[MinValueValidator(5), MaxValueValidator(100)]
    )
    model = models.CharField(_("model"), max_length=200, blank=True)  # '' is the server's own choice
    effort = models.CharField(_("effort"), max_length=6, choices=Effort.choices, default=Effort.USUAL, blank=True)
    is_active = models.BooleanField(_("may sign in"), default=True)
    awaits_approval = models.BooleanField(_("waits to be let in"), default=False)
    is_staff = models.BooleanField(_("may open the administration"), default=False)
    date_joined = models.DateTimeField(_("joined"), default=now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["called"]

    class Meta:
        verbose_name = _("person")
        verbose_name_plural = _("people")

    def __str__(self) -> str:
        return self.called or self.email

    def clean(self) -> None:
        super().clean()
        self._normalise()

    def save(self, *args: Any, **options: Any) -> None:
        # At this door too, so that no path past the forms can make a second account of one address.
        self._normalise()
        super().save(*args, **options)

    def get_full_name(self) -> str:
        return self.called

    def get_short_name(self) -> str:
        return self.called

    def _normalise(self) -> None:
        self.email = normal_email(self.email)
        self.called = clean_name(self.called)


class FirstLink(models.Model):
    """The one link that may make the first administrator: one row or none. Only the hash of its token is kept."""

    only = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    token_hash = models.CharField(max_length=64, editable=False)
    expires_at = models.DateTimeField(editable=False)


class Role(models.TextChoices):
    PERSON = "person", _("Person")
    ADMINISTRATOR = "administrator", _("Administrator")


class Invite(models.Model):
    """One address that may make one account by a link. Only the hash of the link's token is kept."""

    email = models.EmailField(_("e-mail address"), unique=True)
    role = models.CharField(_("role"), max_length=13, choices=Role.choices, default=Role.PERSON)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    made_at = models.DateTimeField(_("made"), editable=False)
    expires_at = models.DateTimeField(_("works until"), editable=False)
    by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, editable=False, related_name="+", verbose_name=_("invited by")
    )

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")

    def __str__(self) -> str:
        return self.email

    def save(self, *args: Any, **options: Any) -> None:
        self.email = normal_email(self.email)
        super().save(*args, **options)


class Page(models.TextChoices):
    """What of a memory was opened."""

    TIMELINE = "timeline", _("Timeline")
    SLICE = "slice", _("Slice")
    STRANDS = "strands", _("Strands")
    STRAND = "strand", _("A strand")
    MERGES = "merges", _("Merges of strands")
    CARD = "card", _("Card")


class MemoryOpened(models.Model):
    """An administrator opened something of a person's memory. No word of what stands there is kept here.

    The rows are the person's: they go with the person's account, and stay when the administrator's goes.
    """

    whose = models.ForeignKey(User, on_delete=models.CASCADE, related_name="opened")
    who = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    who_called = models.CharField(max_length=LONGEST)  # as it was then
    at = models.DateTimeField()
    page = models.CharField(max_length=8, choices=Page.choices)
    place = models.CharField(max_length=15, blank=True)  # a slice path, or a year or month of the timeline
    reason = models.CharField(max_length=300, blank=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["whose", "-at"], name="opened_of_a_person")]

    def __str__(self) -> str:
        return f"{self.page} of {self.whose_id} at {self.at:%Y-%m-%d %H:%M:%S}"

    @property
    def who_name(self) -> str:
        """The administrator's name, as it is now or was before their account went."""
        return self.who.called if self.who else self.who_called
