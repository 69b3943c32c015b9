"""The search index of one person: kept up with the folder, and asked.

The index is a file of its own in a cache, derived from the folder: it may be deleted at any time, and a damaged one is
made anew. Several processes may use it at once. Writers take the lock beside it for milliseconds; an index that is made
anew is built beside the old one, which goes on answering, and takes its place by a rename.
"""

import os
import secrets
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from pathlib import Path

from memory.folder import clock, locks
from memory.folder.errors import FolderError, LockTimeout
from memory.folder.paths import parse_slice_path
from memory.folder.search import building, candidates
from memory.folder.search import database as db
from memory.folder.search.answering import Hit, SecondScorer, Unit, answer
from memory.folder.search.building import Progress
from memory.folder.search.document import document, minute_number
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder

WRITE_SECONDS = 5.0
A_BATCH = 20
MANY = 1000
"""From so many slices to be read again, a new file is made: it answers sooner than the old one is mended."""


class NoIndex(FolderError):
    """There is no index that could answer: it was never made, or has just been given up. `catch_up` makes it."""


class SearchIndex:
    """One person's index. Cheap to make: it keeps nothing in memory, and every call opens the file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def catch_up(self, folder: MemoryFolder, *, progress: Progress | None = None) -> None:
        """Bring the index up to the folder: to HEAD, and to the uncommitted slices as they are on disk.

        Reads only what git says changed since; makes the index anew when it is missing, damaged, of another version,
        or of a commit that is no longer in the history. Raises LockTimeout when somebody else is making it anew, and
        GitError when git fails.
        """
        try:
            learned = self.learn(folder, progress=progress)
        except NoIndex:
            learned = False
        if not learned:
            self._make(folder, progress)

    def learn(self, folder: MemoryFolder, *, most: int = MANY, progress: Progress | None = None) -> bool:
        """Read again what changed in the folder, at most so many slices.

        False when nothing was read: there is more to read than that, or the index has to be made anew. It answers as
        before then. Raises NoIndex, LockTimeout, GitError.
        """
        with self._open() as database:
            reflected = db.meta(database)["commit"]
            loose = db.loose_minutes(database)
        behind = building.behind(folder, None if reflected is None else str(reflected), loose)
        if behind is None or len(behind.again) > most:
            return False
        for first in range(0, len(behind.again), A_BATCH):
            if progress:
                progress(first, len(behind.again))
            with self._writing(), self._open() as database, db.transaction(database):
                # Read under the lock, so that of two who learn the same slice the later writes what is later.
                for minute in behind.again[first : first + A_BATCH]:
                    db.put(database, minute, building.read(folder, minute), loose=minute in behind.loose)
        if behind.commit != reflected:
            with self._writing(), self._open() as database:
                db.set_meta(database, commit=behind.commit)
        if progress:
            progress(len(behind.again), len(behind.again))
        return True

    def unsound(self) -> str:
        """What is wrong with the file, '' when nothing is or there is none; changes nothing."""
        if not self.file.exists():
            return ""
        try:
            with closing(sqlite3.connect(f"{self.file.absolute().as_uri()}?mode=ro", uri=True)) as database:
                [[said]] = database.execute("PRAGMA quick_check(1)").fetchall()
        except sqlite3.Error as error:
            return str(error)
        return "" if said == "ok" else str(said)

    def replace(self, slice_: Slice) -> None:
        """Make the index hold this slice as it is given; without an index, nothing: `catch_up` will read it.

        Raises LockTimeout.
        """
        self._put(slice_.slice_id, slice_)

    def remove(self, slice_id: str) -> None:
        """Make the index forget a slice; raises BadId, LockTimeout."""
        self._put(slice_id, None)

    def search(
        self,
        query: str,
        *,
        now: datetime,
        timezone: str,
        person: str = "",
        limit: int = 10,
        unit: Unit = "slice",
        paths: Collection[str] | None = None,
        since: date | None = None,
        until: date | None = None,
        exclude: Collection[str] = (),
        second: SecondScorer | None = None,
    ) -> list[Hit]:
        """Return the best slices for a question in any language, best first; or, by `unit`, the best turns.

        A turn here is one entry. With the unit `turn` each hit has exactly one. Dates in the question are understood
        against `now` and the person's time zone; they give a place, never a filter. `person` is the name the person is
        called by: it stands for what they said, not for the few entries that mention it. What may be found at all is
        limited by slice paths (such as a strand's), by local days, both included, and by slice ids to leave out.
        `second` adds its opinion of each entry to the words' own. Raises NoIndex, LockTimeout, BadId.
        """
        asked = candidates.question(query, today=clock.local_day(now, timezone), person=person)
        only = candidates.Only(
            minutes=None if paths is None else candidates.minutes_of([*map(parse_slice_path, paths)]),
            since=since,
            until=until,
            exclude=candidates.minutes_of(exclude),
        )
        with self._open() as database:
            database.execute("BEGIN")  # one state of the file for all that is read
            return answer(database, asked, only, unit=unit, limit=limit, second=second)

    def _put(self, slice_id: str, slice_: Slice | None) -> None:
        found = document(slice_) if slice_ else None
        try:
            with self._writing(), self._open() as database, db.transaction(database):
                db.put(database, minute_number(slice_id), found, loose=True)
        except NoIndex:
            return

    def _make(self, folder: MemoryFolder, progress: Progress | None) -> None:
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locks.held(self._beside("making.lock"), timeout=0.0):
            for leftover in self.file.parent.glob(f"{self.file.name}.new-*"):
                leftover.unlink(missing_ok=True)  # of a process that was killed: we alone make it now
            new = self._beside(f"new-{secrets.token_hex(4)}")
            building.build(folder, new, progress=progress)
            with self._writing():
                self._swap(new)
        # What happened while it was made: it knows the commit from before, and the newest slices are read again.
        self.learn(folder)

    def _swap(self, new: Path) -> None:
        """Put the new file in place of the old, under the lock: no writer is at work."""
        journal = Path(f"{self.file}-journal")
        if journal.exists():
            # A killed writer's. It belongs to the old file and must not be played back into the new one.
            self.file.unlink(missing_ok=True)
            journal.unlink(missing_ok=True)
        os.rename(new, self.file)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The file, open; NoIndex when there is none. A damaged one is deleted."""
        try:
            there = os.stat(self.file).st_ino
            with closing(db.open_(self.file)) as database:
                yield database
        except (FileNotFoundError, db.Unusable) as error:
            raise NoIndex("there is no search index yet") from error
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise LockTimeout(f"{self.file.name} is held by somebody else") from error
            self._give_up(there)
            raise NoIndex(f"the search index was damaged: {error}") from error

    def _give_up(self, inode: int) -> None:
        """Delete the damaged file, unless another has taken its place by now."""
        try:
            if os.stat(self.file).st_ino == inode:
                self.file.unlink()
                Path(f"{self.file}-journal").unlink(missing_ok=True)
        except FileNotFoundError:
            return

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locks.held(self._beside("lock"), timeout=WRITE_SECONDS):
            yield

    def _beside(self, suffix: str) -> Path:
        return self.file.with_name(f"{self.file.name}.{suffix}")
