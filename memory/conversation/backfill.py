"""backfill: at a boundary, a few old slices without marks get theirs; their words are not touched."""

import logging
from itertools import islice

from memory.conversation import marking
from memory.conversation.companion import Companion
from memory.conversation.person import Person
from memory.folder import timeline, todo
from memory.folder.errors import Damaged, NotThere
from memory.folder.store import MemoryFolder
from memory.folder.touched import close_owner
from memory.llm.structured import Failure

MOST = 3
FAILURES = 3
"""A slice whose answer was of no use so many times goes to the end of the queue."""

log = logging.getLogger(__name__)


def backfill(folder: MemoryFolder, closed: str, *, companion: Companion, person: Person) -> None:
    """Give up to 3 slices marks at the boundary of the slice `closed`, whose commit they ride in; under work_lock.

    Dry slices go first, then those with the floor's marks, oldest first. A model that cannot be reached ends it and
    counts against no slice.
    """
    if companion.model is None:
        return
    for slice_id in islice(_candidates(folder), MOST):
        try:
            failure = marking.mark_anew(
                folder, slice_id, companion=companion, person=person, owner=close_owner(closed), kind="backfill"
            )
        except (NotThere, Damaged) as error:
            log.warning("slice %s is passed over: %s", slice_id, error)
            continue
        if failure and not failure.reached:
            return
        _count(folder, slice_id, failure)


def _candidates(folder: MemoryFolder) -> list[str]:
    failures = folder.state.backfill_failures()
    busy = {work.slice_id for work in folder.state.todo() if work.what == todo.CLOSE}
    waiting = [line.id for line in timeline.unmarked(folder.root) if line.id not in busy]
    return sorted(waiting, key=lambda slice_id: failures.get(slice_id, 0) >= FAILURES)


def _count(folder: MemoryFolder, slice_id: str, failure: Failure | None) -> None:
    with folder.files_lock(timeout=30.0):
        failures = folder.state.backfill_failures()
        if failure:
            failures[slice_id] = failures.get(slice_id, 0) + 1
        else:
            failures.pop(slice_id, None)
        folder.state.save_backfill_failures(failures)
