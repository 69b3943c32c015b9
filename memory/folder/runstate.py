"""The runtime files of one person, `<data>/run/<uuid>/`: disposable, outside git, never a word of record in the end.

What is lost here is found again: due replies from the slices, uncommitted writes by comparing files with HEAD.
"""

import json
import os
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from memory.folder import flushed
from memory.folder import todo as works_file
from memory.folder import touched as touched_file
from memory.folder.errors import NotThere
from memory.folder.gitdir import is_oid
from memory.folder.paths import is_relative, parse_slice_id
from memory.folder.strands import load_json
from memory.folder.todo import Work
from memory.folder.touched import Key, Touched


@dataclass(frozen=True)
class Committed:
    """Our last commit and the blob ids of the paths that we committed lately (None: deleted)."""

    head: str | None = None
    blobs: Mapping[str, str | None] = field(default_factory=dict)

    def then(self, head: str, blobs: Mapping[str, str | None]) -> "Committed":
        """What is known after one more commit; the paths of the last commits are enough."""
        kept = {path: blob for path, blob in self.blobs.items() if path not in blobs} | dict(blobs)
        return Committed(head, dict(list(kept.items())[-100:]))


class RunState:
    """The files of one person's run directory and the pending marker beside it."""

    def __init__(self, directory: Path, pending: Path, *, wanted: Callable[[], bool]) -> None:
        self.directory = directory
        self.pending = pending
        self._wanted = wanted

    def make(self) -> Path:
        """The run directory, made when missing; raises NotThere once the account is gone.

        Every lock is in this directory, so a task or a page that is late for a deleted account comes no further.
        """
        if not self.directory.is_dir():
            if not self._wanted():
                raise NotThere("the account is gone, and its files with it")
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.directory

    def clear_scratch(self) -> None:
        """Remove what a killed process left half-written; under files_lock, so that none of it is in use."""
        # A blob id has no hyphen, and the names that we write for good have no dot in front.
        for leftover in (*self.directory.glob(".*-*"), *(self.directory / "hand").glob("*-*")):
            leftover.unlink(missing_ok=True)

    def mark_pending(self) -> None:
        """Note, before anything else is done, that there may be work due for this person; raises NotThere as `make`."""
        self.make()
        self.pending.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.pending.touch(mode=0o600)

    def clear_pending(self) -> None:
        """Take the marker away; under files_lock, and only when nothing is due."""
        self.pending.unlink(missing_ok=True)

    def todo(self) -> list[Work]:
        """Background work that is due, oldest first."""
        return works_file.load(self.directory / "todo.json")

    def save_todo(self, works: list[Work]) -> None:
        """Replace the list of background work; under files_lock."""
        self._put("todo.json", works_file.render(works))

    def touched(self) -> Touched:
        """The uncommitted writes; absent or damaged reads as empty (recovery then compares files with HEAD)."""
        try:
            return touched_file.parse((self.directory / "touched").read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            self._compare_with_head()
            return {}

    def save_touched(self, listed: Touched) -> None:
        """Replace the list of uncommitted writes; under files_lock, before the files themselves are written."""
        self._put("touched", touched_file.render(listed))

    def committed(self) -> Committed | None:
        """What we know of our last commit; None when that is not known (a new or a lost run directory)."""
        try:
            match load_json((self.directory / "committed").read_text("utf-8")):
                case {"head": str() | None as head, "blobs": dict(blobs)} if _are_blobs(blobs):
                    return Committed(head, blobs)
        except (FileNotFoundError, ValueError):
            pass  # recovery finds out
        return None

    def save_committed(self, committed: Committed) -> None:
        """Remember our last commit; under files_lock."""
        self._put("committed", json.dumps({"head": committed.head, "blobs": dict(committed.blobs)}))

    def derived_head(self) -> str | None:
        """The commit that strands.json and the timeline reflect, None when that is not known."""
        try:
            return (self.directory / "derived").read_text("ascii") or None
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def save_derived_head(self, head: str | None) -> None:
        """Remember which commit the derived files reflect; under files_lock."""
        self._put("derived", head or "")

    def strands_due(self) -> str:
        """The owner for whose sake the strands have to be made anew before the next close; empty when nobody waits."""
        try:
            return (self.directory / "strands").read_bytes().decode("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def save_strands_due(self, owner: str) -> None:
        """Note, or with an empty text no longer note, that the strands are behind the merges; under files_lock."""
        self._put("strands", owner)

    def index_due(self) -> dict[str, str | None]:
        """Blob ids that are committed but not in git's index yet; recovery makes the index anew when this is lost."""
        try:
            match load_json((self.directory / "index").read_text("utf-8")):
                case dict(blobs) if _are_blobs(blobs):
                    return blobs
        except (FileNotFoundError, ValueError):
            pass  # as for a list that holds something else
        self._compare_with_head()
        return {}

    def save_index_due(self, blobs: Mapping[str, str | None]) -> None:
        """Replace the list of blob ids that the index lacks; under files_lock."""
        self._put("index", json.dumps(dict(blobs)))

    def backfill_failures(self) -> dict[str, int]:
        """How often the answer about an old slice was of no use, by slice id."""
        try:
            rows: Any = load_json((self.directory / "backfill").read_text("utf-8"))
            return {parse_slice_id(slice_id): int(count) for slice_id, count in rows.items()}
        except (FileNotFoundError, ValueError, TypeError, AttributeError):
            return {}

    def save_backfill_failures(self, failures: Mapping[str, int]) -> None:
        """Replace these counts; under files_lock."""
        self._put("backfill", json.dumps(dict(failures)))

    def evolution(self) -> str:
        """What card evolutions did that no slice has been told of yet; empty when there is nothing."""
        try:
            return (self.directory / "evolution").read_bytes().decode("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def save_evolution(self, text: str) -> None:
        """Replace what the next slice is to be told; under files_lock."""
        self._put("evolution", text)

    def claim_prompt(self, slice_id: str) -> None:
        """Note that a slice's system message is being made: what comes later is for the next. Under files_lock."""
        self._put(f"prompts/{parse_slice_id(slice_id)}.claimed", "")

    def prompt_claimed(self, slice_id: str) -> bool:
        """Whether a slice's system message was made or is being made."""
        return (self.directory / "prompts" / f"{parse_slice_id(slice_id)}.claimed").exists()

    def keep_hand(self, blob: str, data: bytes) -> None:
        """Keep bytes of a person aside that our next write covers, until they are committed as theirs."""
        path = self.directory / "hand"
        path.mkdir(mode=0o700, exist_ok=True)
        flushed.replace(path / blob, data, scratch=path)

    def hand(self, blob: str) -> bytes | None:
        """Bytes kept aside, None when they are gone."""
        try:
            return (self.directory / "hand" / blob).read_bytes()
        except FileNotFoundError:
            return None

    def drop_hand(self, blob: str) -> None:
        """Forget bytes that are committed now."""
        (self.directory / "hand" / blob).unlink(missing_ok=True)

    def prompt(self, slice_id: str) -> str | None:
        """The stored system message of a slice, None before it is made or when it is lost."""
        try:
            return (self.directory / "prompts" / f"{parse_slice_id(slice_id)}.md").read_bytes().decode("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def save_prompt(self, slice_id: str, text: str) -> None:
        """Store a slice's system message, flushed: the same bytes are sent until the slice is over."""
        path = self.make() / "prompts"
        path.mkdir(mode=0o700, exist_ok=True)
        for leftover in path.iterdir():
            if leftover.suffix not in (".md", ".order", ".claimed"):
                leftover.unlink(missing_ok=True)  # half-written by a killed worker: only who answers writes here
        flushed.replace(path / f"{parse_slice_id(slice_id)}.md", text.encode(), scratch=path)

    def forget_prompts(self, kept: Collection[str]) -> None:
        """Remove what was kept of the prompts of slices other than these; no request is made of them any more."""
        with suppress(FileNotFoundError):
            for path in (self.directory / "prompts").iterdir():
                if path.name.partition(".")[0] not in kept and not path.name.startswith("."):
                    path.unlink(missing_ok=True)

    def sent_order(self, slice_id: str) -> tuple[Key, ...]:
        """The order of messages in the last request of a slice; empty before the first or when it is lost."""
        try:
            rows: Any = load_json((self.directory / "prompts" / f"{parse_slice_id(slice_id)}.order").read_text("utf-8"))
            return tuple((str(turn_id), str(role)) for turn_id, role in rows)
        except (FileNotFoundError, ValueError, TypeError):
            return ()

    def save_sent_order(self, slice_id: str, order: tuple[Key, ...]) -> None:
        """Remember the order of messages that was sent, so that the next request begins with the same ones."""
        self._put(f"prompts/{parse_slice_id(slice_id)}.order", json.dumps(order))

    def _compare_with_head(self) -> None:
        """Forget our last commit, so that recovery compares files with HEAD: a list beside it is lost."""
        (self.directory / "committed").unlink(missing_ok=True)

    def _put(self, name: str, text: str) -> None:
        # Renamed into place but not flushed: after a power cut the file is the old one, the new one, or damaged, and
        # each of these is recovered from; a flush here would double the cost of a message.
        target = self.make() / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = target.with_name(f".{target.name}-{os.getpid()}-{secrets.token_hex(4)}")
        temporary.write_text(text, "utf-8")
        temporary.rename(target)


def _are_blobs(blobs: Mapping[Any, object]) -> TypeGuard[dict[str, str | None]]:
    """Whether this maps paths inside the folder to blob ids or None."""
    return all(is_relative(path) and (blob is None or is_oid(blob)) for path, blob in blobs.items())
