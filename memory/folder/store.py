"""One person's folder: reading it, and writing it so that nothing is lost.

A `MemoryFolder` is cheap to make and keeps nothing in memory; every method looks at the disk. Writers hold
`files_lock` around all they read, decide and write. The web process only writes files; commits are made by the
worker (`commits.py`) from the list of touched paths that every write leaves.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from memory.folder import flushed, git, gitdir, locks
from memory.folder import strands as strands_file
from memory.folder import touched as touched_file
from memory.folder.card import empty_card
from memory.folder.clock import stamp
from memory.folder.errors import Damaged, FolderError, HeadBusy, NotThere
from memory.folder.paths import (
    CARD,
    MERGES,
    STRANDS,
    agent_file,
    core_file,
    inside,
    is_derived,
    newest_slice_ids,
    parse_slice_id,
)
from memory.folder.runstate import RunState
from memory.folder.slices import Slice, parse
from memory.folder.strands import Merges, Strands
from memory.folder.timeline import DamagedSlice
from memory.folder.touched import Key, Touched


class Moved(FolderError):
    """An editor saved the file while we were about to: read again and decide again."""


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where one person's things are: the repository, the runtime files, the pending marker."""

    root: Path
    run: Path
    pending: Path
    index: Path | None = None
    """The file of the search index, local to this host; without one it lies among the runtime files."""
    wanted: Callable[[], bool] = _always
    """Whether the account is still there; asked before anything is made for a person who has no folder."""


@dataclass(frozen=True, kw_only=True)
class Write:
    """One file as it is to be: all its bytes, of which the last `appended` are new (0: the file is replaced)."""

    path: str
    found: bytes | None
    data: bytes
    appended: int = 0
    entries: tuple[Key, ...] = ()
    boundary: bool = False


@lru_cache(maxsize=4)
def _parsed_strands(data: bytes) -> Strands:
    """Parsed once while the bytes stay the same: thousands of strands take a tenth of a second. Nobody changes it."""
    return strands_file.parse_strands(data.decode("utf-8"))


