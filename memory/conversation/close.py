"""The close pass: what turns a transcript into memory, step by step, in the worker.

`analyse_close` → `evolve_card` → `backfill` → `consolidate_strands` → `upkeep`; each is a task of its own and the list
of work on disk says which comes next, so a step delivered twice or out of turn does nothing. Passes never interleave,
the oldest close goes first, and a step that fails leaves the others their work. A pass whose analysis failed is run
again within the hour, without backfill.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memory.conversation import backfill, consolidate, marking
from memory.conversation.companion import Companion
from memory.conversation.due import is_owed, next_close
from memory.conversation.evolving import evolve_card
from memory.conversation.person import Person
from memory.conversation.settle import settle
from memory.folder import todo
from memory.folder.errors import Damaged, FolderError, GitError, LockTimeout, NotThere
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder

RETRIES = (timedelta(minutes=5), timedelta(minutes=20))
"""When an analysis that failed is tried again, after the first time and after the second: three times within the hour."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """What every step of a close pass is given."""

    folder: MemoryFolder
    companion: Companion
    person: Person
    now: datetime


def run_step(
    folder: MemoryFolder, slice_id: str, step: str, *, companion: Companion, person: Person, now: datetime
) -> bool:
    """Run one step of the close pass of a slice if it is its turn; whether it was. What comes next is on disk then."""
    try:
        with folder.work_lock():
            work = _expected(folder, slice_id, step, now)
            if work is None:
                return False
            work = _STEPS[step](Pass(folder=folder, companion=companion, person=person, now=now), work)
            _go_on(folder, work, companion, now)
            return True
    except LockTimeout:
        return False  # another step is at work and says what comes next when it ends


def _expected(folder: MemoryFolder, slice_id: str, step: str, now: datetime) -> todo.Work | None:
    """The work this step is for; None when it was done, is not due yet, or another pass goes first."""
    works = folder.state.todo()
    work = todo.close_of(works, slice_id)
    if work is None or work.step != step:
        return None
    found = _slice(folder, slice_id)
    if found and found.active:
        # Listed just before a boundary that then did not take place: the next one lists it anew.
        with folder.files_lock(timeout=30.0):
            folder.state.save_todo(todo.without(folder.state.todo(), slice_id, todo.CLOSE))
        return None
    owing = (
        {slice_id} if found and any(is_owed(folder, found, one.turn_id, now) for one in found.person_entries) else set()
    )
    return work if next_close(works, owing, now) == work else None


def _go_on(folder: MemoryFolder, work: todo.Work, companion: Companion, now: datetime) -> None:
    """Note the next step, or after the last one whether and when the analysis is tried again."""
    last = work.step == todo.STEPS[-1]
    if not last:
        work = replace(work, step=todo.STEPS[todo.STEPS.index(work.step) + 1])
    elif companion.model and work.attempts < len(RETRIES) and marking.waits_for_marks(_slice(folder, work.slice_id)):
        pause = RETRIES[work.attempts]
        work = replace(work, step=todo.STEPS[0], attempts=work.attempts + 1, not_before=now + pause)
        last = False
    with folder.files_lock(timeout=30.0):
        works = [
            work if (one.what, one.slice_id) == (todo.CLOSE, work.slice_id) else one for one in folder.state.todo()
        ]
        folder.state.save_todo(todo.without(works, work.slice_id, todo.CLOSE) if last else works)


def _analyse_close(given: Pass, work: todo.Work) -> todo.Work:
    try:
        worth_it = marking.mark(given.folder, work.slice_id, companion=given.companion, person=given.person)
    except (FolderError, OSError) as error:
        log.warning("slice %s is not marked: %s", work.slice_id, error)
        return work
    return replace(work, worth_it=bool(work.worth_it) or worth_it)


def _evolve_card(given: Pass, work: todo.Work) -> todo.Work:
    if work.worth_it:
        try:
            evolve_card(given.folder, work.slice_id, companion=given.companion, person=given.person, now=given.now)
        except (FolderError, OSError) as error:
            log.warning("the card of %s stays as it is: %s", given.folder.root.name, error)
    return work


def _backfill(given: Pass, work: todo.Work) -> todo.Work:
    if work.attempts == 0:
        try:
            backfill.backfill(given.folder, work.slice_id, companion=given.companion, person=given.person)
        except (FolderError, OSError) as error:
            log.warning("nothing is backfilled for %s: %s", given.folder.root.name, error)
    return work


def _consolidate_strands(given: Pass, work: todo.Work) -> todo.Work:
    try:
        consolidate.consolidate(
            given.folder,
            work.slice_id,
            companion=given.companion,
            now=given.now,
            commit_pass=lambda: _commit_pass(given, work),
        )
    except (FolderError, OSError) as error:
        log.warning("strands of %s stay as they are: %s", given.folder.root.name, error)
    return work


def _commit_pass(given: Pass, work: todo.Work) -> None:
    """Commit what the pass has written so far: from here on it counts as through, and what follows is apart from it."""
    with given.folder.files_lock(timeout=30.0):
        works = [replace(one, step=todo.UPKEEP) if one == work else one for one in given.folder.state.todo()]
        given.folder.state.save_todo(works)
    settle(given.folder, now=given.now)


def _upkeep(given: Pass, work: todo.Work) -> todo.Work:
    settle(given.folder, now=given.now)
    try:
        given.folder.repository.upkeep()
    except GitError as error:
        log.warning("upkeep of %s is left for the next close: %s", given.folder.root.name, error)
    return work


_STEPS: dict[str, Callable[[Pass, todo.Work], todo.Work]] = {
    todo.ANALYSE_CLOSE: _analyse_close,
    todo.EVOLVE_CARD: _evolve_card,
    todo.BACKFILL: _backfill,
    todo.CONSOLIDATE_STRANDS: _consolidate_strands,
    todo.UPKEEP: _upkeep,
}


def _slice(folder: MemoryFolder, slice_id: str) -> Slice | None:
    try:
        return folder.slice(slice_id)
    except (NotThere, Damaged):
        return None
