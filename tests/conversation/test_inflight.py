"""The reply in flight: what the writer puts down, what a reader makes of it, and what a killed writer leaves."""

import errno
import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.conversation.events import (
    Attempt,
    Ended,
    Event,
    Fold,
    Heartbeat,
    Notice,
    Reasoning,
    Step,
    Text,
    Waiting,
    event_of,
    fold,
    line_of,
    read_events,
)
from memory.conversation.inflight import ReplyWriter, sweep_old
from memory.conversation.outcomes import Outcome, record_outcome, reopen, reply_file, request_stop
from memory.folder.errors import BadId

SLICE, TURN = "2026-08-10-2130", "mVhV2g"
START = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def writer(tmp_path: Path, clock: Clock) -> ReplyWriter:
    """A writer without its timer: the test says when time passes."""
    return ReplyWriter(tmp_path, SLICE, TURN, now=clock.now, monotonic=clock.monotonic)


def events(run: Path) -> list[Event]:
    return read_events(run, SLICE, TURN)[0]


def test_it_works(tmp_path: Path) -> None:
    with ReplyWriter(tmp_path, SLICE, TURN) as writer:
        writer.attempt()
        writer.reasoning("Let me see. ")
        writer.step("recall", "running", "the worktop")
        writer.step("recall", "ok", "the worktop", "2 slices")
        writer.text("Oak, ")
        writer.text("if it stays under 900.")
        writer.notice("left_out", count=3)
        writer.end("done")
    state = fold(events(tmp_path))
    assert state.text == "Oak, if it stays under 900."
    assert state.reasoning == "Let me see. "
    assert [(step.name, step.state, step.detail) for step in state.steps] == [("recall", "ok", "2 slices")]
    assert [(notice.code, notice.values) for notice in state.notices] == [("left_out", {"count": 3})]
    assert state.ended is not None
    assert state.ended.how == "done"
    assert (tmp_path / "replies" / f"{SLICE}-{TURN}.events").exists()


def test_pieces_are_written_at_most_twenty_times_a_second(tmp_path: Path, writer: ReplyWriter, clock: Clock) -> None:
    writer.attempt()
    assert events(tmp_path) == [Attempt(START_MS)], "the first event does not wait"
    for step in range(1, 10):
        clock.seconds = step / 200
        writer.text(str(step))
    assert events(tmp_path)[1:] == [Text(START_MS + 5, "1")], "the first words do not wait either"
    assert writer.tick() == pytest.approx(0.055 - 9 / 200, abs=0.006)
    clock.seconds = 0.055
    writer.tick()
    assert events(tmp_path)[2:] == [Text(START_MS + 10, "23456789")], "one event, at the time of its first piece"


def test_the_timer_writes_what_waits_and_beats(tmp_path: Path) -> None:
    with ReplyWriter(tmp_path, SLICE, TURN, heartbeat=0.01) as writer:
        writer.attempt()
        writer.text("held back")
        wait_until(lambda: Heartbeat in map(type, events(tmp_path)))
        assert fold(events(tmp_path)).text == "held back"
    beats = events(tmp_path)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reply ")]
    assert events(tmp_path) == beats


def wait_until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen within 10 s")


def test_a_heartbeat_whenever_five_seconds_pass_without_an_event(
    tmp_path: Path, writer: ReplyWriter, clock: Clock
) -> None:
    writer.attempt()
    clock.seconds = 4.9
    assert writer.tick() == pytest.approx(0.1)
    assert events(tmp_path) == [Attempt(START_MS)]
    clock.seconds = 5
    assert writer.tick() == pytest.approx(5)
    assert events(tmp_path)[1:] == [Heartbeat(START_MS + 5000)]
    writer.end("done")
    clock.seconds = 60
    writer.tick()
    assert isinstance(events(tmp_path)[-1], Ended), "nothing follows the terminal event"


def test_a_reply_ends_once(tmp_path: Path, writer: ReplyWriter) -> None:
    writer.attempt()
    writer.end("failed", "timed_out", passing=True)
    assert events(tmp_path)[-1] == Ended(START_MS, "failed", "timed_out", passing=True)
    with pytest.raises(RuntimeError):
        writer.end("done")
    with pytest.raises(RuntimeError):
        writer.text("more")
    assert len(events(tmp_path)) == 2


def test_a_worker_that_is_stopped_leaves_the_chain_open(tmp_path: Path) -> None:
    with ReplyWriter(tmp_path, SLICE, TURN) as writer:
        writer.attempt()
        writer.text("half")
    assert fold(events(tmp_path)).ended is None
    assert fold(events(tmp_path)).text == "half"


