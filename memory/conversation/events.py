"""What happens to a reply in flight, one event a line, and what a sequence of events adds up to.

An event is a JSON object with `kind` and `at` (milliseconds since 1970, UTC). Each attempt to answer begins with an
`attempt` event, and everything before the last one is over and done with. One `ended` event closes the chain of
attempts; a chain without one was cut (the worker died) and the next attempt follows in the same file.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from memory.conversation.outcomes import reply_file
from memory.folder.turns import clean

StepState = Literal["running", "ok", "error"]
EndKind = Literal["done", "stopped", "failed"]


@dataclass(frozen=True)
class Attempt:
    """The model is asked, for the first time or again."""

    at: int


@dataclass(frozen=True)
class Text:
    """A piece of the reply."""

    at: int
    text: str


@dataclass(frozen=True)
class Reasoning:
    """A piece of the reasoning that the model exposes."""

    at: int
    text: str


@dataclass(frozen=True)
class Step:
    """A tool at work, or its result; a later step with the same name and label is the same one, further on."""

    at: int
    name: str
    state: StepState
    label: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Notice:
    """Something the person is told beside the reply, as a code with the values its wording needs."""

    at: int
    code: str
    values: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """What the reply waits for before its first words, as a code, e.g. `remembering`."""

    at: int
    code: str


@dataclass(frozen=True)
class Heartbeat:
    """The worker is alive."""

    at: int


@dataclass(frozen=True)
class Ended:
    """The one terminal event. `code` says why it failed; `passing` whether asking again may help."""

    at: int
    how: EndKind
    code: str = ""
    passing: bool = False


Event: TypeAlias = Attempt | Text | Reasoning | Step | Notice | Waiting | Heartbeat | Ended

KINDS: dict[str, type[Event]] = {
    "attempt": Attempt,
    "text": Text,
    "reasoning": Reasoning,
    "step": Step,
    "notice": Notice,
    "waiting": Waiting,
    "heartbeat": Heartbeat,
    "ended": Ended,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_TYPES: dict[str, type] = {"at": int, "values": dict, "passing": bool}  # every other field is a text


def line_of(event: Event) -> bytes:
    """One event as its line. ASCII only, so a lone surrogate or a NUL in a model's text cannot break the file."""
    return json.dumps({"kind": _NAMES[type(event)]} | vars(event), default=dict).encode("ascii") + b"\n"


def event_of(line: bytes) -> Event | None:
    """The event on a line; None for a line that is none (torn by a killed worker, or written by a newer version)."""
    try:
        fields = json.loads(line)
        event = KINDS[fields.pop("kind")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return event if all(isinstance(value, _TYPES.get(name, str)) for name, value in vars(event).items()) else None


def read_events(run: Path, slice_id: str, turn_id: str, offset: int = 0) -> tuple[list[Event], int]:
    """The events from byte `offset` on, and the offset to go on from; none when there is no such file.

    A last line that is not complete yet is left for the next look. A file shorter than `offset` was begun anew by Try
    again and is read from its start. Raises BadId.
    """
    path = reply_file(run, slice_id, turn_id, "events")
    try:
        size = os.stat(path, follow_symlinks=False).st_size
        if size == offset:
            return [], offset
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return [], 0
    with os.fdopen(handle, "rb") as file:
        start = offset if size > offset else 0
        file.seek(start)
        data = file.read()
    whole = data.rfind(b"\n") + 1
    events = [event for line in data[:whole].splitlines() if (event := event_of(line))]
    return events, start + whole


@dataclass(frozen=True, kw_only=True)
class ReplyState:
    """A reply so far: what its last attempt brought. `last_at` is in milliseconds, 0 before the first event."""

    text: str = ""
    reasoning: str = ""
    thinking: bool = False
    thinking_seconds: int = 0
    steps: tuple[Step, ...] = ()
    notices: tuple[Notice, ...] = ()
    waiting: str = ""
    ended: Ended | None = None
    last_at: int = 0
    attempts: int = 0


class Fold:
    """Adds events up, one by one, so that a watcher never has to go through the whole reply again."""

    def __init__(self) -> None:
        self._attempts = 0
        self._last_at = 0
        self._begin()

    def _begin(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thought = 0
        self._thinking_since: int | None = None
        self._steps: list[Step] = []
        self._notices: list[Notice] = []
        self._waiting = ""
        self._ended: Ended | None = None

    def add(self, event: Event) -> None:
        """Take one more event in."""
        self._last_at = max(self._last_at, event.at)
        match event:
            case Attempt():
                self._attempts += 1
                self._begin()
            case Reasoning(text=text):
                self._reasoning.append(text)
                self._waiting = ""
                if self._thinking_since is None:
                    self._thinking_since = event.at
            case Text(text=text):
                self._text.append(text)
                self._go_on(event.at)
            case Step():
                self._place(event)
                self._go_on(event.at)
            case Notice():
                self._notices.append(event)
            case Waiting(code=code):
                self._waiting = code
            case Ended():
                self._ended = event
                self._go_on(event.at)
            case Heartbeat():
                pass

    def _go_on(self, at: int) -> None:
        """Thinking is over, and so is waiting: something came."""
        if self._thinking_since is not None:
            self._thought += max(0, at - self._thinking_since)
        self._thinking_since = None
        self._waiting = ""

    def _place(self, step: Step) -> None:
        """Put a step behind the others, or in the place of the running one that it continues."""
        for index, earlier in enumerate(self._steps):
            if earlier.state == "running" and earlier.name == step.name and step.label in ("", earlier.label):
                self._steps[index] = replace(step, label=earlier.label)
                return
        self._steps.append(step)

    def state(self) -> ReplyState:
        """What the events so far add up to. The texts read as they will be recorded."""
        thinking = self._thinking_since is not None
        thought = self._thought + (max(0, self._last_at - self._thinking_since) if self._thinking_since else 0)
        return ReplyState(
            text=clean("".join(self._text)),
            reasoning=clean("".join(self._reasoning)),
            thinking=thinking,
            thinking_seconds=max(1, round(thought / 1000)) if self._reasoning else 0,
            steps=tuple(self._steps),
            notices=tuple(self._notices),
            waiting=self._waiting,
            ended=self._ended,
            last_at=self._last_at,
            attempts=self._attempts,
        )


def fold(events: Iterable[Event]) -> ReplyState:
    """What a whole sequence of events adds up to."""
    total = Fold()
    for event in events:
        total.add(event)
    return total.state()
