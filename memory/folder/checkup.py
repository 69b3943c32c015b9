"""What is wrong with a folder, found without changing a byte, and the mending of what code can mend.

Derived state is made anew and unreadable lines of closed slices move to their appendix; no other canonical byte
changes: what a person has to decide is told with its remedy.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from memory.folder import derived, rewriting, slices, timeline
from memory.folder.card import parse_card, problems
from memory.folder.errors import (
    Damaged,
    FolderError,
    ForeignLock,
    ForeignOwner,
    GitError,
    NewerFormat,
    NotThere,
    Outside,
)
from memory.folder.paths import CARD, MERGES, STRANDS, core_file, month_file, slice_ids
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Write

RECENT_SLICES = 3
MENDED_OWNER = "mended by doctor"
PLAIN_FILES = "Put the file itself there; the files of a memory are plain files."


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong: where (a relative file, or '' for the whole folder), what, and what to do.

    `mendable` says whether `mend` does it.
    """

    path: str
    what: str
    remedy: str
    mendable: bool = False


def examine(folder: MemoryFolder) -> Iterator[Finding]:
    """Yield all findings about a folder, git first; changes nothing and may run while people talk."""
    if not folder.exists():
        if folder.root.is_dir() and any(folder.root.iterdir()):
            remedy = "Restore this folder from a backup, or move its files away; until then nothing can be said in it."
            yield Finding(path="", what="it has files but no git repository", remedy=remedy)
        return
    try:
        yield from _git(folder)
        yield from _links(folder)
        merged = _merges(folder)
        yield from merged
        yield from _slices(folder)
        yield from _card(folder)
        if not merged:
            yield from _derived(folder)
    except NewerFormat as error:
        yield Finding(path="", what=str(error), remedy="Upgrade Previously; this version must not write here.")
    except ForeignOwner as error:
        yield Finding(path="", what=str(error), remedy="Give the folder to the user that the server runs as.")
    except GitError as error:
        remedy = "Look at it with git; the files beside .git still hold every word that is not lost."
        yield Finding(path="", what=str(error), remedy=remedy)
    except NotThere as error:
        yield Finding(path="", what=str(error), remedy=PLAIN_FILES)


def mend(folder: MemoryFolder, *, now: datetime) -> list[str]:
    """Mend what `examine` calls mendable; returns the paths written, which wait for their commit.

    Raises FolderError when the folder cannot be worked on now.
    """
    written: list[str] = []
    for slice_id in slice_ids(folder.root):
        with folder.files_lock(timeout=30.0):
            if _has_strays(folder, slice_id):
                rewriting.change(folder, slice_id, partial(_moved, folder), owner=MENDED_OWNER)
                written.append(slice_id)
    try:
        made = derived.rebuild(folder)
    except Damaged:
        return written  # strand-merges.json is canonical: nothing is derived from a guess at it
    with folder.files_lock(timeout=30.0):
        before = set(folder.state.touched())
        derived.put(folder, made, owner=MENDED_OWNER, now=now)
        written += sorted(set(folder.state.touched()) - before)
    return written


def _git(folder: MemoryFolder) -> Iterator[Finding]:
    repository = folder.repository
    repository.format()
    why = repository.busy()
    if why:
        remedy = "Finish it with git, or check out a branch; commits wait until then."
        yield Finding(path="", what=f"git is in the middle of something: {why}", remedy=remedy)
    try:
        repository.clear_stale_locks()
    except ForeignLock as lock:
        remedy = "If no git command is running in this folder, remove the file."
        yield Finding(path=str(lock), what="a lock that is not ours has been there for long", remedy=remedy)
    for line in repository.fsck():
        remedy = "Restore this folder from a backup; its work tree still holds every word that is not lost."
        yield Finding(path="", what=f"git fsck: {line}", remedy=remedy)