def test_the_last_attempt_counts_alone(tmp_path: Path, writer: ReplyWriter, clock: Clock) -> None:
    writer.attempt()
    writer.reasoning("a wrong idea")
    writer.step("recall", "error", "x")
    writer.text("half a re")
    clock.seconds = 1
    writer.attempt()
    writer.text("a whole reply")
    clock.seconds = 2
    writer.end("done")
    state = fold(events(tmp_path))
    assert (state.text, state.reasoning, state.steps, state.attempts) == ("a whole reply", "", (), 2)
    assert state.last_at == START_MS + 2000


def test_a_torn_line_waits_and_then_spoils_nothing(tmp_path: Path, writer: ReplyWriter) -> None:
    writer.attempt()
    path = reply_file(tmp_path, SLICE, TURN, "events")
    torn = line_of(Text(START_MS, "never finished"))[:-9]
    with path.open("ab") as file:
        file.write(torn)
    found, offset = read_events(tmp_path, SLICE, TURN)
    assert found == [Attempt(START_MS)]
    assert offset == path.stat().st_size - len(torn)

    ReplyWriter(tmp_path, SLICE, TURN, now=lambda: START).attempt()
    assert read_events(tmp_path, SLICE, TURN, offset)[0] == [Attempt(START_MS)]
    assert fold(events(tmp_path)).attempts == 2


def test_a_torn_line_that_gets_its_end_is_read(tmp_path: Path) -> None:
    path = reply_file(tmp_path, SLICE, TURN, "events")
    path.parent.mkdir()
    line = line_of(Text(1, "中文"))
    offset, seen = 0, []
    for byte in line:
        with path.open("ab") as file:
            file.write(bytes([byte]))
        found, offset = read_events(tmp_path, SLICE, TURN, offset)
        seen += found
    assert seen == [Text(1, "中文")]
    assert offset == len(line)


