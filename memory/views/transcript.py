"""What a conversation looks like on a page: day lines, edges of slices, turns with their replies, in order.

Each thing names the template that shows it, so a page is a list of them. Times are shown in the slice's own zone.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from typing import ClassVar

from django.utils.safestring import SafeString

from memory import markdown, wording
from memory.conversation.due import owed
from memory.conversation.events import ReplyState, fold, read_events
from memory.conversation.person import Person
from memory.conversation.status import Answered, Delayed, Failed, Queued, Running, Stopped, reply_status
from memory.folder.clock import local_day
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry


@dataclass(frozen=True, kw_only=True)
class FinishedReply:
    """A reply that is over. `entry` is None when it was stopped before its first word, or failed."""

    template: ClassVar[str] = "memory/_reply.html"
    path: str
    turn_id: str
    zone: str
    outcome: str
    """`answered`, `stopped` or `failed`, for the style sheet and the status line."""
    entry: Entry | None = None
    code: str = ""
    unfinished: str = ""
    state: ReplyState | None = None
    """Thinking and steps, while the events of the reply are kept."""


@dataclass(frozen=True, kw_only=True)
class OpenReply:
    """A reply being written: the page listens to its stream. What has come so far stands in `blocks` and `tail`."""

    template: ClassVar[str] = "memory/_reply_open.html"
    path: str
    turn_id: str
    state: ReplyState
    blocks: SafeString
    tail: SafeString = field(default_factory=SafeString)


@dataclass(frozen=True, kw_only=True)
class QueuedReply:
    """A reply that waits for the one before it; the page asks again when that is over."""

    template: ClassVar[str] = "memory/_reply_queued.html"
    path: str
    turn_id: str


Reply = FinishedReply | OpenReply | QueuedReply


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The person's entry and the reply to it."""

    template: ClassVar[str] = "memory/_turn.html"
    zone: str
    said: Entry
    reply: Reply


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day begins."""

    template: ClassVar[str] = "memory/_day.html"
    at: datetime
    zone: str


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A slice ended here."""

    template: ClassVar[str] = "memory/_edge.html"
    path: str
    words: str
    focus: str


Item = Turn | Day | Edge


@dataclass(frozen=True, kw_only=True)
class Age:
    """How long the active slice has been open, and when its time is up. `minutes` are left, rounded up."""

    start: datetime
    closes: datetime
    zone: str
    minutes: int


def age(slice_: Slice, person: Person, now: datetime) -> Age | None:
    """The age of a slice, None when it is closed."""
    if not slice_.active:
        return None
    closes = slice_.start + timedelta(minutes=person.limits.max_slice_minutes)
    return Age(
        start=slice_.start,
        closes=closes,
        zone=slice_.timezone,
        minutes=max(0, -((now - closes) // timedelta(minutes=1))),
    )


class Transcript:
    """The newest slices of one person at one moment, and what of them is shown."""

    def __init__(self, folder: MemoryFolder, newest: Iterable[object], person: Person, now: datetime) -> None:
        """`newest` are slices as the folder lists them, newest first; damaged ones hold nothing that could be shown."""
        self.slices = [found for found in newest if isinstance(found, Slice)][::-1]
        self.owed = owed(self.slices, folder, now)
        self._folder = folder
        self._person = person
        self._now = now

    def slice(self, slice_id: str) -> Slice:
        """One of these slices; KeyError when it is not among them."""
        return {found.slice_id: found for found in self.slices}[slice_id]

    def items(self, shown: Collection[str]) -> list[Item]:
        """The turns in `shown` in order, a line where a day begins, an edge where a slice ended."""
        items: list[Item] = []
        last_day: date | None = None
        behind: Slice | None = None
        for found in self.slices:
            for entry in found.person_entries:
                if entry.turn_id not in shown:
                    continue
                if behind is not None and behind is not found and not behind.active:
                    items.append(self.edge(behind))
                day = local_day(entry.at, found.timezone)
                if day != last_day:
                    items.append(Day(at=entry.at, zone=found.timezone))
                items.append(self.turn(found, entry))
                last_day, behind = day, found
        return items

    def turn(self, found: Slice, entry: Entry) -> Turn:
        """One turn of a slice."""
        return Turn(zone=found.timezone, said=entry, reply=self.reply(found, entry.turn_id))

    def edge(self, closed: Slice) -> Edge:
        """The end of a closed slice."""
        minutes = self._person.limits.max_slice_minutes
        return Edge(path=closed.path, words=wording.closed_by(closed.closed_by, minutes), focus=closed.focus)

    def reply(self, found: Slice, turn_id: str) -> Reply:
        """Where the reply to a turn stands. Raises NotThere when the slice has no such turn of the person's."""
        waits = bool(self.owed) and self.owed[0].turn_id != turn_id
        return reply_of(self._folder, found, turn_id, self._now, waits=waits)


def reply_of(folder: MemoryFolder, found: Slice, turn_id: str, now: datetime, *, waits: bool = False) -> Reply:
    """Where the reply to a turn stands; `waits` when an earlier turn is owed one. Raises BadId and NotThere."""
    run = folder.state.directory
    state = fold(read_events(run, found.slice_id, turn_id)[0])
    over = partial(FinishedReply, path=found.path, turn_id=turn_id, zone=found.timezone, state=state)
    match reply_status(run, found, turn_id, now, state):
        case Answered(entry=entry):
            stopped = state.ended is not None and state.ended.how == "stopped"
            return over(outcome="stopped" if stopped else "answered", entry=entry)
        case Stopped(text=text):
            return over(outcome="stopped", unfinished=text)
        case Failed(code=code, text=text):
            return over(outcome="failed", code=code, unfinished=text)
        case Queued() if waits:
            return QueuedReply(path=found.path, turn_id=turn_id)
        case Running() | Delayed() | Queued():
            return OpenReply(
                path=found.path, turn_id=turn_id, state=state, blocks=markdown.render(state.text, final=False)
            )


def turn_ids(found: Slice) -> list[str]:
    """The turns that the person began in a slice, in order."""
    return [entry.turn_id for entry in found.person_entries]


def missing(found: Slice, shown: Collection[str]) -> list[tuple[str | None, list[Entry]]]:
    """What of the person's a page does not show, in runs, each with the shown turn that follows it (None: none)."""
    runs: list[tuple[str | None, list[Entry]]] = []
    run: list[Entry] = []
    for entry in found.person_entries:
        if entry.turn_id in shown:
            if run:
                runs.append((entry.turn_id, run))
            run = []
        else:
            run.append(entry)
    return [*runs, (None, run)] if run else runs


def last_shown(slices: Sequence[Slice], shown: Collection[str]) -> tuple[Slice, Entry] | None:
    """The last entry of the person's that a page shows, with its slice."""
    for found in reversed(slices):
        for entry in reversed(found.person_entries):
            if entry.turn_id in shown:
                return found, entry
    return None
