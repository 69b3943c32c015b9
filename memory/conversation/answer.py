"""The turn is answered: claim, build the messages, stream, record, analyse, weave, commit. Runs in the worker.

Idempotent at every step: a second delivery finds the reply lock held or the entry written; a worker that dies leaves
the turn owed, and the next one begins a new attempt.
"""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime

from memory.conversation import journal, prompt, recall
from memory.conversation.analyse import analyse_turn
from memory.conversation.analysing import analysing
from memory.conversation.companion import Companion
from memory.conversation.due import Answer, Close, Job, owed
from memory.conversation.indexing import index_slice
from memory.conversation.inflight import ReplyWriter
from memory.conversation.outcomes import Outcome, outcome, record_outcome
from memory.conversation.person import Person
from memory.conversation.recording import record, record_cognition
from memory.conversation.remembering import take_evolution, wait_for_last_slice
from memory.conversation.settle import settle
from memory.conversation.speaking import Leaving, Reply, Speaker, Stopped, speak
from memory.folder import todo
from memory.folder.errors import Damaged, LockTimeout, NotThere
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.llm.errors import ModelError
from memory.llm.structured import Called

LONGEST_PAUSE = 60.0
RECENT_SLICES = 3

log = logging.getLogger(__name__)


def answer(
    folder: MemoryFolder,
    slice_id: str,
    turn_id: str,
    *,
    companion: Companion,
    person: Person,
    clock: Callable[[], datetime],
    enqueue: Callable[[Job], object],
) -> None:
    """Answer this turn, or the one before it that is still owed a reply; the next one owed is enqueued at its end.

    Returns at once when another worker answers this person, or when nothing is owed. Trouble with the model becomes
    the turn's outcome; trouble with the disk is raised, and the reply stays owed.
    """
    with ExitStack() as held_back:
        try:
            with folder.reply_lock():
                turn = _claim(folder, Answer(slice_id, turn_id), clock())
                if turn is None:
                    return
                held_back.enter_context(analysing(folder, turn.slice_id, turn.turn_id))
                ended = _reply(folder, turn, companion, person, clock)
        except LockTimeout:
            return
        if not ended:
            return
        _enqueue_next(folder, turn, clock(), enqueue)
        analyse_turn(folder, turn.slice_id, turn.turn_id, companion=companion, person=person, now=clock())
    settle(folder, now=clock())
    index_slice(folder, turn.slice_id)


def _claim(folder: MemoryFolder, asked: Answer, now: datetime) -> Answer | None:
    """The turn to answer now: the oldest that is owed a reply. Earlier turns get the commits they still lack."""
    settle(folder, now=now, analysed=True)
    slices = {found.slice_id: found for found in folder.newest(RECENT_SLICES) if isinstance(found, Slice)}
    try:
        slices.setdefault(asked.slice_id, folder.slice(asked.slice_id))
    except (NotThere, Damaged) as error:
        log.warning("turn %s of slice %s cannot be answered: %s", asked.turn_id, asked.slice_id, error)
        return None
    waiting = owed(list(slices.values()), folder, now)
    return waiting[0] if asked in waiting else None


def _reply(
    folder: MemoryFolder, turn: Answer, companion: Companion, person: Person, clock: Callable[[], datetime]
) -> bool:
    """Make and record one reply; False when it was left for another worker."""
    reply = Reply()
    with ReplyWriter(folder.state.directory, turn.slice_id, turn.turn_id, now=clock) as writer:
        with folder.files_lock():
            # A queued turn is stopped under the same lock: it is either ended already or begun from here on.
            if outcome(folder.state.directory, turn.slice_id, turn.turn_id):
                return True
            writer.attempt()
        speaker = Speaker(
            folder=folder, slice_id=turn.slice_id, companion=companion, person=person, writer=writer, clock=clock
        )
        try:
            _make(speaker, turn, reply)
            record(folder, turn.slice_id, turn.turn_id, reply.text, reply.block(turn.turn_id, clock()), now=clock())
            writer.end("done")
        except Leaving:
            return False
        except Stopped:
            _stop(speaker, turn, reply)
        except ModelError as error:
            log.warning("turn %s failed: %s", turn.turn_id, error)
            _fail(speaker, turn, reply, error.code, passing=error.passing)
        except (NotThere, Damaged) as error:
            log.warning("turn %s of slice %s cannot be recorded: %s", turn.turn_id, turn.slice_id, error)
            _fail(speaker, turn, reply, "damaged", passing=False)
    return True


