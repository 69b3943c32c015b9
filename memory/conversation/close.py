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
from memory.conversation.due import next_close, owed, recent_slices
from memory.conversation.evolving import evolve_card
from memory.conversation.person import Person
from memory.conversation.settle import renew_strands, settle
from memory.folder import todo
from memory.folder.errors import Damaged, FolderError, GitError, LockTimeout, NotThere
from memory.folder.paths import newest_slice_ids
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder

RETRIES = (timedelta(minutes=5), timedelta(minutes=20))
"""When an analysis that failed is tried again, after the first and after the second time: thrice within the hour."""

KEPT_PROMPTS = 5
"""Of how many of the newest slices the system message is kept: a reply may still be tried again there."""

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
            done = _STEPS[step](Pass(folder=folder, companion=companion, person=person, now=now), work)
            _go_on(folder, done, companion, now)
            return True
    except LockTimeout:
        return False  # another step is at work and says what comes next when it ends


def take_up(folder: MemoryFolder, slice_id: str) -> None:
    """Note that the close pass of a slice was found lying by the sweep; one that is at work is left alone.

    Such a pass backfills nothing: that is done at a boundary and at no other time, where it disturbs nobody.
    """
    try:
        with folder.work_lock(), folder.files_lock(timeout=30.0):
            works = folder.state.todo()
            work = todo.close_of(works, slice_id)
            if work and not work.swept:
                folder.state.save_todo([replace(one, swept=True) if one == work else one for one in works])
    except LockTimeout:
        return


def _expected(folder: MemoryFolder, slice_id: str, step: str, now: datetime) -> todo.Work | None:
    """The work this step is for; None when it was done, is not due yet, or another pass goes first."""
    works = folder.state.todo()
    work = todo.close_of(works, slice_id)
    if work is None or work.step != step:
        return None
    found = _slice(folder, slice_id)
    if found and found.active:
        with folder.files_lock(timeout=30.0):
            found = _slice(folder, slice_id)
            if found and found.active:
                # Listed just before a boundary that then did not take place: the next one lists it anew.
                folder.state.save_todo(todo.without(folder.state.todo(), slice_id, todo.CLOSE))
        return None
    owing = {each.slice_id for each in owed(recent_slices(folder, now), folder, now)}
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
        works = folder.state.todo()
        noted = todo.close_of(works, work.slice_id)
        if noted and noted.worth_it:
            work = replace(work, worth_it=True)  # said by the analysis of a last turn that ended only now
        if last:
            works = todo.without(works, work.slice_id, todo.CLOSE)
        else:
            works = [work if one == noted else one for one in works]
        folder.state.save_todo(works)


def _analyse_close(given: Pass, work: todo.Work) -> todo.Work:
    try:
        worth_it = marking.mark(given.folder, work.slice_id, companion=given.companion, person=given.person)
    except (FolderError, OSError) as error:
        log.warning("slice %s is not marked: %s", work.slice_id, error)
        return work
    return replace(work, worth_it=bool(work.worth_it) or worth_it)


def _evolve_card(given: Pass, work: todo.Work) -> todo.Work:
    if not work.worth_it or not _asks(given, work):
        return work
    try:
        answered = evolve_card(
            given.folder, work.slice_id, companion=given.companion, person=given.person, now=given.now
        )
    except (FolderError, OSError) as error:
        log.warning("the card of %s stays as it is: %s", given.folder.root.name, error)
        return work
    return _noted(work) if answered else work


def _backfill(given: Pass, work: todo.Work) -> todo.Work:
    if work.attempts == 0 and not work.swept:
        try:
            backfill.backfill(given.folder, work.slice_id, companion=given.companion, person=given.person)
        except (FolderError, OSError) as error:
            log.warning("nothing is backfilled for %s: %s", given.folder.root.name, error)
    return work


def _consolidate_strands(given: Pass, work: todo.Work) -> todo.Work:
    try:
        answered = consolidate.consolidate(
            given.folder,
            work.slice_id,
            model=given.companion.model if _asks(given, work) else None,
            called=given.companion.called,
            now=given.now,
            commit_pass=lambda: _commit_pass(given, work),
        )
    except (FolderError, OSError) as error:
        log.warning("strands of %s stay as they are: %s", given.folder.root.name, error)
        return work
    return _noted(work) if answered else work


def _commit_pass(given: Pass, work: todo.Work) -> None:
    """Commit what the pass has written so far: from here on it counts as through, and what follows is apart from it."""
    with given.folder.files_lock(timeout=30.0):
        works = given.folder.state.todo()
        noted = todo.close_of(works, work.slice_id)
        given.folder.state.save_todo([replace(one, step=todo.UPKEEP) if one == noted else one for one in works])
    settle(given.folder, now=given.now)


def _upkeep(given: Pass, work: todo.Work) -> todo.Work:
    renew_strands(given.folder, now=given.now)
    settle(given.folder, now=given.now)
    given.folder.state.forget_prompts(newest_slice_ids(given.folder.root, KEPT_PROMPTS))
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


def _asks(given: Pass, work: todo.Work) -> bool:
    """Whether this step may ask its colleague: once a slice; and in a pass that is run again only if it got marks."""
    again = work.attempts > 0 and marking.waits_for_marks(_slice(given.folder, work.slice_id))
    return work.step not in work.answered and not again


def _noted(work: todo.Work) -> todo.Work:
    """The work, with its step among those whose colleague has answered."""
    return replace(work, answered=(*work.answered, work.step))


def _slice(folder: MemoryFolder, slice_id: str) -> Slice | None:
    try:
        return folder.slice(slice_id)
    except (NotThere, Damaged):
        return None
