"""Operational rows: numbers and times, never a word of anybody's memory. Those are in the folders alone."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from accounts.models import User


class WorkerSeen(models.Model):
    """When a worker process last swept, by its name; how a page knows that somebody is there to answer."""

    name = models.CharField(max_length=200, unique=True)
    at = models.DateTimeField()

    class Meta:
        ordering: ClassVar[list[str]] = ["-at"]

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%Y-%m-%d %H:%M:%S}"


class ModelCalls(models.Model):
    """How often the model was asked for one kind of thing in one hour (UTC), how often in vain, and how long it took.

    Kinds are `answer`, an attempt at a reply with all its steps, and the forms of structured calls: turn, close,
    backfill, evolve_card, merge.
    """

    hour = models.DateTimeField()
    kind = models.CharField(max_length=40)
    count = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0.0)

    class Meta:
        ordering: ClassVar[list[str]] = ["-hour", "kind"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["hour", "kind"], name="one_row_an_hour_and_kind")
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.hour:%Y-%m-%d %H}:00: {self.count}"

    @classmethod
    def add(cls, kind: str, *, failed: bool, seconds: float, now: datetime) -> None:
        """Count one request. Workers add to a row at once: the sums are made by the database."""
        row, _ = cls.objects.get_or_create(hour=now.replace(minute=0, second=0, microsecond=0), kind=kind)
        cls.objects.filter(pk=row.pk).update(
            count=F("count") + 1, errors=F("errors") + int(failed), seconds=F("seconds") + seconds
        )


class Memory(User):
    """A person as the administration lists them: by the state of their memory. There is nothing here to change."""

    class Meta:
        proxy = True
        default_permissions = ("view",)
        verbose_name = _("memory")
        verbose_name_plural = _("memories")


class FolderFacts(models.Model):
    """What can be said of a person's folder without reading a word of it.

    Counted by the worker at the end of each close pass; what is unfinished is counted by each sweep.
    """

    person = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="facts")
    at = models.DateTimeField()
    slices = models.PositiveIntegerField(default=0)
    strands = models.PositiveIntegerField(default=0)
    dry = models.PositiveIntegerField(default=0)
    damaged = models.PositiveIntegerField(default=0)
    last_activity = models.DateTimeField(null=True)
    size = models.PositiveBigIntegerField(default=0)  # bytes of the repository
    owed = models.PositiveIntegerField(default=0)  # replies
    closes = models.PositiveIntegerField(default=0)  # close passes not at their end
    failed_closes = models.PositiveIntegerField(default=0)  # of these, those whose analysis failed and is tried again
    uncommitted = models.PositiveIntegerField(default=0)  # commits not made yet
    trouble = models.CharField(max_length=20, blank=True)  # a code; '' when the folder is healthy

    def __str__(self) -> str:
        return f"{self.person_id} at {self.at:%Y-%m-%d %H:%M:%S}"

    @property
    def unfinished(self) -> int:
        """How much there is still to do: replies, close passes, commits."""
        return self.owed + self.closes + self.uncommitted
