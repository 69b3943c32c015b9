"""What can be said of a folder without telling a word of it: how much there is, what is unfinished, what is wrong."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory.conversation.due import owed, recent_slices, uncommitted
from memory.folder import todo
from memory.folder.errors import Damaged, ForeignLock, ForeignOwner, GitError, NewerFormat, NotThere
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice, newest_first

FORMAT, OWNER, LOCK, BUSY, GIT, STRANDS, MERGES, DISK = (
    "newer_format",
    "foreign_owner",
    "foreign_lock",
    "busy",
    "git",
    "strands",
    "merges",
    "disk",
)


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """What there is still to do for a person; cheap to find out."""

    owed: int = 0
    """Replies."""
    closes: int = 0
    """Close passes that are not at their end."""
    failed_closes: int = 0
    """Of these, those whose analysis failed and is tried again."""
    uncommitted: int = 0
    """Commits that could be made now and are not."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Numbers of one folder; `size` in bytes of its repository, `trouble` a code or '' when it is healthy."""

    slices: int = 0
    strands: int = 0
    dry: int = 0
    damaged: int = 0
    last_activity: datetime | None = None
    size: int = 0
    trouble: str = ""


def unfinished(folder: MemoryFolder, now: datetime) -> Unfinished:
    """Count what is still to do."""
    if not folder.exists():
        return Unfinished()
    closes = [work for work in folder.state.todo() if work.what == todo.CLOSE]
    return Unfinished(
        owed=len(owed(recent_slices(folder, now), folder, now)),
        closes=len(closes),
        failed_closes=sum(work.attempts > 0 for work in closes),
        uncommitted=len(uncommitted(folder, now)),
    )


def facts(folder: MemoryFolder) -> Facts:
    """Count what is there; reads the timeline months, so about a second in a folder of many years."""
    if not folder.exists():
        return Facts()
    slices = dry = damaged = 0
    for found in newest_first(folder.root):
        slices += 1
        if isinstance(found, DamagedSlice):
            damaged += 1
        else:
            dry += found.dry
    newest = next((found for found in folder.newest(10) if isinstance(found, Slice)), None)
    strands = _strands(folder)
    return Facts(
        slices=slices,
        strands=strands or 0,
        dry=dry,
        damaged=damaged,
        last_activity=newest.last_at if newest else None,
        size=_size(folder.root / ".git"),
        trouble=health(folder) or (STRANDS if strands is None else ""),
    )


def health(folder: MemoryFolder) -> str:
    """What keeps the folder from being written and committed, as a code; '' when nothing does."""
    try:
        if folder.repository.busy():
            return BUSY
        folder.repository.clear_stale_locks()
        folder.merges()
    except NewerFormat:
        return FORMAT
    except ForeignOwner:
        return OWNER
    except ForeignLock:
        return LOCK
    except Damaged:
        return MERGES
    except (GitError, NotThere):
        return GIT
    except OSError:
        return DISK
    return ""


def _strands(folder: MemoryFolder) -> int | None:
    """How many strands there are; None when their index cannot be read."""
    try:
        return len(folder.strands())
    except Damaged:
        return None


def _size(directory: Path) -> int:
    """The bytes of all files below; what goes away meanwhile counts as nothing."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue
    return total