def test_a_full_disk_keeps_the_events_for_later(
    tmp_path: Path, writer: ReplyWriter, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.attempt()
    write, path = os.write, reply_file(tmp_path, SLICE, TURN, "events")

    def half(handle: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "no space left on device")
        return write(handle, data[:-10])

    clock.seconds = 1
    with monkeypatch.context() as full:
        full.setattr(os, "write", half)
        writer.text("kept")
        assert path.read_bytes() == line_of(Attempt(START_MS)), "the torn piece is taken back"
        with pytest.raises(OSError, match="no space"):
            writer.end("done")
    writer.__exit__(None, None, None)
    assert events(tmp_path)[1:] == [Text(START_MS + 1000, "kept"), Ended(START_MS + 1000, "done")]


def test_a_deleted_folder_stays_deleted(tmp_path: Path, writer: ReplyWriter) -> None:
    (tmp_path / "replies").rmdir()
    writer.attempt()
    with pytest.raises(FileNotFoundError):
        writer.end("done")
    assert list(tmp_path.iterdir()) == []


def test_stopping_is_noticed_within_a_quarter_second(tmp_path: Path, writer: ReplyWriter, clock: Clock) -> None:
    assert not writer.stop_requested()
    request_stop(tmp_path, SLICE, TURN)
    clock.seconds = 0.2
    assert not writer.stop_requested(), "the disk is not looked at for every piece"
    clock.seconds = 0.25
    assert writer.stop_requested()
    request_stop(tmp_path, SLICE, TURN)
    assert writer.stop_requested()


def test_try_again_begins_a_new_file_and_a_reader_follows(tmp_path: Path, writer: ReplyWriter) -> None:
    request_stop(tmp_path, SLICE, TURN)
    writer.attempt()
    writer.end("failed", "timed_out")
    record_outcome(tmp_path, SLICE, TURN, Outcome("failed", "timed_out", START))
    offset = read_events(tmp_path, SLICE, TURN)[1]
    reopen(tmp_path, SLICE, TURN)
    assert list((tmp_path / "replies").iterdir()) == []
    assert read_events(tmp_path, SLICE, TURN, offset) == ([], 0)
    again = ReplyWriter(tmp_path, SLICE, TURN, now=lambda: START)
    again.attempt()
    assert read_events(tmp_path, SLICE, TURN, offset)[0] == [Attempt(START_MS)]
    assert not again.stop_requested()


def test_a_link_in_the_place_of_the_events_is_not_followed(tmp_path: Path, writer: ReplyWriter) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(line_of(Text(1, "secret")))
    reply_file(tmp_path, SLICE, TURN, "events").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic"):
        read_events(tmp_path, SLICE, TURN)
    writer.attempt()
    with pytest.raises(OSError, match="symbolic"):
        writer.end("done")
    assert elsewhere.read_bytes() == line_of(Text(1, "secret"))


@pytest.mark.parametrize(
    ("slice_id", "turn_id"), [("2026-08-10-2130", "../../x"), ("../x", TURN), ("2026-13-10-2130", TURN), (SLICE, "")]
)
def test_only_ids_become_file_names(tmp_path: Path, slice_id: str, turn_id: str) -> None:
    for use in (read_events, request_stop, reopen, ReplyWriter):
        with pytest.raises(BadId):
            use(tmp_path, slice_id, turn_id)
    assert list(tmp_path.iterdir()) == []


def test_files_are_swept_a_day_after_their_last_word(tmp_path: Path, writer: ReplyWriter) -> None:
    assert sweep_old(tmp_path / "nothing", START) == 0
    writer.attempt()
    record_outcome(tmp_path, SLICE, TURN, Outcome("stopped", "", START))
    request_stop(tmp_path, SLICE, "fresh1")
    for suffix in ("events", "outcome"):
        os.utime(reply_file(tmp_path, SLICE, TURN, suffix), (START_MS / 1000, START_MS / 1000))
    fresh = reply_file(tmp_path, SLICE, "fresh1", "stop")
    os.utime(fresh, (START_MS / 1000 + 3600, START_MS / 1000 + 3600))
    assert sweep_old(tmp_path, START + timedelta(hours=24)) == 0
    assert sweep_old(tmp_path, START + timedelta(hours=24, seconds=1)) == 2
    assert list((tmp_path / "replies").iterdir()) == [fresh]


def test_thinking_is_timed_from_its_first_piece_to_what_follows() -> None:
    thinking = [Attempt(0), Waiting(0, "remembering"), Reasoning(1000, "a"), Heartbeat(4000)]
    state = fold(thinking)
    assert (state.thinking, state.thinking_seconds, state.waiting) == (True, 3, "")
    state = fold([*thinking, Reasoning(4500, "b"), Step(5000, "recall", "running"), Step(9000, "recall", "ok")])
    assert (state.thinking, state.thinking_seconds) == (False, 4)
    state = fold([*thinking, Text(5000, "x"), Reasoning(6000, "c"), Text(8000, "y")])
    assert state.thinking_seconds == 6
    assert fold([Attempt(0), Reasoning(5, "a"), Text(6, "x")]).thinking_seconds == 1
    assert fold([Attempt(0), Text(9000, "x")]).thinking_seconds == 0
    assert fold([Attempt(0), Reasoning(9000, "a"), Text(3000, "the clock went back")]).thinking_seconds == 1


def test_waiting_ends_with_the_first_thing_that_comes() -> None:
    assert fold([Attempt(0), Waiting(1, "remembering")]).waiting == "remembering"
    assert fold([Attempt(0), Waiting(1, "remembering"), Heartbeat(9)]).waiting == "remembering"
    assert fold([Attempt(0), Waiting(1, "remembering"), Text(2, "x")]).waiting == ""


def test_steps_at_work_side_by_side_each_get_their_result() -> None:
    state = fold(
        [
            Attempt(0),
            Step(1, "read_slice", "running", "2026-08-10"),
            Step(2, "read_slice", "running", "2026-08-09"),
            Step(3, "read_slice", "error", "2026-08-09", "no such slice"),
            Step(4, "read_slice", "ok"),
            Step(5, "read_slice", "running", "2026-08-10"),
        ]
    )
    assert [(step.label, step.state) for step in state.steps] == [
        ("2026-08-10", "ok"),
        ("2026-08-09", "error"),
        ("2026-08-10", "running"),
    ]


def test_broken_characters_arrive_as_replacement_characters(tmp_path: Path, writer: ReplyWriter) -> None:
    writer.attempt()
    writer.text("a\ud83db\0c")
    writer.end("done")
    raw = reply_file(tmp_path, SLICE, TURN, "events").read_bytes()
    assert all(json.loads(line) for line in raw.decode("ascii").splitlines())
    assert fold(events(tmp_path)).text == "a\ufffdb\ufffdc"


def test_lines_that_are_no_events_are_passed_over() -> None:
    for line in (b"", b"[]", b"7", b'{"kind": "text"}', b'{"kind": "new", "at": 1}', b'{"at": 1}', b"\xff", b'{"kind'):
        assert event_of(line) is None


TIMES = st.integers(0, 2**45)
EVENTS = st.one_of(
    st.builds(Attempt, TIMES),
    st.builds(Text, TIMES, st.text(st.characters(), max_size=50)),
    st.builds(Reasoning, TIMES, st.text(max_size=50)),
    st.builds(Step, TIMES, st.text(), st.sampled_from(["running", "ok", "error"]), st.text(), st.text()),
    st.builds(Notice, TIMES, st.text(), st.dictionaries(st.text(), st.integers() | st.text())),
    st.builds(Ended, TIMES, st.sampled_from(["done", "stopped", "failed"]), st.text(), st.booleans()),
)


@settings(max_examples=100)
@given(st.lists(EVENTS))
def test_what_is_read_is_what_was_written(written: list[Event]) -> None:
    lines = b"".join(map(line_of, written))
    assert [event_of(line) for line in lines.splitlines()] == written
    whole = Fold()
    for event in written:
        whole.add(event)
    assert whole.state() == fold(written)
