"""Taking up a folder after a crash, a restore, or the loss of its runtime files."""

from collections.abc import Mapping

from memory.folder.branch import blobs_at
from memory.folder.errors import Damaged, ForeignLock, NotThere
from memory.folder.git import blob_id
from memory.folder.mending import entries_beyond
from memory.folder.paths import CARD, MERGES, agent_file, appendix_file, core_file, frozen_card_file, slice_of_file
from memory.folder.runstate import Committed
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.touched import (
    CARD_OWNER,
    Key,
    Touch,
    Touched,
    close_owner,
    hand_over,
    recovered_owner,
    turn_of,
    turn_owner,
)

RECENT_SLICES = 3
MENDED_OWNER = "recovered files"


def recover(folder: MemoryFolder) -> ForeignLock | None:
    """Make the folder fit for work: stale locks of ours and half-written files go, lost lists are made again.

    Under files_lock. Returns the old git lock that is not ours, if there is one: it is left alone and reported.
    Raises HeadBusy while the person's own git is in the middle of something.
    """
    foreign = None
    try:
        folder.repository.clear_stale_locks()
    except ForeignLock as lock:
        foreign = lock  # it may not be in the way of our commits at all
    folder.clear_scratch()
    _give_away_the_unsaid(folder)
    if folder.state.committed() is None:
        _adopt(folder)
    return foreign


def _give_away_the_unsaid(folder: MemoryFolder) -> None:
    """Files written for a message that never came to be on disk get an owner whose commit they can ride in.

    A process killed in the middle of a boundary leaves the slice closed and no message behind it: that is the close's
    own work then. Without this the message, sent again, would make a second commit of its turn.
    """
    listed = folder.state.touched()
    owners = dict.fromkeys(owner for touch in listed.values() for owner in touch.owners)
    unsaid = [owner for owner in owners if _is_unsaid(folder, owner)]
    for owner in unsaid:
        closed = [id_ for path, touch in listed.items() if touch.boundary == owner and (id_ := slice_of_file(path))]
        listed = hand_over(listed, owner, close_owner(closed[0]) if closed else MENDED_OWNER)
    if unsaid:
        folder.state.save_touched(listed)


def _is_unsaid(folder: MemoryFolder, owner: str) -> bool:
    turn = turn_of(owner)
    try:
        return turn is not None and not folder.slice(turn[0]).has(turn[1])
    except NotThere:
        return True
    except Damaged:
        return False  # a person made it unreadable; the turn may well be in it


def _adopt(folder: MemoryFolder) -> None:
    """List what the newest slices and the card hold beyond HEAD, as when it was written.

    An answered turn becomes a `recovered turn`; one without a reply is listed like any turn that waits for its own.
    """
    head = folder.repository.head()
    listed: Touched = folder.state.touched()
    heads = blobs_at(folder, [CARD, MERGES], head)
    for found in reversed(folder.newest(RECENT_SLICES)):
        if isinstance(found, Slice):
            of_slice = [make(found.slice_id) for make in (core_file, agent_file, appendix_file, frozen_card_file)]
            heads |= blobs_at(folder, of_slice, head)
            listed = _adopted(folder, found, of_slice, head, heads) | listed
    for path in (CARD, MERGES):
        data = folder.read(path)
        if data is not None and path not in listed and blob_id(data) != heads[path]:
            first = next((touch.owners[0] for touch in listed.values()), CARD_OWNER)
            listed[path] = Touch(ours=(blob_id(data),), owners=(CARD_OWNER if head and path == CARD else first,))
    folder.state.save_touched(listed)
    folder.state.save_committed(Committed(head, heads))
    if head:
        folder.repository.rebuild_index()


def _adopted(
    folder: MemoryFolder, found: Slice, paths: list[str], head: str | None, heads: Mapping[str, str | None]
) -> Touched:
    on_disk = {path: data for path in paths if (data := folder.read(path)) is not None}
    changed = {path: data for path, data in on_disk.items() if blob_id(data) != heads[path]}
    core = core_file(found.slice_id)
    missing = [entry.key for entry in entries_beyond(folder, head, core, changed[core])] if core in changed else []
    owners = tuple(dict.fromkeys(_owner(found, key) for key in missing)) or (MENDED_OWNER,)
    return {
        path: Touch(ours=(blob_id(data),), owners=owners, entries=tuple(missing) if path == core else ())
        for path, data in changed.items()
    }


def _owner(found: Slice, key: Key) -> str:
    turn_id, _ = key
    answered = found.entry(turn_id, "agent") is not None
    return recovered_owner(found.slice_id, turn_id) if answered else turn_owner(found.slice_id, turn_id)
