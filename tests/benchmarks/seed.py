"""Folders as years of talk leave them, for benchmarks: made once a size and kept in a cache directory.

`python -m tests.benchmarks.seed DIRECTORY --sizes 100,10000` makes them without measuring anything.

Everything that a folder holds is written by the code that writes it in use, except that nothing is flushed and all
commits, one a slice, go to git in a single stream. The same size always gives the same commits.
"""

import argparse
import base64
import math
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import IO

from memory.folder import cognition, strands, timeline
from memory.folder.branch import blobs_at
from memory.folder.card import SECTIONS, Receipt, empty_card, render_entry
from memory.folder.clock import stamp
from memory.folder.closing import close
from memory.folder.git import create
from memory.folder.paths import (
    CARD,
    STRANDS,
    agent_file,
    core_file,
    frozen_card_file,
    month_file,
    month_of,
    slice_id_at,
)
from memory.folder.runstate import Committed
from memory.folder.slices import Slice, render
from memory.folder.store import MemoryFolder, Places
from memory.folder.turns import Entry
from tests.benchmarks import words

VERSION = 1
"""Part of the directory's name: a change of what is written here makes new folders."""

LAST_DAY = datetime(2024, 12, 31, tzinfo=UTC)
ZONE = "Europe/Lisbon"
MOST_STRANDS = 4_000
CLOSED_BY = ("time_cap", "context_lost", "context_lost", "time_cap", "capacity")
TONES = ("positive", "neutral", "neutral", "mixed", "negative")


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """A folder in the cache; `root` and `run` are copied by whoever writes to them."""

    root: Path
    run: Path
    slices: int
    turns: int
    strands: int

    @property
    def places(self) -> Places:
        return Places(root=self.root, run=self.run, pending=self.run.parent / "pending")


@dataclass(frozen=True)
class _File:
    path: str
    data: bytes


def seed_benchmark(cache: Path, slices: int) -> Seeded:
    """The folder with so many slices, from `cache` or made now: all closed, committed, catalogued and packed."""
    place = cache / f"slices-{slices}-v{VERSION}"
    if not place.exists():
        new = cache / f".new-{place.name}-{os.getpid()}"
        _make(new, slices)
        new.rename(place)
    turns, kept = (int(text) for text in (place / "counts").read_text("ascii").split())
    return Seeded(root=place / "folder", run=place / "run", slices=slices, turns=turns, strands=kept)


def copy_to(seeded: Seeded, places: Places) -> MemoryFolder:
    """A copy to write to. Its index knows the copied files, as it would after the person's own `git status`."""
    for source, target in ((seeded.root, places.root), (seeded.run, places.run)):
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)
    subprocess.run(["git", "status", "--porcelain"], cwd=places.root, check=True, stdout=subprocess.DEVNULL)
    return MemoryFolder(places)


def strands_for(slices: int) -> int:
    """How many topics a person has after so many slices: 40 after 100, 4,000 after 36,500."""
    return min(MOST_STRANDS, max(8, math.ceil(1.6 * math.pow(slices, 0.745))))


def _make(place: Path, slices: int) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    folder = MemoryFolder(Places(root=place / "folder", run=place / "run", pending=place / "pending"))
    create(folder.root)
    chance = random.Random(slices)
    topics = words.topics(strands_for(slices))
    told = [_closed_slice(number, start, topics, chance) for number, start in enumerate(_starts(slices, chance))]
    card = _card(told)
    with _Importer(folder) as importer:
        woven = strands.compute(
            [strands.Tagged(path=one.path, start=one.start, active=False, tags=one.tags) for one in told],
            {},
            told[-1].last_at,
        )
        months = timeline.reconcile({}, woven, told)
        _write_history(importer, told, months, woven, card, chance)
    _settle(folder)
    turns = sum(one.turn_count for one in told)
    (place / "counts").write_text(f"{turns} {len(woven)}\n", "ascii")


