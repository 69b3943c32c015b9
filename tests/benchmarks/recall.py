"""How well the first stage of recall finds evidence: conversations written into a real folder, and searched there.

    PYTHONPATH=. python recall_eval.py DATA --engine tests.benchmarks.recall:factory

The evaluator and its data are given on its own command line; it is run from the root of the project. A conversation
is any object with `id` and `slices`; a slice has `id`, `start` and `turns`; a turn has `id`, `speaker` and `text`. The
first speaker is the folder's person. Questions are asked a day after the last slice.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory.folder.closing import close
from memory.folder.paths import core_file, free_slice_id
from memory.folder.search import SearchIndex
from memory.folder.slices import Slice, render
from memory.folder.store import MemoryFolder, Places, Write
from memory.folder.turns import Entry, clean

Search = Callable[[str, str, int], list[str]]


def factory(conversations: Sequence[Any]) -> Search:
    """Write the conversations into one new folder and return `search(query, unit, k)`, ids best first."""
    place = Path(tempfile.mkdtemp(prefix="recall-"))
    folder = MemoryFolder(Places(root=place / "folder", run=place / "run", pending=place / "pending" / "alice"))
    index = SearchIndex(place / "cache" / "alice.sqlite3")
    names: dict[tuple[str, ...], str] = {}
    last = datetime.min.replace(tzinfo=UTC)
    folder.create(name="", now=datetime(2020, 1, 1, tzinfo=UTC), owner="benchmark")
    for conversation in conversations:
        person = next((turn.speaker for slice_ in conversation.slices for turn in slice_.turns if turn.speaker), "")
        for told in conversation.slices:
            kept = write(folder, told, person)
            names[(kept.slice_id,)] = told.id
            for entry, turn in zip(kept.entries, told.turns, strict=True):
                names[kept.slice_id, entry.turn_id] = turn.id
            last = max(last, kept.last_at)
    index.catch_up(folder)
    # Whose memory it is: the first speaker's, when the folder holds one conversation.
    called = next((turn.speaker for turn in conversations[0].slices[0].turns if turn.speaker), "")
    name = called if len(conversations) == 1 else ""

    def search(query: str, unit: str, k: int) -> list[str]:
        hits = index.search(
            query,
            now=last + timedelta(days=1),
            timezone="UTC",
            person=name,
            limit=k,
            unit="turn" if unit == "turn" else "slice",
        )
        if unit == "slice":
            return [names[(hit.slice_id,)] for hit in hits]
        return [names[hit.slice_id, hit.turns[0].turn_id] for hit in hits]

    weakref.finalize(search, shutil.rmtree, place)
    return search


def write(folder: MemoryFolder, told: Any, person: str) -> Slice:
    """Write one slice, closed as it would be without a model; each line is an entry with a turn id of its own."""
    start = told.start.replace(tzinfo=UTC)
    slice_id = free_slice_id(folder.root, start)
    entries = tuple(
        Entry(
            turn_id=f"t{number}",
            at=start + timedelta(seconds=20 * number),
            role="user" if turn.speaker == person else "agent",
            content=clean(turn.text),
        )
        for number, turn in enumerate(told.turns)
    )
    opened = Slice(slice_id=slice_id, status="active", start=start, entries=entries)
    closed = replace(close(opened, by="time_cap", language="en"), slice_id=slice_id)
    data = render(closed).encode()
    with folder.files_lock():
        folder.apply([Write(path=core_file(slice_id), found=None, data=data)], owner="benchmark")
    return closed
