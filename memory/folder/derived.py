"""Derived state made anew from the slices: strands.json and the timeline months.

Made outside files_lock, because at tens of thousands of slices it takes longer than a message may wait; put in place
under the lock, with what the active slice gained meanwhile woven in. A rebuild reads every core.md and gives the same
bytes as the close passes gave.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.folder import strands, timeline
from memory.folder.clock import stamp
from memory.folder.errors import Damaged, NotThere
from memory.folder.paths import STRANDS, core_file, month_file, slice_ids, slice_of_file
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Write
from memory.folder.strands import Merges
from memory.folder.timeline import Line

RECENT_SLICES = 3


@dataclass(frozen=True, kw_only=True)
class Derived:
    """What the derived files are to hold: the strands, and the months whose content changes."""

    strands: strands.Strands
    months: dict[str, tuple[Line, ...]]
    merges: Merges
    """The merges that were followed."""
    head: str | None
    """The commit that this reflects."""
    files: dict[str, bytes]
    """All of it as the files are to be; rendered with the rest, before anybody has to wait for the lock."""


def reconcile(folder: MemoryFolder) -> Derived:
    """Recompute from the timeline months, reading again only slices changed since the commit they reflect.

    Slices that no month lists are read, too: new ones, and those that a person put there. Reads every core.md when that
    commit is not known or no longer in the history. Raises Damaged when
    strand-merges.json cannot be read: it is canonical, and nothing is derived from a guess at it.
    """
    head = folder.repository.head()
    reflected = folder.state.derived_head()
    if reflected is None or head is None or not folder.repository.is_ancestor(reflected, head):
        return rebuild(folder)
    touched = [*folder.repository.changed(reflected, head), *folder.state.touched()]
    again = {slice_id for path in touched if (slice_id := slice_of_file(path)) and path == core_file(slice_id)}
    return _derived(folder, again, head)


def rebuild(folder: MemoryFolder) -> Derived:
    """Recompute from every core.md; of one that is damaged the last known line is kept."""
    return _derived(folder, set(slice_ids(folder.root)), folder.repository.head())


def put(folder: MemoryFolder, derived: Derived, *, owner: str, now: datetime) -> None:
    """Write the derived files that differ; under files_lock.

    Turns that were answered while it was made have woven the active slice further: their tags are added again. If a
    merge was undone or made meanwhile, nothing is written, and it is noted that the strands have to be made anew.
    """
    woven = derived.strands
    merges = folder.merges()
    if merges != derived.merges:
        folder.state.save_strands_due(folder.state.strands_due() or owner)
        return
    for found in folder.newest(RECENT_SLICES):
        if isinstance(found, Slice) and found.active:
            woven = strands.weave(woven, found.tags, found.path, merges)
    files = derived.files
    if woven is not derived.strands:
        files = files | {STRANDS: strands.render_strands(woven).encode()}
    writes = []
    for path, data in files.items():
        before = folder.read(path)
        if before != data:
            writes.append(Write(path=path, found=before, data=data))
    if any(write.path == STRANDS for write in writes):
        set_aside_if_corrupt(folder, now=now)
    folder.apply(writes, owner=owner)
    folder.state.save_derived_head(derived.head)
    if folder.state.strands_due():
        folder.state.save_strands_due("")


def renew(folder: MemoryFolder, *, now: datetime) -> None:
    """Make the derived files anew if it is noted that they have to be, since a merge was undone.

    Raises Damaged when strand-merges.json cannot be read and GitError when history cannot: they stay due then.
    """
    owner = folder.state.strands_due()
    if owner:
        made = reconcile(folder)
        with folder.files_lock(timeout=30.0):
            put(folder, made, owner=owner, now=now)


def set_aside_if_corrupt(folder: MemoryFolder, *, now: datetime) -> bool:
    """Keep a corrupt strands.json as `strands.json.damaged-<time>`; whether there was one. Under files_lock."""
    try:
        folder.strands()
    except Damaged:
        name = f"{STRANDS}.damaged-{stamp(now).replace(':', '')}"
        (folder.root / STRANDS).rename(folder.root / name)
        return True
    return False


def _derived(folder: MemoryFolder, again: Iterable[str], head: str | None) -> Derived:
    merges = folder.merges()
    months = {month: timeline.month_lines(folder.root, month) for month in timeline.months(folder.root)}
    lines = {line.id: line for month in months.values() for line in month}
    there = (found for month in months for found in timeline.ids_of_month(folder.root, month, known=lines))
    changed, gone = [], []
    for slice_id in {*again, *(found for found in there if found not in lines)}:
        try:
            changed.append(folder.slice(slice_id))
        except NotThere:
            gone.append(slice_id)
        except Damaged:
            continue  # its last known line stays, so a broken file takes nothing out of the strands
    for slice_id in gone:
        lines.pop(slice_id, None)
    lines |= {found.slice_id: timeline.line_of(found, ()) for found in changed}
    tagged = [
        strands.Tagged(path=line.path, start=line.start, active=line.active, tags=line.tags) for line in lines.values()
    ]
    newest_end = max((line.end for line in lines.values() if line.end), default=None)
    woven = strands.compute(tagged, merges, newest_end)
    renewed = timeline.reconcile(months, woven, changed, gone=gone)
    files = {month_file(month): timeline.render_month(month, lines).encode() for month, lines in renewed.items()}
    files[STRANDS] = strands.render_strands(woven).encode()
    return Derived(strands=woven, months=renewed, merges=merges, head=head, files=files)
