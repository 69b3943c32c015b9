"""The work after a boundary, in the worker: strands and timeline made new, one commit, the repository kept small.

One person's close work runs one at a time, oldest close first, and any step may be delivered twice.
"""

import logging
from datetime import datetime

from memory.conversation.due import is_owed
from memory.conversation.settle import settle
from memory.folder import derived, todo
from memory.folder.errors import Damaged, GitError, LockTimeout, NotThere
from memory.folder.store import MemoryFolder
from memory.folder.touched import close_owner

log = logging.getLogger(__name__)


def consolidate_strands(folder: MemoryFolder, slice_id: str, *, now: datetime) -> bool:
    """Recompute strands and timeline after this slice closed; False when it is not its time or was done already.

    A slice that still owes a reply is left until that reply has ended, which enqueues it again.
    """
    try:
        with folder.work_lock():
            if not _is_due(folder, slice_id, now):
                return False
            made = derived.reconcile(folder)
            with folder.files_lock(timeout=30.0):
                derived.put(folder, made, owner=close_owner(slice_id), now=now)
                folder.state.save_todo([work for work in folder.state.todo() if not _is_close_of(work, slice_id)])
            return True
    except (LockTimeout, Damaged, GitError) as error:
        log.warning("strands of %s stay as they are for now: %s", folder.root.name, error)
        return False


def upkeep(folder: MemoryFolder, *, now: datetime) -> None:
    """Commit the pass and keep the repository small and its history quick to read."""
    settle(folder, now=now)
    try:
        with folder.work_lock():
            folder.repository.upkeep()
    except (LockTimeout, GitError) as error:
        log.warning("upkeep of %s is left for the next close: %s", folder.root.name, error)


def _is_due(folder: MemoryFolder, slice_id: str, now: datetime) -> bool:
    if not any(_is_close_of(work, slice_id) for work in folder.state.todo()):
        return False
    try:
        found = folder.slice(slice_id)
    except (NotThere, Damaged):
        return True  # what is left of it still has to leave or keep its place in the strands
    return not found.active and not any(is_owed(folder, found, entry.turn_id, now) for entry in found.person_entries)


def _is_close_of(work: todo.Work, slice_id: str) -> bool:
    return work.what == todo.CLOSE and work.slice_id == slice_id
