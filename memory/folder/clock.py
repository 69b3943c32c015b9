"""Instants and time zones. Instants are aware UTC datetimes in whole milliseconds."""

import functools
import re
import zoneinfo
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

_STAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z",
)


def utc_now() -> datetime:
    """Return the present instant. This is the one place that asks the system clock."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def stamp(at: datetime) -> str:
    """Write an instant as `2026-08-10T21:30:22.811Z`, cut to the millisecond.

    Raises ValueError for a datetime without a time zone.
    """
    if at.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_stamp(text: str) -> datetime:
    """Read exactly what `stamp` writes; anything else, or a time that never was, raises ValueError."""
    if not _STAMP.fullmatch(text):
        raise ValueError(f"not a timestamp: {text[:40]!r}")
    return datetime.fromisoformat(text)


def known_zone(name: str) -> str | None:
    """Return the name if it is an IANA time zone (older aliases included), else None.

    The name is only ever looked up in a set, so a browser may send anything.
    """
    return name if name in _zone_names() else None


def zone(name: str) -> ZoneInfo:
    """Return the time zone of that name, UTC when it is unknown."""
    return ZoneInfo(known_zone(name) or "UTC")


def local(at: datetime, zone_name: str) -> datetime:
    """Return the instant as wall-clock time in that zone."""
    return at.astimezone(zone(zone_name))


def local_day(at: datetime, zone_name: str) -> date:
    """Return the calendar day of the instant in that zone."""
    return local(at, zone_name).date()


@functools.cache
def _zone_names() -> frozenset[str]:
    # `localtime` is whatever the machine is set to, which says nothing about the person.
    return frozenset(zoneinfo.available_timezones() - {"localtime"})