class MemoryFolder:
    """One person's files; made only by whoever has checked that the caller may see them."""

    def __init__(self, places: Places) -> None:
        self.root = places.root
        self.state = RunState(places.run, places.pending, wanted=lambda: self.exists() or places.wanted())
        self.index_file = places.index or places.run / "index.sqlite3"

    @property
    def repository(self) -> git.Repository:
        """The git side of the folder."""
        return git.Repository(self.root, self.state.directory)

    def files_lock(self, timeout: float = 5.0) -> AbstractContextManager[None]:
        """Around each read-modify-write and each commit; raises LockTimeout."""
        return locks.held(self.state.make() / "files.lock", timeout=timeout)

    def reply_lock(self, timeout: float = 0.0) -> AbstractContextManager[None]:
        """From the claim of a turn to its record; raises LockTimeout when another worker answers."""
        return locks.held(self.state.make() / "reply.lock", timeout=timeout)

    def work_lock(self, timeout: float = 0.0) -> AbstractContextManager[None]:
        """Around close work; raises LockTimeout when another worker is at it."""
        return locks.held(self.state.make() / "work.lock", timeout=timeout)

    def exists(self) -> bool:
        """Whether the person has a folder yet; a missing one is shown as an empty one."""
        return (self.root / ".git").is_dir()

    def read(self, relative: str) -> bytes | None:
        """The bytes of a file, None when there is none; raises Outside for a link or a path that leads out."""
        try:
            return inside(self.root, relative).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def slice(self, slice_id: str) -> Slice:
        """One slice as it is on disk now; raises BadId, NotThere, Damaged."""
        data = self.read(core_file(parse_slice_id(slice_id)))
        if data is None:
            raise NotThere(f"no slice {slice_id}")
        return parse(data, slice_id=slice_id)

    def newest(self, limit: int) -> list[Slice | DamagedSlice]:
        """The newest slices, newest first."""
        found: list[Slice | DamagedSlice] = []
        for slice_id in newest_slice_ids(self.root, limit):
            try:
                found.append(self.slice(slice_id))
            except Damaged as damage:
                found.append(DamagedSlice(id=slice_id, path=damage.path, why=damage.why))
            except NotThere:
                continue  # a directory without a core.md is no slice
        return found

    def card(self) -> str:
        """The live card's text, empty when there is none; bytes that are no UTF-8 read as U+FFFD."""
        return (self.read(CARD) or b"").decode("utf-8", "replace")

    def agent_text(self, slice_id: str) -> str:
        """A slice's agent.md, empty when there is none; bytes that are no UTF-8 read as U+FFFD."""
        return (self.read(agent_file(parse_slice_id(slice_id))) or b"").decode("utf-8", "replace")

    def strands(self) -> Strands:
        """strands.json, empty when there is none; a corrupt file is never taken for an empty one: it raises Damaged."""
        try:
            return _parsed_strands(self.read(STRANDS) or b"{}")
        except ValueError as error:
            raise Damaged(STRANDS, str(error)) from error

    def merges(self) -> Merges:
        """strand-merges.json, empty when there is none; raises Damaged."""
        try:
            return strands_file.parse_merges((self.read(MERGES) or b"{}").decode("utf-8"))
        except ValueError as error:
            raise Damaged(MERGES, str(error)) from error

    # Writing: every caller holds files_lock.

    def create(self, *, name: str, now: datetime, owner: str) -> None:
        """Make the folder when there is none: a repository and the empty card, which rides in `owner`'s commit."""
        self.state.make()  # raises when the account went while the caller waited for the lock
        if not self.exists():
            git.create(self.root)
        if self.read(CARD) is None and self._is_unborn():
            self.apply([Write(path=CARD, found=None, data=empty_card(name, stamp(now)).encode())], owner=owner)

    def _is_unborn(self) -> bool:
        try:
            return self.repository.head() is None
        except HeadBusy:
            return False

    def apply(self, writes: Sequence[Write], *, owner: str) -> None:
        """Write files in order, listed first as uncommitted work of `owner`; flushed when it returns.

        Raises Moved when somebody saved one of the files meanwhile (look again: the new file decides), OSError when the
        disk does not take it, NewerFormat. Derived files are written over: they can be made again.
        """
        gitdir.refuse_newer(self.root)
        listed = self.state.touched()
        committed = self.state.committed()
        for write in writes:
            listed = self._listed(listed, write, owner, committed.blobs.get(write.path) if committed else None)
        self.state.save_touched(listed)
        for write in writes:
            path = inside(self.root, write.path)
            if write.appended:
                size = len(write.data) - write.appended
                if not flushed.append(path, write.data[size:], size=size):
                    raise Moved(write.path)
            else:
                flushed.make_directories(path.parent, below=self.root)
                found = None if is_derived(write.path) else write.found
                if not flushed.replace(path, write.data, scratch=self.scratch(), found=found):
                    raise Moved(write.path)

    def _listed(self, listed: Touched, write: Write, owner: str, known: str | None) -> Touched:
        found = git.blob_id(write.found) if write.found is not None else None
        before = listed.get(write.path)
        after = touched_file.note(
            listed,
            write.path,
            found=found,
            left=git.blob_id(write.data),
            owner=owner,
            entries=write.entries,
            boundary=write.boundary,
        )
        if write.found is None or found is None or found in (before.ours if before else (known,)):
            return after
        # Neither our last write nor our last commit left these bytes: a person's, unless HEAD turns out to have them.
        self.state.keep_hand(found, write.found)
        return after | {write.path: replace(after[write.path], hand=found)}

    def keep_uncommitted(self, path: str) -> None:
        """Keep aside what our last write left at `path`, if no commit has it yet: the next write covers it for good."""
        data, listed = self.read(path), self.state.touched()
        touch = listed.get(path)
        if data is not None and touch and touch.hand is None and (blob := git.blob_id(data)) in touch.ours[1:]:
            self.state.keep_hand(blob, data)
            self.state.save_touched(listed | {path: replace(touch, hand=blob)})

    def scratch(self) -> Path:
        """Where files wait to be renamed into place: inside .git, so that none of them ever shows as untracked."""
        path = self.root / ".git" / "previously"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def clear_scratch(self) -> None:
        """Remove what a killed process left half-written; under files_lock, so that none of it is in use."""
        self.state.clear_scratch()
        with suppress(FileNotFoundError):
            for leftover in (self.root / ".git" / "previously").iterdir():
                leftover.unlink(missing_ok=True)