def _links(folder: MemoryFolder) -> Iterator[Finding]:
    for directory, directories, files in os.walk(folder.root / "memory"):
        for name in (*directories, *files):
            path = Path(directory, name)
            if path.is_symlink():
                relative = path.relative_to(folder.root).as_posix()
                yield Finding(path=relative, what="it is a symbolic link, which is not followed", remedy=PLAIN_FILES)


def _slices(folder: MemoryFolder) -> Iterator[Finding]:
    for slice_id in slice_ids(folder.root):
        try:
            found = folder.slice(slice_id)
        except Damaged as damage:
            yield Finding(path=damage.path, what=damage.why, remedy="Mend the front matter in an editor.")
        except (NotThere, Outside) as error:
            yield Finding(path=core_file(slice_id), what=str(error), remedy=PLAIN_FILES)
        else:
            if found.stray and not found.active:
                remedy = "--repair moves these lines to the appendix."
                yield Finding(
                    path=core_file(slice_id), what="it has lines that are no turns", remedy=remedy, mendable=True
                )


def _card(folder: MemoryFolder) -> Iterator[Finding]:
    data = folder.read(CARD)
    if data is None:
        return
    try:
        parse_card(data.decode("utf-8"))
    except (Damaged, UnicodeDecodeError) as error:
        yield Finding(path=CARD, what=str(error), remedy="Its owner can mend it on the card page.")
        return
    for problem in problems(data.decode("utf-8")):
        yield Finding(path=CARD, what=problem, remedy="Its owner can mend it on the card page.")


def _merges(folder: MemoryFolder) -> list[Finding]:
    try:
        folder.merges()
    except Damaged as damage:
        remedy = f"Mend the file, or bring its last version back: git checkout -- {MERGES}"
        return [Finding(path=damage.path, what=damage.why, remedy=remedy)]
    return []


def _derived(folder: MemoryFolder) -> Iterator[Finding]:
    made = derived.rebuild(folder)
    remedy = "--repair makes it anew from the slices."
    differs = "it differs from what the slices say"
    behind = False
    for month, lines in made.months.items():
        unlisted = _unlisted(folder, month, lines)
        if unlisted is None:
            yield Finding(path=month_file(month), what=differs, remedy=remedy, mendable=True)
        behind = behind or bool(unlisted)
    try:
        woven = folder.strands()
    except Damaged as damage:
        yield Finding(path=STRANDS, what=damage.why, remedy=remedy, mendable=True)
        return
    # Between closes the active slice's strands may lack earlier slices, or wait for their pruning.
    active = {found.path for found in folder.newest(RECENT_SLICES) if isinstance(found, Slice) and found.active}
    settled = [{key: paths for key, paths in one.items() if not active & set(paths)} for one in (woven, made.strands)]
    if settled[0] != settled[1] and not behind:
        yield Finding(path=STRANDS, what=differs, remedy=remedy, mendable=True)


def _unlisted(folder: MemoryFolder, month: str, lines: tuple[timeline.Line, ...]) -> set[str] | None:
    """The slices that a month does not list yet because they have just closed; None when anything else differs."""
    data = folder.read(month_file(month))
    listed = timeline.month_lines(folder.root, month)
    if data is not None and timeline.render_month(month, listed).encode() != data:
        return None
    there, right = ({line.id: line for line in one} for one in (listed, lines))
    differ = {slice_id for slice_id in there.keys() | right.keys() if there.get(slice_id) != right.get(slice_id)}
    just_closed = {work.slice_id for work in folder.state.todo()}
    just_closed |= {found.slice_id for found in folder.newest(RECENT_SLICES) if isinstance(found, Slice)}
    return differ if differ <= just_closed - there.keys() else None


def _has_strays(folder: MemoryFolder, slice_id: str) -> bool:
    try:
        found = folder.slice(slice_id)
    except FolderError:
        return False
    return bool(found.stray) and not found.active


def _moved(folder: MemoryFolder, data: bytes, found: Slice) -> list[Write]:
    if not found.stray:
        return []
    less = slices.without_strays(slices.decode(data)).encode()
    return [*rewriting.appendix(folder, found), Write(path=core_file(found.slice_id), found=data, data=less)]
