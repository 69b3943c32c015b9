"""The time zones a person may choose: IANA names, older aliases included."""

import functools
from typing import Any
from zoneinfo import available_timezones

from django.conf import settings


@functools.cache
def names() -> frozenset[str]:
    """Every name that is accepted; `localtime` says nothing about the person."""
    return frozenset(available_timezones() - {"localtime"})


@functools.cache
def offered() -> tuple[str, ...]:
    """The names offered while typing, in order: those of places."""
    return tuple(sorted(name for name in names() if "/" in name and not name.startswith(("Etc/", "SystemV/"))))


def of(person: Any) -> str:
    """The person's own zone; the server's until they have chosen one."""
    chosen: str = person.timezone
    return chosen if chosen in names() else str(settings.PREVIOUSLY.time_zone)