def _make(speaker: Speaker, turn: Answer, reply: Reply) -> None:
    """Fill `reply`, trying again after passing failures."""
    folder, companion = speaker.folder, speaker.companion
    speaker.check()
    found = folder.slice(turn.slice_id)
    if companion.model is None:
        entry = found.entry(turn.turn_id, "user")
        reply.text = journal.journal_reply(
            folder, entry.content if entry else "", person=speaker.person, now=speaker.clock()
        )
        speaker.writer.text(reply.text)
        return
    messages = _messages(speaker, turn, found, companion.model.settings.context)
    for pause in (*companion.pauses, None):
        began = time.monotonic()
        try:
            speak(speaker, companion.model, messages, reply)
            companion.called(Called(kind="answer", ok=True, seconds=time.monotonic() - began))
            return
        except ModelError as error:
            companion.called(Called(kind="answer", ok=False, seconds=time.monotonic() - began))
            if pause is None or not error.passing:
                raise
            log.info("turn %s is tried again: %s", turn.turn_id, error)
            speaker.writer.waiting("retrying")
            speaker.pause(min(max(pause, error.retry_after or 0.0), LONGEST_PAUSE))
        speaker.writer.attempt()
        reply.begin_anew()


def _messages(speaker: Speaker, turn: Answer, found: Slice, context: int) -> list[dict[str, str]]:
    """The messages sent; the slice's system message is made when its first answer is claimed, and stored."""
    state = speaker.folder.state
    system = state.prompt(turn.slice_id)
    if system is None:
        wait_for_last_slice(speaker, found)
        found = take_evolution(speaker.folder, turn.slice_id, turn.turn_id)
        system = prompt.system_message(speaker.folder, found, person=speaker.person)
        state.save_prompt(turn.slice_id, system)
    built = prompt.build_messages(
        found, turn.turn_id, system=system, context_tokens=context, sent=state.sent_order(turn.slice_id)
    )
    state.save_sent_order(turn.slice_id, built.order)
    if built.left_out:
        speaker.writer.notice("left_out", count=built.left_out)
    if built.shortened:
        speaker.writer.notice("shortened", count=built.shortened)
    return _with_matches(speaker, turn, built.messages)


def _with_matches(speaker: Speaker, turn: Answer, messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """For a model that cannot ask: the best matches ride along, fenced, in a message before the person's."""
    model = speaker.companion.model
    if model is None or model.supports_tools:
        return messages
    found = recall.closest(
        speaker.folder, messages[-1]["content"], current=turn.slice_id, person=speaker.person, now=speaker.clock()
    )
    return [*messages[:-1], {"role": "user", "content": found}, messages[-1]] if found else messages


def _stop(speaker: Speaker, turn: Answer, reply: Reply) -> None:
    folder, now = speaker.folder, speaker.clock()
    block = reply.block(turn.turn_id, now)
    if reply.text.strip():
        record(folder, turn.slice_id, turn.turn_id, reply.text, block, now=now)
    else:
        record_cognition(folder, turn.slice_id, block)
        record_outcome(folder.state.directory, turn.slice_id, turn.turn_id, Outcome("stopped", "", now))
    speaker.writer.end("stopped")


def _fail(speaker: Speaker, turn: Answer, reply: Reply, code: str, *, passing: bool) -> None:
    folder, now = speaker.folder, speaker.clock()
    try:
        record_cognition(folder, turn.slice_id, reply.block(turn.turn_id, now, unfinished=reply.text))
    except (NotThere, Damaged):
        log.warning("slice %s takes no more words of turn %s", turn.slice_id, turn.turn_id)
    record_outcome(folder.state.directory, turn.slice_id, turn.turn_id, Outcome("failed", code, now))
    speaker.writer.end("failed", code, passing=passing)


def _enqueue_next(folder: MemoryFolder, turn: Answer, now: datetime, enqueue: Callable[[Job], object]) -> None:
    """What waited for this reply: the next turn owed, and the close work of a slice that now owes nothing."""
    slices = {found.slice_id: found for found in folder.newest(RECENT_SLICES) if isinstance(found, Slice)}
    waiting = owed(list(slices.values()), folder, now)
    for job in waiting[:1]:
        enqueue(job)
    owing = {each.slice_id for each in waiting}
    for work in folder.state.todo():
        if work.what == todo.CLOSE and work.slice_id == turn.slice_id and work.slice_id not in owing:
            enqueue(Close(work.slice_id))
