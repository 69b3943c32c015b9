"""A message arrives: closing what is due, opening a slice or going on with it, and the words on the disk.

Runs in the web process, under files_lock; no model, no git, milliseconds. When it returns, the message is flushed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from memory.conversation.person import Person
from memory.folder import closing, flushed, rewriting, todo
from memory.folder.errors import BadId, Damaged, NotThere
from memory.folder.paths import CARD, core_file, free_slice_id, frozen_card_file, new_turn_id, parse_turn_id
from memory.folder.slices import Slice, parse, render
from memory.folder.store import MemoryFolder, Moved, Write
from memory.folder.timeline import DamagedSlice
from memory.folder.touched import close_owner, turn_owner
from memory.folder.turns import Entry, clean

LOOK_BACK = 3
"""How many of the newest slices can hold the active one or a message that is sent again."""
END_COMMAND = "/close"


@dataclass(frozen=True, kw_only=True)
class ClosedBehind:
    """The slice that this message found to be over."""

    slice_id: str
    closed_by: str
    focus: str


@dataclass(frozen=True, kw_only=True)
class Received:
    """The message is on disk."""

    slice_id: str
    turn_id: str
    at: datetime
    existed: bool
    """Whether it had been received before: nothing was written now."""
    closed: ClosedBehind | None = None
    damaged: DamagedSlice | None = None
    """The newest slice, when it cannot be read: it was left as it is and the message opened another."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The person ended the slice; no entry was written and none opens until they speak."""

    closed: ClosedBehind


@dataclass(frozen=True)
class NothingOpen:
    """There is no slice to end."""


def receive(
    folder: MemoryFolder, text: str, *, turn_id: str, seen: Collection[str], person: Person, now: datetime
) -> Received | Ended | NothingOpen:
    """Take in one message and return where it is on disk.

    `turn_id` is the one the composer carried; a forged or a used one is replaced, the text is never dropped. `seen`
    are the turn ids that the page shows. Raises LockTimeout, and OSError when the disk does not take the words.
    """
    text = clean(text)
    if text.strip() == END_COMMAND:
        return end_slice(folder, None, person=person, now=now)
    turn_id = _usable(turn_id)
    folder.state.mark_pending()
    with folder.files_lock():
        try:
            return _receive(folder, text, turn_id, frozenset(seen), person, now)
        except (NotThere, Damaged, Moved):
            # A person removed, broke or saved the slice between our two looks at it: what is there now decides.
            return _receive(folder, text, turn_id, frozenset(seen), person, now)


def end_slice(folder: MemoryFolder, slice_id: str | None, *, person: Person, now: datetime) -> Ended | NothingOpen:
    """Close the active slice (only if it is `slice_id`, when given) because the person says so."""
    if not folder.exists():
        return NothingOpen()
    folder.state.mark_pending()
    with folder.files_lock():
        try:
            return _end_slice(folder, slice_id, person)
        except (NotThere, Damaged, Moved):
            return _end_slice(folder, slice_id, person)


def _end_slice(folder: MemoryFolder, slice_id: str | None, person: Person) -> Ended | NothingOpen:
    active = _active(folder.newest(LOOK_BACK))
    if active is None or slice_id not in (None, active.slice_id):
        return NothingOpen()
    writes, closed = _closing(folder, active.slice_id, "user_explicit", person)
    folder.apply(writes, owner=close_owner(active.slice_id))
    return Ended(closed=closed)


