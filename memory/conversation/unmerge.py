"""A person takes a merge of two strands back. The web writes that down; the worker makes the strands anew."""

from dataclasses import dataclass

from memory.folder.marks import cut
from memory.folder.paths import MERGES
from memory.folder.store import MemoryFolder, Write
from memory.folder.strands import render_merges, undo_merge

LONGEST_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class Undone:
    """The merge is marked undone; the strands are due to be made anew."""

    from_key: str
    to: str


@dataclass(frozen=True, kw_only=True)
class NotStanding:
    """No such merge stands: it was undone meanwhile, or the key went into another strand since."""

    from_key: str
    to: str


def unmerge(folder: MemoryFolder, from_key: str, to: str) -> Undone | NotStanding:
    """Mark the merge of one key into another undone, so that it never comes back, and note that strands are due.

    Raises Damaged when strand-merges.json cannot be read, LockTimeout, and OSError when the disk does not take it.
    """
    if not folder.exists():
        return NotStanding(from_key=from_key, to=to)
    folder.state.mark_pending()
    with folder.files_lock():
        merges = folder.merges()
        if not any(merge.to == to and not merge.undone for merge in merges.get(from_key, ())):
            return NotStanding(from_key=from_key, to=to)
        owner = undo_owner(from_key, to)
        # Noted first: to make the strands anew for nothing does no harm.
        folder.state.save_strands_due(owner)
        written = render_merges(undo_merge(merges, from_key)).encode()
        folder.apply([Write(path=MERGES, found=folder.read(MERGES), data=written)], owner=owner)
    return Undone(from_key=from_key, to=to)


def undo_owner(from_key: str, to: str) -> str:
    """The name of the commit, which is its message; keys that are too long for a line are cut."""
    shown = (cut(" ".join(key.split()), LONGEST_SHOWN) for key in (from_key, to))
    return f"undo merge {' → '.join(shown)}"
