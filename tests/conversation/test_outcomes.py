"""How a reply ended without an entry, and where the reply to a turn stands."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.conversation.events import Attempt, Ended, Event, Heartbeat, Text, line_of
from memory.conversation.outcomes import Outcome, outcome, record_outcome, reopen, reply_file, request_stop
from memory.conversation.status import (
    Answered,
    Delayed,
    Failed,
    Queued,
    ReplyStatus,
    Running,
    Stopped,
    reply_status,
)
from memory.folder.errors import BadId, NotThere
from memory.folder.slices import Slice
from memory.folder.turns import Entry

SLICE, TURN = "2026-08-10-2130", "mVhV2g"
START = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
QUESTION = Entry(TURN, START, "user", "What did I decide about the worktop?")
ANSWER = Entry(TURN, START + timedelta(seconds=9), "agent", "Oak.")


def slice_of(*entries: Entry) -> Slice:
    return Slice(slice_id=SLICE, status="active", start=START, entries=entries)


def happened(run: Path, *events: Event) -> None:
    path = reply_file(run, SLICE, TURN, "events")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(map(line_of, events)))


def status(run: Path, *, after: float = 1, entries: tuple[Entry, ...] = (QUESTION,)) -> ReplyStatus:
    """Where the reply stands so many seconds after the message."""
    return reply_status(run, slice_of(*entries), TURN, START + timedelta(seconds=after))


def test_it_works(tmp_path: Path) -> None:
    assert outcome(tmp_path, SLICE, TURN) is None
    failed = Outcome("failed", "timed_out", START)
    record_outcome(tmp_path, SLICE, TURN, failed)
    assert outcome(tmp_path, SLICE, TURN) == failed
    assert outcome(tmp_path, SLICE, "other1") is None
    stopped = Outcome("stopped", "", START)
    record_outcome(tmp_path, SLICE, TURN, stopped)
    assert outcome(tmp_path, SLICE, TURN) == stopped
    assert [file.name for file in (tmp_path / "replies").iterdir()] == [f"{SLICE}-{TURN}.outcome"]


def test_try_again_leaves_nothing_of_the_attempt_before(tmp_path: Path) -> None:
    happened(tmp_path, Attempt(START_MS), Ended(START_MS, "failed", "timed_out"))
    request_stop(tmp_path, SLICE, TURN)
    record_outcome(tmp_path, SLICE, TURN, Outcome("failed", "timed_out", START))
    reopen(tmp_path, SLICE, TURN)
    assert list((tmp_path / "replies").iterdir()) == []
    assert status(tmp_path) == Queued()
    reopen(tmp_path, SLICE, TURN)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"kind": "done", "code": "", "at": "2026-08-10T21:30:00.000Z"}', b'{"kind": "x"}'],
)
def test_an_outcome_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    record_outcome(tmp_path, SLICE, TURN, Outcome("failed", "x", START))
    reply_file(tmp_path, SLICE, TURN, "outcome").write_bytes(content)
    assert outcome(tmp_path, SLICE, TURN) is None


def test_an_outcome_is_plain_json(tmp_path: Path) -> None:
    record_outcome(tmp_path, SLICE, TURN, Outcome("failed", "bad_key", START))
    row = json.loads(reply_file(tmp_path, SLICE, TURN, "outcome").read_text("ascii"))
    assert row == {"kind": "failed", "code": "bad_key", "at": "2026-08-10T21:30:00.000Z"}


def test_a_reply_not_begun_is_queued(tmp_path: Path) -> None:
    assert status(tmp_path) == Queued()
    assert status(tmp_path, after=23 * 3600) == Queued()


def test_a_reply_being_written_is_running_until_nothing_is_heard_for_20_seconds(tmp_path: Path) -> None:
    happened(tmp_path, Attempt(START_MS), Text(START_MS + 1000, "Oak"), Heartbeat(START_MS + 6000))
    running = status(tmp_path, after=26)
    assert isinstance(running, Running)
    assert running.state.text == "Oak"
    assert isinstance(status(tmp_path, after=26.1), Delayed)


def test_the_entry_decides_whatever_else_is_there(tmp_path: Path) -> None:
    happened(tmp_path, Attempt(START_MS), Ended(START_MS, "failed", "timed_out"))
    record_outcome(tmp_path, SLICE, TURN, Outcome("failed", "timed_out", START))
    assert status(tmp_path, entries=(QUESTION, ANSWER)) == Answered(ANSWER)


def test_the_outcome_decides_before_the_events(tmp_path: Path) -> None:
    happened(tmp_path, Attempt(START_MS), Text(START_MS, "half"))
    record_outcome(tmp_path, SLICE, TURN, Outcome("failed", "cut_off", START))
    assert status(tmp_path) == Failed("cut_off", "half")
    record_outcome(tmp_path, SLICE, TURN, Outcome("stopped", "", START))
    assert status(tmp_path) == Stopped("half")


def test_a_terminal_event_alone_is_believed(tmp_path: Path) -> None:
    happened(tmp_path, Attempt(START_MS), Ended(START_MS, "failed", "timed_out"))
    assert status(tmp_path) == Failed("timed_out")
    happened(tmp_path, Attempt(START_MS), Ended(START_MS, "stopped"))
    assert status(tmp_path) == Stopped()


def test_done_without_an_entry_is_a_slice_read_too_early_or_a_loss(tmp_path: Path) -> None:
    happened(tmp_path, Attempt(START_MS), Text(START_MS, "Oak."), Ended(START_MS, "done"))
    assert isinstance(status(tmp_path, after=1), Running)
    assert status(tmp_path, after=21) == Failed("not_recorded", "Oak.")


def test_nothing_is_awaited_for_ever(tmp_path: Path) -> None:
    assert status(tmp_path, after=24 * 3600) == Failed("too_old")
    happened(tmp_path, Attempt(START_MS), Text(START_MS, "half"))
    assert status(tmp_path, after=24 * 3600) == Failed("too_old", "half")


def test_a_turn_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotThere):
        reply_status(tmp_path, slice_of(QUESTION), "other1", START)
    with pytest.raises(NotThere):
        reply_status(tmp_path, slice_of(), TURN, START)
    with pytest.raises(BadId):
        record_outcome(tmp_path, SLICE, "../x", Outcome("stopped", "", START))
