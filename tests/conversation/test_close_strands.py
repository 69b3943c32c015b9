"""Strands after a close: pruning, the merge pass with its own commit, and what happens when it fails or was wrong."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from memory.conversation.unmerge import unmerge
from memory.folder import derived
from memory.folder.paths import MERGES, STRANDS, month_file, path_of
from memory.folder.slices import render
from memory.folder.strands import record_merges, render_merges, render_strands
from memory.llm.client import ModelServer
from tests.conversation.filled import DOWN, GARBAGE, CountedTalk, counted_talk, filled, form
from tests.conversation.folders import a_slice, utc
from tests.model_server.answers import Answer
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]

FIRST = "2026-08-10-2130"
TWIN = {"merges": [{"from": "worktop budget", "to": "worktop costs"}]}


@pytest.fixture
def talk(tmp_path: Path, connect: Connect) -> CountedTalk:
    """A folder with a week of closed slices that hold 28 topics, two of them twins."""
    talk = counted_talk(tmp_path, connect)
    talk.say("Hello")
    topics = [f"topic {number:02}" for number in range(26)]
    for number, tags in enumerate((topics[:13], topics[13:], ("worktop budget",), ("worktop costs",))):
        closed = a_slice(f"2026-08-0{number + 1}-0900", ("Something", "I see."), tags=tuple(tags), summary="Some.")
        path = talk.core(closed.slice_id)
        path.parent.mkdir(parents=True)
        path.write_text(render(closed))
    return talk


def check_derived(talk: CountedTalk) -> None:
    """The derived files are what a rebuild makes."""
    made = derived.rebuild(talk.folder)
    assert talk.folder.read(STRANDS) == render_strands(made.strands).encode()
    assert made.months == {}


def since(talk: CountedTalk, before: list[str]) -> list[str]:
    return talk.subjects()[len(before) :]


def test_it_works(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    model_server.rules(filled("merge", form("merge", **TWIN)))
    before = talk.subjects()
    talk.end()
    assert talk.count() == {"turn": 1, "close": 1, "merge": 1}
    assert talk.folder.strands()["worktop costs"] == ("2026/08/03/0900", "2026/08/04/0900")
    assert "worktop budget" not in talk.folder.strands()
    assert since(talk, before) == [f"close {FIRST}: About: Hello", "merge strands: worktop budget → worktop costs"]
    files = set(talk.git("show", "--format=", "--name-only", "HEAD").split())
    assert files == {STRANDS, MERGES, month_file("2026-08")}
    before_the_merge = json.loads(talk.git("show", f"HEAD~1:{STRANDS}"))
    assert before_the_merge["worktop budget"] == ["2026/08/03/0900"]
    check_derived(talk)


def test_the_merge_of_an_ordinary_close_is_asked_for_past_25_strands_only(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    path = talk.core("2026-08-02-0900")
    path.write_text(
        path.read_text().replace("- topic 25\n", "").replace("- topic 24\n", "").replace("- topic 23\n", "")
    )
    talk.end()
    assert len(talk.folder.strands()) == 25
    assert talk.count()["merge"] == 0


@pytest.mark.parametrize(
    "answer",
    [
        DOWN,
        GARBAGE,
        form("merge"),
        form("merge", merges=[{"from": "no such topic", "to": "worktop costs"}]),
        form("merge", merges=[{"from": "worktop costs", "to": "worktop costs"}]),
        Answer(text='{"merges": "worktop budget"}'),
    ],
)
def test_a_merge_pass_that_comes_to_nothing_changes_nothing_beyond_the_pruning(
    talk: CountedTalk, model_server: ModelServerProcess, answer: Answer
) -> None:
    model_server.rules(filled("merge", answer))
    before = talk.subjects()
    talk.end()
    assert 1 <= talk.count()["merge"] <= 2
    assert since(talk, before) == [f"close {FIRST}: About: Hello"]
    assert talk.folder.read(MERGES) is None
    assert len(talk.folder.strands()) == 28
    check_derived(talk)


def test_trouble_with_the_merges_leaves_strands_as_they_are(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    talk.end()
    strands = talk.folder.read(STRANDS)
    (talk.folder.root / MERGES).write_text('{"a": [')
    talk.say("Something else")
    talk.end()
    assert talk.folder.read(STRANDS) == strands
    assert (talk.folder.root / MERGES).read_text() == '{"a": ['
    assert not talk.folder.state.todo()
    (talk.folder.root / MERGES).unlink()
    talk.say("And again")
    talk.end()
    check_derived(talk)


def test_corrupt_strands_are_set_aside_and_made_anew(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    talk.end()
    (talk.folder.root / STRANDS).write_text('{"worktop costs": [')
    talk.say("Something else")
    talk.end()
    (aside,) = (talk.folder.root / "memory" / "episodic").glob("strands.json.damaged-*")
    assert aside.read_text() == '{"worktop costs": ['
    assert len(talk.folder.strands()) == 28
    check_derived(talk)


def test_a_wrong_merge_is_undone_by_one_act_and_stays_undone(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(filled("merge", form("merge", **TWIN)))
    talk.end()
    commits = talk.subjects()
    unmerge(talk.folder, "worktop budget", "worktop costs")
    talk.work()
    assert talk.folder.strands()["worktop costs"] == ("2026/08/04/0900",)
    assert talk.folder.strands()["worktop budget"] == ("2026/08/03/0900",)
    assert since(talk, commits) == ["undo merge worktop budget → worktop costs"]
    talk.count()
    talk.later(minutes=5)
    talk.say("Something else")
    talk.end()
    assert talk.count()["merge"] == 1
    assert "worktop budget" in talk.folder.strands()
    assert not any("merge strands" in subject for subject in since(talk, commits))
    check_derived(talk)


def test_a_merge_cut_short_by_a_dying_worker_is_finished(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    talk.end()
    with talk.folder.files_lock():
        # What a merge leaves behind that came no further than its first file.
        talk.folder.state.save_strands_due("merge strands: worktop budget → worktop costs")
        merged = record_merges({}, [("worktop budget", "worktop costs")], at=talk.clock, by="model")
        (talk.folder.root / MERGES).write_text(render_merges(merged))
    talk.say("Something else")
    talk.end()
    assert "worktop budget" not in talk.folder.strands()
    check_derived(talk)


def test_the_merge_pass_is_asked_once_though_the_analysis_is_tried_again(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(filled("close", GARBAGE))
    talk.end()
    talk.count()
    for _ in range(3):
        talk.later(minutes=30)
        talk.work()
    assert talk.count() == {"close": 4}


def test_a_strand_that_was_pruned_comes_back_whole(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    talk.end()
    talk.clock = utc(2026, 9, 20, 9)
    talk.say("Long ago now")
    talk.end()
    assert "topic 07" not in talk.folder.strands()
    talk.later(hours=1)
    model_server.rules(filled("close", form("close", tags=["topic 07"])))
    again = talk.say("Topic 07 once more")
    talk.end()
    assert talk.folder.strands()["topic 07"] == ("2026/08/01/0900", path_of(again.slice_id))
    check_derived(talk)


def test_what_is_fresh_is_counted_from_the_newest_end(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    talk.end()
    talk.clock = utc(2026, 8, 15, 8, 59) - timedelta(seconds=2)
    talk.say("Two weeks on, and not a minute more")
    talk.end()
    assert "topic 07" in talk.folder.strands()
    talk.clock = utc(2026, 8, 15, 9, 1)
    talk.say("Now it is")
    talk.end()
    assert "topic 07" not in talk.folder.strands()
    assert "topic 17" in talk.folder.strands()
    check_derived(talk)