def _starts(slices: int, chance: random.Random) -> list[datetime]:
    """Minutes over two to ten years, several on most days, each once."""
    days = round(365 * min(10.0, 2.0 + slices / 4_500))
    begins = [LAST_DAY - timedelta(days=days - 1 - number * days // slices) for number in range(slices)]
    starts = []
    for day, several in groupby(begins):
        count = len(list(several))
        minutes = sorted(chance.sample(range(7 * 60, 23 * 60, 40), count))
        starts += [
            day + timedelta(minutes=minute, seconds=chance.randint(0, 59), milliseconds=chance.randint(0, 999))
            for minute in minutes
        ]
    return starts


def _closed_slice(number: int, start: datetime, topics: list[str], chance: random.Random) -> Slice:
    # Each topic has its turn, so that every strand has slices over all the years; the others are the common ones.
    own = topics[number % len(topics)]
    others = [topics[int(len(topics) * chance.random() ** 3)] for _ in range(chance.randint(1, 3))]
    tags = tuple(dict.fromkeys((own, *others)))
    entries: list[Entry] = []
    at = start
    for _ in range(chance.choice((1, 2, 3, 3, 4, 4, 5, 6, 8))):
        turn_id = base64.urlsafe_b64encode(chance.randbytes(4)).decode()[:6]
        topic = chance.choice(tags)
        entries.append(Entry(turn_id, at, "user", words.said(topic, chance)))
        at += timedelta(milliseconds=chance.randint(4_000, 40_000))
        entries.append(Entry(turn_id, at, "agent", words.answered(topic, chance)))
        at += timedelta(milliseconds=chance.randint(20_000, 160_000))
    marked = number % 7 > 0  # the others still carry the floor
    opened = Slice(
        slice_id=slice_id_at(start),
        status="active",
        start=start,
        timezone=ZONE,
        tags=tags,
        entries=tuple(entries),
        focus=f"What to do about the {own} before the month is over" if marked else "",
        summary=f"Alice weighs the {own}; the next small step is agreed on and the rest waits."[:100] if marked else "",
        emotional_tone=chance.choice(TONES) if marked else "",
        open_loops=(f"When does the {own} begin?",) if chance.random() < 0.4 else (),
        decisions=(f"The cheaper one is good enough for the {own}",) if chance.random() < 0.3 else (),
    )
    return close(opened, by=chance.choice(CLOSED_BY), language="en")


def _card(told: list[Slice]) -> str:
    """A card with entries in every section, each with receipts that exist."""
    lines = empty_card("Alice", stamp(told[-1].last_at)).splitlines()
    chosen = iter(told[:: max(1, len(told) // sum(SECTIONS.values()))])
    filled = []
    for line in lines:
        filled.append(line)
        name = line.removeprefix("## ")
        if line.startswith("## ") and name in SECTIONS:
            for _, one in zip(range(SECTIONS[name] - 2), chosen, strict=False):
                receipt = Receipt(one.path, one.entries[0].turn_id)
                filled.append(render_entry(f"Has thought about the {one.tags[0]} for a while", (receipt,)))
    return "\n".join(filled) + "\n"


def _write_history(
    importer: "_Importer",
    told: list[Slice],
    months: dict[str, tuple[timeline.Line, ...]],
    woven: strands.Strands,
    card: str,
    chance: random.Random,
) -> None:
    headings = empty_card("Alice", stamp(told[0].start)).encode()
    for month, of_month in groupby(told, key=lambda one: month_of(one.slice_id)):
        slices = list(of_month)
        for one in slices:
            files = [
                _File(core_file(one.slice_id), render(one).encode()),
                _File(frozen_card_file(one.slice_id), headings if one is told[0] else card.encode()),
            ]
            if thought := _cognition(one, chance):
                files.append(_File(agent_file(one.slice_id), thought.encode()))
            if one is told[0]:
                files.append(_File(CARD, headings))
            if one is slices[-1]:
                files.append(_File(month_file(month), timeline.render_month(month, months[month]).encode()))
            importer.commit(files, f"close {one.slice_id}: {one.focus}", one.last_at)
    files = [_File(STRANDS, strands.render_strands(woven).encode()), _File(CARD, card.encode())]
    importer.commit(files, "strands and card", told[-1].last_at)


def _cognition(one: Slice, chance: random.Random) -> str:
    text = ""
    for entry in one.entries[1::2]:
        block = cognition.Block(
            turn_id=entry.turn_id,
            at=entry.at,
            thinking=chance.choice(words.THOUGHTS) if chance.random() < 0.6 else "",
            tools=(cognition.ToolCall("recall", (("question", one.tags[0]),), None),) if chance.random() < 0.3 else (),
        )
        text += cognition.append_text(text, block)
    return text


class _Importer:
    """One `git fast-import` for the whole history; every file goes to the work tree as well."""

    def __init__(self, folder: MemoryFolder) -> None:
        self._root = folder.root
        self._made: set[Path] = set()

    def __enter__(self) -> "_Importer":
        command = ["git", "fast-import", "--quiet", "--done"]
        self._process = subprocess.Popen(command, cwd=self._root, stdin=subprocess.PIPE)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._pipe.write(b"done\n")
        self._pipe.close()
        status = self._process.wait()
        if kind is None and status:
            raise RuntimeError(f"git fast-import ended with {status}")

    def commit(self, files: list[_File], message: str, at: datetime) -> None:
        who = f"Previously <previously@localhost> {int(at.timestamp())} +0000"
        subject = message.encode()
        head = f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(subject)}\n"
        self._pipe.write(head.encode() + subject + b"\n")
        for file in files:
            self._pipe.write(b"M 100644 inline %s\ndata %d\n%s\n" % (file.path.encode(), len(file.data), file.data))
            path = self._root / file.path
            if path.parent not in self._made:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._made.add(path.parent)
            path.write_bytes(file.data)

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin


def _settle(folder: MemoryFolder) -> None:
    """What is known of the folder when it was in use: packed, index built, nothing due."""
    folder.state.make()
    head = folder.repository.head()
    folder.state.save_committed(Committed(head, blobs_at(folder, [CARD, STRANDS], head)))
    folder.state.save_derived_head(head)
    git = ["git", "-c", "pack.threads=1", "-c", "repack.writeBitmaps=false"]
    subprocess.run([*git, "repack", "-a", "-d", "-q", "--window=5"], cwd=folder.root, check=True)
    folder.repository.upkeep()
    folder.repository.rebuild_index()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.seed", description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--sizes", default="100,10000,36500")
    options = parser.parse_args()
    for size in sizes_of(options.sizes):
        made = seed_benchmark(options.cache, size)
        print(f"{made.root}: {made.slices} slices, {made.turns} turns, {made.strands} strands")


def sizes_of(text: str) -> list[int]:
    """`100,10000` as numbers, ascending."""
    return sorted({int(one) for one in text.split(",")})


if __name__ == "__main__":
    main()
