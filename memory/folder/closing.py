"""When a slice closes, and what closing does to it.

A message closes the slice before it by time, lost context or capacity, a person by saying so; no topic ever does.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memory.folder.marks import FLOOR_TONE, floor_focus, floor_summary
from memory.folder.slices import Slice

TIME_CAP = "time_cap"
CONTEXT_LOST = "context_lost"
CAPACITY = "capacity"
USER_EXPLICIT = "user_explicit"

CLOSED_BY = (TIME_CAP, CONTEXT_LOST, CAPACITY, USER_EXPLICIT)

MINUTES = range(5, 121)
TURNS = range(5, 101)

_CLOCK_SLACK = timedelta(minutes=5)


@dataclass(frozen=True)
class Limits:
    """How long a slice may last, in minutes from its start, and how many turns it may hold."""

    max_slice_minutes: int = 30
    max_turns: int = 50


def limits(minutes: int, turns: int) -> Limits:
    """Return limits within what is allowed: 5 to 120 minutes, 5 to 100 turns."""
    return Limits(_within(minutes, MINUTES), _within(turns, TURNS))


def signal(
    slice_: Slice, *, previous: Slice | None, seen: Collection[str], now: datetime, limits: Limits
) -> str | None:
    """Return what closes the active slice now that a message has come, None when it goes on.

    `previous` is the slice just before, None when there is none or it cannot be read; `seen` are the turn ids that the
    page shows. Looked at in this order:

    - `time_cap`: the slice began `max_slice_minutes` ago or earlier, or more than 5 minutes in the future. A clock that
      ran back a little closes nothing.
    - `context_lost`: the agent has spoken in the slice and the page shows none of its turns. A page that shows some is
      only stale, and one that shows the slice before, itself closed as `context_lost`, is a second tab: it goes on.
    - `capacity`: the person has spoken in `max_turns` turns.
    """
    age = now - slice_.start
    if age >= timedelta(minutes=limits.max_slice_minutes) or age < -_CLOCK_SLACK:
        return TIME_CAP
    if _context_lost(slice_, previous, seen):
        return CONTEXT_LOST
    if len({entry.turn_id for entry in slice_.person_entries}) >= limits.max_turns:
        return CAPACITY
    return None


def close(slice_: Slice, *, by: str, language: str) -> Slice:
    """Return the slice closed: its end is its last entry's time, and every mark it lacks gets its floor.

    Raises ValueError when `by` is none of CLOSED_BY.
    """
    if by not in CLOSED_BY:
        raise ValueError(f"nothing closes a slice by {by!r}")
    return replace(
        slice_,
        status="closed",
        end=slice_.last_at,
        closed_by=by,
        focus=slice_.focus or floor_focus(slice_, language=language),
        summary=slice_.summary or floor_summary(slice_, language=language),
        emotional_tone=slice_.emotional_tone or FLOOR_TONE,
    )


def as_active(slice_: Slice) -> Slice:
    """Return the slice as it was before its boundary: active, without an end and without the marks of closing."""
    return replace(slice_, status="active", end=None, closed_by="", focus="", summary="", emotional_tone="")


def _within(number: int, allowed: range) -> int:
    return min(max(number, allowed[0]), allowed[-1])


def _context_lost(slice_: Slice, previous: Slice | None, seen: Collection[str]) -> bool:
    if not any(entry.role == "agent" for entry in slice_.entries):
        return False
    if any(slice_.has(turn_id) for turn_id in seen):
        return False
    second_tab = previous is not None and previous.closed_by == CONTEXT_LOST and any(map(previous.has, seen))
    return not second_tab