def _receive(
    folder: MemoryFolder, text: str, turn_id: str, seen: frozenset[str], person: Person, now: datetime
) -> Received:
    newest = folder.newest(LOOK_BACK)
    slices = [found for found in newest if isinstance(found, Slice)]
    for found in slices:
        entry = found.entry(turn_id, "user")
        if entry is None:
            continue
        if entry.content != text and not _torn(found, entry, text):
            turn_id = new_turn_id()
            break
        _append(folder, found.slice_id, Entry(turn_id, entry.at, "user", text))
        return Received(slice_id=found.slice_id, turn_id=turn_id, at=entry.at, existed=True)
    entry = Entry(turn_id, now, "user", text)
    active = _active(slices)
    previous = next((found for found in slices if active and found.slice_id < active.slice_id), None)
    signal = closing.signal(active, previous=previous, seen=seen, now=now, limits=person.limits) if active else None
    if active and signal is None:
        _append(folder, active.slice_id, entry)
        return Received(slice_id=active.slice_id, turn_id=turn_id, at=now, existed=False)
    closed = None
    writes: list[Write] = []
    if active and signal:
        writes, closed = _closing(folder, active.slice_id, signal, person)
    slice_id = free_slice_id(folder.root, now)
    owner = turn_owner(slice_id, turn_id)
    folder.create(name=person.name, now=now, owner=owner)
    opened = Slice(slice_id=slice_id, status="active", start=now, timezone=person.timezone, entries=(entry,))
    writes.append(Write(path=core_file(slice_id), found=None, data=render(opened).encode(), entries=(entry.key,)))
    folder.apply(writes, owner=owner)
    damaged = newest[0] if newest and isinstance(newest[0], DamagedSlice) and active is None else None
    return Received(slice_id=slice_id, turn_id=turn_id, at=now, existed=False, closed=closed, damaged=damaged)


def _append(folder: MemoryFolder, slice_id: str, entry: Entry) -> None:
    """Add the person's entry, once, in the place of a torn one if there is one; flushed when it returns."""

    def writes(data: bytes, found: Slice) -> list[Write]:
        there = found.entry(entry.turn_id, entry.role)
        if there and (there.content == entry.content or not _torn(found, there, entry.content)):
            # Received before, or an editor that saved in the middle of our write has taken our words along.
            flushed.flush_file(folder.root / core_file(slice_id))
            return []
        return rewriting.writes(folder, data, found, entry=entry, instead=there is not None)

    rewriting.change(folder, slice_id, writes, owner=turn_owner(slice_id, entry.turn_id))


def _closing(folder: MemoryFolder, slice_id: str, by: str, person: Person) -> tuple[list[Write], ClosedBehind]:
    """The writes of a boundary: the card frozen as it stands, then the closed slice; its close work is listed first."""
    data = folder.read(core_file(slice_id))
    if data is None:
        raise NotThere(f"no slice {slice_id}")
    found = parse(data, slice_id=slice_id)
    closed = closing.close(found, by=by, language=person.language)
    works = folder.state.todo()
    work = todo.Work(what=todo.CLOSE, slice_id=slice_id, worth_it=_worth_it(found, todo.verdict_on(works, slice_id)))
    for what in (todo.CLOSE, todo.VERDICT):
        works = todo.without(works, slice_id, what)
    folder.state.save_todo([*works, work])
    frozen = frozen_card_file(slice_id)
    card = Write(path=frozen, found=folder.read(frozen), data=folder.read(CARD) or b"")
    writes = [card, *rewriting.writes(folder, data, found, front=closed, boundary=True)]
    return writes, ClosedBehind(slice_id=slice_id, closed_by=by, focus=closed.focus)


def _worth_it(found: Slice, verdict: bool | None) -> bool | None:
    return True if found.tags or found.open_loops or found.decisions else verdict


def _active(found: Collection[Slice | DamagedSlice]) -> Slice | None:
    return next((one for one in found if isinstance(one, Slice) and one.active), None)


def _torn(found: Slice, entry: Entry, text: str) -> bool:
    """Whether a crash cut this entry short: the last of its slice, unanswered, and a strict prefix of the message."""
    return found.entries[-1] is entry and text.startswith(entry.content.rstrip("\ufffd"))


def _usable(turn_id: str) -> str:
    try:
        return parse_turn_id(turn_id)
    except BadId:
        return new_turn_id()
