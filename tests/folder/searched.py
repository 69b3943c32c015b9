"""Folders to be searched: Alice's, with a real repository, and slices to put into it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory.folder import git
from memory.folder.paths import core_file, minute_of
from memory.folder.search import Hit, SearchIndex
from memory.folder.slices import Slice, render
from memory.folder.store import MemoryFolder, Places
from memory.folder.turns import Entry

NOW = datetime(2026, 8, 12, 9, 0, tzinfo=UTC)


def alice_at(place: Path) -> tuple[MemoryFolder, SearchIndex]:
    """Alice's new folder and her index, not made yet."""
    places = Places(root=place / "alice", run=place / "run" / "alice", pending=place / "pending" / "alice")
    git.create(places.root)
    return MemoryFolder(places), SearchIndex(place / "cache" / "alice.sqlite3")


def a_slice(slice_id: str, *texts: str, **marks: Any) -> Slice:
    """A closed slice: the person and the agent speak in turn, a minute apart; turn ids are t0, t1, …"""
    start = minute_of(slice_id)
    entries = tuple(
        Entry(f"t{number // 2}", start + timedelta(minutes=number), "agent" if number % 2 else "user", text)
        for number, text in enumerate(texts)
    )
    closed: dict[str, Any] = {"status": "closed", "end": start + timedelta(minutes=len(texts)), "closed_by": "time_cap"}
    return Slice(slice_id=slice_id, start=start, entries=entries, **closed | marks)


def write(folder: MemoryFolder, *slices: Slice) -> None:
    """Put the slices on disk, uncommitted."""
    for slice_ in slices:
        file = folder.root / core_file(slice_.slice_id)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(slice_), "utf-8", newline="")


def commit(folder: MemoryFolder, *slices: Slice, gone: Sequence[str] = ()) -> str:
    """Put the slices on disk and into one commit, which also takes the slices that are `gone` away."""
    write(folder, *slices)
    for slice_id in gone:
        (folder.root / core_file(slice_id)).unlink()
    changes = [git.Change(core_file(one.slice_id), render(one).encode()) for one in slices]
    changes += [git.Change(core_file(slice_id), None) for slice_id in gone]
    return folder.repository.commit(changes, "a commit", parent=folder.repository.head(), at=NOW)


def found(index: SearchIndex, query: str, **options: Any) -> list[Hit]:
    """What a question finds, asked on 12 August 2026."""
    return index.search(query, **{"now": NOW, "timezone": "UTC"} | options)


def ids(index: SearchIndex, query: str, **options: Any) -> list[str]:
    """The slices that a question finds."""
    return [hit.slice_id for hit in found(index, query, **options)]
