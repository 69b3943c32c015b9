"""Operational rows: numbers and times, never a word of anybody's memory. Those are in the folders alone."""

from typing import ClassVar

from django.db import models


class WorkerSeen(models.Model):
    """When a worker process last swept, by its name; how a page knows that somebody is there to answer."""

    name = models.CharField(max_length=200, unique=True)
    at = models.DateTimeField()

    class Meta:
        ordering: ClassVar[list[str]] = ["-at"]

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%Y-%m-%d %H:%M:%S}"
