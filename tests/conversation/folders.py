"""A person's folder for the tests of a conversation: files as the format has them, without a repository."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory.conversation.person import Person
from memory.folder.closing import Limits
from memory.folder.paths import CARD, STRANDS, core_file, minute_of
from memory.folder.slices import Slice, render
from memory.folder.store import MemoryFolder, Places
from memory.folder.strands import render_strands
from memory.folder.turns import Entry

ALICE = Person(name="Alice", language="en", timezone="America/Los_Angeles", limits=Limits())
ALICE_IN_CHINESE = Person(name="爱丽丝", language="zh-hans", timezone="Asia/Shanghai", limits=Limits())


def utc(*parts: int) -> datetime:
    """An instant, from year, month, day and so on."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def opened(place: Path) -> MemoryFolder:
    """The folder that is there."""
    return MemoryFolder(Places(root=place / "folder", run=place / "run", pending=place / "pending" / "alice"))


def folder_at(place: Path) -> MemoryFolder:
    """An empty folder."""
    folder = opened(place)
    folder.root.mkdir(parents=True)
    return folder


def put(folder: MemoryFolder, relative: str, text: str) -> None:
    """Write one file of the folder."""
    path = folder.root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="")


def keep(folder: MemoryFolder, slice_: Slice) -> Slice:
    """Write a slice's core.md and return the slice."""
    put(folder, core_file(slice_.slice_id), render(slice_))
    return slice_


def keep_card(folder: MemoryFolder, *entries: str, section: str = "Now") -> None:
    """Write a card that holds these entries, as they are to stand in the file."""
    put(folder, CARD, f"# Previously on Alice\n\n## {section}\n" + "".join(f"- {entry}\n" for entry in entries))


def keep_strands(folder: MemoryFolder, strands: Mapping[str, Sequence[str]]) -> None:
    """Write strands.json."""
    put(folder, STRANDS, render_strands({key: tuple(paths) for key, paths in strands.items()}))


def said(start: datetime, *turns: str | tuple[str, str]) -> tuple[Entry, ...]:
    """Entries a minute apart: a text is a turn without an answer, a pair one with; the ids are t1, t2, …"""
    entries: list[Entry] = []
    for number, turn in enumerate(turns, 1):
        texts = (turn,) if isinstance(turn, str) else turn
        for role, text in zip(("user", "agent"), texts, strict=False):
            at = start + timedelta(minutes=len(entries))
            entries.append(Entry(f"t{number}", at, role, text))  # type: ignore[arg-type]
    return tuple(entries)


def a_slice(slice_id: str, *turns: str | tuple[str, str], active: bool = False, **marks: Any) -> Slice:
    """A slice that began in the minute of its id; closed, unless `active`."""
    start = minute_of(slice_id)
    entries = said(start, *(turns or (("Hello", "Hello, Alice."),)))
    ended: dict[str, Any] = {} if active else {"end": entries[-1].at, "closed_by": "time_cap"}
    return Slice(
        slice_id=slice_id, status="active" if active else "closed", start=start, entries=entries, **ended | marks
    )
