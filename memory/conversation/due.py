"""What is owed to one person, found out from their files: one answer for the sweep, a start, a page and Try again."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.conversation.analysing import is_analysed
from memory.conversation.outcomes import outcome
from memory.conversation.status import OWED_FOR
from memory.folder import todo
from memory.folder.closing import MINUTES
from memory.folder.errors import Damaged, NotThere
from memory.folder.paths import minute_of, newest_slice_ids
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.touched import turn_of


@dataclass(frozen=True)
class Answer:
    """A reply is owed to this turn."""

    slice_id: str
    turn_id: str


@dataclass(frozen=True)
class Close:
    """A slice has closed, and this step of its close pass comes next."""

    slice_id: str
    step: str = todo.ANALYSE_CLOSE


@dataclass(frozen=True)
class Settle:
    """Written files wait for their commit, commits for git's index, or strands for a merge that was undone."""


Job = Answer | Close | Settle

LOOK_BACK_SLICES = 200


def due(folder: MemoryFolder, now: datetime) -> list[Job]:
    """The jobs due now: of the replies owed the oldest (each enqueues the next), a close pass, commits that wait."""
    if not folder.exists():
        return []
    jobs: list[Job] = []
    waiting = owed(recent_slices(folder, now), folder, now)
    jobs.extend(waiting[:1])
    work = next_close(folder.state.todo(), {answer.slice_id for answer in waiting}, now)
    if work:
        jobs.append(Close(work.slice_id, work.step))
    if uncommitted(folder, now) or folder.state.index_due() or folder.state.strands_due():
        jobs.append(Settle())
    return jobs


def next_close(works: list[todo.Work], owing: set[str], now: datetime) -> todo.Work | None:
    """The close pass to go on with: the one under way, for passes never interleave, else the oldest that is due.

    A slice that owes a reply (`owing`) is not begun yet.
    """
    closes = [work for work in works if work.what == todo.CLOSE]
    under_way = [work for work in closes if work.step != todo.STEPS[0]]
    ready = [
        work for work in closes if work.slice_id not in owing and (work.not_before is None or work.not_before <= now)
    ]
    return min(under_way or ready, key=lambda work: work.slice_id, default=None)


def nothing_due(folder: MemoryFolder, now: datetime) -> bool:
    """Whether the person's pending marker may go: no job now, and none that only waits for its time."""
    waits = any(work.what == todo.CLOSE for work in folder.state.todo())
    return not waits and not folder.state.touched() and not due(folder, now)


def owed(slices: list[Slice], folder: MemoryFolder, now: datetime) -> list[Answer]:
    """The turns of these slices, in message order, that are owed a reply.

    Owed is a turn with no agent entry and no recorded outcome whose message is less than 24 hours old.
    """
    return [
        Answer(found.slice_id, entry.turn_id)
        for found in sorted(slices, key=lambda one: one.slice_id)
        for entry in found.person_entries
        if is_owed(folder, found, entry.turn_id, now)
    ]


def is_owed(folder: MemoryFolder, found: Slice, turn_id: str, now: datetime) -> bool:
    """Whether this turn of the slice, as just read, is owed a reply."""
    entry = found.entry(turn_id, "user")
    return (
        entry is not None
        and found.entry(turn_id, "agent") is None
        and now - entry.at < OWED_FOR
        and outcome(folder.state.directory, found.slice_id, turn_id) is None
    )


def uncommitted(folder: MemoryFolder, now: datetime) -> list[str]:
    """The owners of touched paths whose commit can be made now."""
    owners = dict.fromkeys(owner for touch in folder.state.touched().values() for owner in touch.owners)
    return [owner for owner in owners if has_ended(folder, owner, now)]


def has_ended(folder: MemoryFolder, owner: str, now: datetime, *, analysed: bool = False) -> bool:
    """Whether nothing more is to come from this owner: its turn is owed no reply, its close pass is through.

    A turn that is being analysed has not ended, unless `analysed` says not to wait for that.
    """
    turn = turn_of(owner)
    if turn is None:
        work = todo.close_of(folder.state.todo(), owner.removeprefix("close "))
        return work is None or work.step == todo.UPKEEP
    try:
        if is_owed(folder, folder.slice(turn[0]), turn[1], now):
            return False
        return analysed or not is_analysed(folder, *turn)
    except (NotThere, Damaged):
        return True


def recent_slices(folder: MemoryFolder, now: datetime) -> list[Slice]:
    """The readable slices that can still hold a message younger than a reply is owed for, newest first."""
    oldest = now - OWED_FOR - timedelta(minutes=MINUTES[-1])
    found = []
    for slice_id in newest_slice_ids(folder.root, LOOK_BACK_SLICES):
        if minute_of(slice_id) < oldest:
            break
        try:
            found.append(folder.slice(slice_id))
        except (NotThere, Damaged):
            continue
    return found
