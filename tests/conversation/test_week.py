"""A whole week: what it leaves in the folder, file by file, and how it fares when there was no model while it lasted.

The files expected are under tests/golden/week; WRITE_GOLDEN=1 writes them anew, to be read before they are kept.
"""

import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from memory.folder import derived
from memory.folder.marks import is_floor_summary
from memory.folder.paths import STRANDS, month_file
from memory.folder.strands import render_strands
from memory.folder.timeline import render_month
from memory.llm.client import ModelServer
from tests.conversation.filled import DOWN, CountedTalk, counted_talk
from tests.conversation.week import OLD, STALE, WEEK, lay_old, live, model, written
from tests.model_server.answers import Rule
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "week"


@pytest.fixture
def talk(tmp_path: Path, connect: Connect) -> CountedTalk:
    return counted_talk(tmp_path, connect)


def live_through(talk: CountedTalk) -> list[int]:
    """The whole week, the old slices laid by hand after its first one; how many were filled in at each boundary."""
    filled: list[int] = []
    live(talk, STALE)
    lay_old(talk)
    for told in WEEK:
        talk.count()
        live(talk, told)
        filled.append(talk.count()["backfill"])
    talk.count()
    talk.end()
    return [*filled, talk.count()["backfill"]]


def check_derived(talk: CountedTalk) -> None:
    """The derived files are byte for byte what a rebuild makes, from nothing, too."""
    made = derived.rebuild(talk.folder)
    assert made.months == {}
    assert talk.folder.read(STRANDS) == render_strands(made.strands).encode()
    months = {path.stem: path.read_text() for path in (talk.folder.root / "memory/episodic/timeline").glob("*.json")}
    for month in months:
        (talk.folder.root / month_file(month)).unlink()
    again = derived.rebuild(talk.folder)
    assert {month: render_month(month, lines) for month, lines in again.months.items()} == months
    for month, text in months.items():
        (talk.folder.root / month_file(month)).write_text(text)


def test_it_works(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    model_server.rules(*model())
    assert live_through(talk) == [3, 1, *[0] * 11]
    found = written(talk)
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            (GOLDEN / name).write_text(text)
    assert {path.name: path.read_text() for path in GOLDEN.iterdir()} == found
    check_derived(talk)
    strands = talk.folder.strands()
    assert len(strands) >= 30
    assert "passport photos" not in strands
    assert len(strands["half marathon"]) == 4
    assert not {"半程马拉松", "marathon training", "kitchen renovaton", "台面"} & strands.keys()
    assert [merge[0].by for merge in talk.folder.merges().values()] == ["model"] * 4
    assert sum(subject.startswith("close") for subject in talk.subjects()) == len(WEEK) + 1
    assert sum(subject.startswith("merge strands") for subject in talk.subjects()) in range(1, 5)
    assert len(re.findall(r"\[2026/08/\d\d/\d{4}#\w{6}\]", talk.folder.card())) == 2


def test_a_week_without_a_model_is_caught_up_with_three_slices_a_boundary(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(Rule(answers=[DOWN]))
    live_through(talk)
    for _ in range(3):
        talk.later(hours=1)
        talk.work()
    talk.count()
    ids = [STALE.slice_id, *(told.slice_id for told in WEEK)]
    old = [slice_id for slice_id, _, _ in OLD]
    assert all(talk.slice(slice_id).dry for slice_id in old)
    for slice_id in ids:
        assert is_floor_summary(talk.slice(slice_id).summary)
        assert talk.slice(slice_id).focus
    check_derived(talk)

    model_server.rules(*model())
    waiting = [*old, *ids]
    while waiting:
        talk.clock += timedelta(hours=1)
        talk.say("Thanks!")
        talk.count()
        talk.end()
        done, waiting = waiting[:3], waiting[3:]
        assert talk.count()["backfill"] == len(done)
        assert not any(talk.slice(slice_id).dry or is_floor_summary(talk.slice(slice_id).summary) for slice_id in done)
        assert all(talk.slice(slice_id).dry or is_floor_summary(talk.slice(slice_id).summary) for slice_id in waiting)
    talk.say("Good night!")
    talk.count()
    talk.end()
    assert talk.count()["backfill"] == 0
    for told in WEEK:
        found = talk.slice(told.slice_id)
        assert (found.focus, found.summary) == (told.marks["focus"], told.marks["summary"])
    assert len(talk.folder.strands()["half marathon"]) == 4
    check_derived(talk)
