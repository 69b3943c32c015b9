"""Where the reply to one turn stands, found out from what is on disk: the slice, the outcome, the events."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from memory.conversation.events import Ended, ReplyState, fold, read_events
from memory.conversation.outcomes import outcome
from memory.folder.errors import NotThere
from memory.folder.slices import Slice
from memory.folder.turns import Entry

DELAYED_AFTER = timedelta(seconds=20)
OWED_FOR = timedelta(hours=24)


@dataclass(frozen=True)
class Answered:
    """The agent's entry is in the slice."""

    entry: Entry


@dataclass(frozen=True)
class Stopped:
    """The person stopped the reply before its first word was recorded."""

    text: str = ""


@dataclass(frozen=True)
class Failed:
    """The reply failed for good. `code` is worded where it is shown; `text` is what had come, incomplete.

    Beside the codes of recorded outcomes there are two of our own: `too_old` (nobody answered within 24 hours, the
    reply is owed no more) and `not_recorded` (it ended well and yet the slice has no entry).
    """

    code: str
    text: str = ""


@dataclass(frozen=True)
class Running:
    """A worker is writing the reply."""

    state: ReplyState


@dataclass(frozen=True)
class Delayed:
    """The reply was begun, and nothing was heard for 20 s: its worker is gone, another will take over."""

    state: ReplyState


@dataclass(frozen=True)
class Queued:
    """The reply is owed and not begun."""


ReplyStatus = Answered | Stopped | Failed | Running | Delayed | Queued


def reply_status(run: Path, slice_: Slice, turn_id: str, now: datetime, state: ReplyState | None = None) -> ReplyStatus:
    """Where the reply to a turn stands. `slice_` as just read from disk, `state` when the caller has folded the events.

    The slice decides, then the outcome, then the events: a reply is recorded first and its terminal event follows.
    Raises BadId, NotThere for a turn that the slice does not have.
    """
    person = slice_.entry(turn_id, "user")
    if person is None:
        raise NotThere(f"slice {slice_.slice_id} has no turn {turn_id}")
    if answer := slice_.entry(turn_id, "agent"):
        return Answered(answer)
    if state is None:
        state = fold(read_events(run, slice_.slice_id, turn_id)[0])
    if recorded := outcome(run, slice_.slice_id, turn_id):
        return Stopped(state.text) if recorded.kind == "stopped" else Failed(recorded.code, state.text)
    match state.ended:
        case Ended(how="done", at=at):
            # The slice was read a moment too early, and the next look finds the entry; or the entry is truly missing.
            return Failed("not_recorded", state.text) if _silent(at, now) else Running(state)
        case Ended(how="stopped"):
            return Stopped(state.text)
        case Ended(code=code):
            return Failed(code, state.text)
    if now - person.at >= OWED_FOR:
        return Failed("too_old", state.text)
    if not state.last_at:
        return Queued()
    return Delayed(state) if _silent(state.last_at, now) else Running(state)


def _silent(last_at: int, now: datetime) -> bool:
    return now.timestamp() * 1000 - last_at > DELAYED_AFTER.total_seconds() * 1000
