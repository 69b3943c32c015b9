"""When a slice closes, and what it has when it has closed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory.folder.closing import CLOSED_BY, Limits, as_active, close, limits, signal
from memory.folder.slices import Slice
from memory.folder.turns import Entry

START = datetime(2026, 8, 10, 21, 30, 22, 811000, tzinfo=UTC)
LIMITS = Limits()


def entry(turn_id: str, role: str = "user", minutes: float = 0, content: str = "Hello") -> Entry:
    return Entry(turn_id=turn_id, at=START + timedelta(minutes=minutes), role=role, content=content)


def open_slice(*entries: Entry) -> Slice:
    return Slice(slice_id="2026-08-10-2130", status="active", start=START, entries=entries or (entry("first0"),))


def answered() -> Slice:
    return open_slice(entry("first0"), entry("first0", "agent", 0.5), entry("other0", minutes=1))


def closed_before(by: str) -> Slice:
    start = START - timedelta(minutes=9)
    return Slice(
        slice_id="2026-08-10-2121",
        status="closed",
        start=start,
        end=start,
        closed_by=by,
        entries=(Entry(turn_id="before", at=start, role="user", content="Hello"),),
    )


def signal_after(slice_: Slice, minutes: float, *, seen=(), previous=None, within: Limits = LIMITS) -> str | None:
    return signal(slice_, previous=previous, seen=seen, now=START + timedelta(minutes=minutes), limits=within)


def test_it_works():
    assert signal_after(answered(), 5, seen=["first0"]) is None
    assert signal_after(answered(), 30, seen=["first0"]) == "time_cap"


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(29.999, None), (30, "time_cap"), (60 * 24 * 365, "time_cap"), (-1, None), (-5, None), (-5.001, "time_cap")],
)
def test_time_counts_from_the_start_and_forgives_a_clock_a_little_behind(minutes, expected):
    assert signal_after(open_slice(), minutes) == expected


def test_time_is_not_counted_from_the_last_activity():
    assert signal_after(open_slice(entry("first0"), entry("other0", minutes=29)), 30) == "time_cap"


def test_time_follows_the_limits():
    assert signal_after(open_slice(), 5, within=limits(5, 50)) == "time_cap"
    assert signal_after(open_slice(), 119, within=limits(120, 50)) is None


def test_context_is_not_lost_before_the_agent_has_spoken():
    assert signal_after(open_slice(), 1, seen=[]) is None


@pytest.mark.parametrize("seen", [[], ["before"], ["nobody"]])
def test_context_is_lost_when_the_page_shows_no_turn_of_the_slice(seen):
    assert signal_after(answered(), 1, seen=seen) == "context_lost"


@pytest.mark.parametrize("seen", [["first0"], ["other0"], ["nobody", "other0"], ["before", "first0"]])
def test_a_page_that_shows_some_turns_is_only_stale(seen):
    assert signal_after(answered(), 1, seen=seen) is None


@pytest.mark.parametrize("by", CLOSED_BY)
def test_a_second_tab_goes_on_only_behind_a_slice_that_lost_its_context(by):
    expected = None if by == "context_lost" else "context_lost"
    assert signal_after(answered(), 1, seen=["before"], previous=closed_before(by)) == expected


def test_a_second_tab_does_not_stop_time_or_capacity():
    previous = closed_before("context_lost")
    assert signal_after(answered(), 30, seen=["before"], previous=previous) == "time_cap"
    full = open_slice(*(entry(f"turn{n:02}", role) for n in range(5) for role in ("user", "agent")))
    assert signal_after(full, 1, seen=["before"], previous=previous, within=limits(30, 5)) == "capacity"


def test_two_tabs_in_turn_make_no_chain_of_slices():
    """The tab that lost its context closed a slice; neither tab closes the one that followed."""
    slice_ = answered()
    assert signal_after(slice_, 1, seen=["before"], previous=closed_before("context_lost")) is None
    assert signal_after(slice_, 2, seen=["other0"], previous=closed_before("context_lost")) is None


def test_capacity_counts_what_the_person_said():
    fifty = [entry(f"turn{n:02}", role, n / 10) for n in range(50) for role in ("user", "agent")]
    assert signal_after(open_slice(*fifty[:-2]), 10, seen=["turn00"]) is None
    assert signal_after(open_slice(*fifty), 10, seen=["turn00"]) == "capacity"


def test_the_first_signal_in_order_names_the_close():
    full = open_slice(*(entry(f"turn{n:02}", role) for n in range(5) for role in ("user", "agent")))
    five = limits(30, 5)
    assert signal_after(full, 30, seen=[], within=five) == "time_cap"
    assert signal_after(full, 1, seen=[], within=five) == "context_lost"
    assert signal_after(full, 1, seen=["turn00"], within=five) == "capacity"


@pytest.mark.parametrize(
    ("given", "expected"),
    [((30, 50), (30, 50)), ((1, 1), (5, 5)), ((999, 999), (120, 100)), ((-3, 0), (5, 5)), ((5, 100), (5, 100))],
)
def test_limits_stay_within_what_is_allowed(given, expected):
    found = limits(*given)
    assert (found.max_slice_minutes, found.max_turns) == expected


def test_closing_gives_every_missing_mark_its_floor():
    slice_ = replace(answered(), tags=("running",))
    closed = close(slice_, by="time_cap", language="en")
    assert closed == replace(
        slice_,
        status="closed",
        end=START + timedelta(minutes=1),
        closed_by="time_cap",
        focus="Hello (running)",
        summary="2 turns · running",
        emotional_tone="neutral",
    )
    assert not closed.dry


def test_closing_keeps_the_marks_that_are_there():
    marked = replace(answered(), focus="A race", summary="Planned it.", emotional_tone=("glad", "tired"))
    closed = close(marked, by="capacity", language="en")
    assert (closed.focus, closed.summary, closed.emotional_tone) == ("A race", "Planned it.", ("glad", "tired"))


def test_closing_gives_chinese_marks_to_a_chinese_speaker():
    closed = close(open_slice(entry("first0", content="今天去跑步")), by="user_explicit", language="zh-hans")
    assert (closed.focus, closed.summary) == ("今天去跑步", "1 轮对话")


def test_closing_takes_only_the_known_reasons():
    with pytest.raises(ValueError, match="hack"):
        close(answered(), by="hack", language="en")


@pytest.mark.parametrize("by", CLOSED_BY)
def test_as_active_undoes_a_close(by):
    slice_ = replace(answered(), tags=("running",), open_loops=("which race?",), evolution_summary="Added a race.")
    assert as_active(close(slice_, by=by, language="en")) == slice_
