"""The close pass step by step: what is asked of the model, in which order things are done, and what is committed."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memory.conversation.due import Answer as OwedAnswer
from memory.conversation.due import Close, due
from memory.conversation.receive import Received
from memory.folder import derived, todo
from memory.folder.marks import is_floor_summary
from memory.folder.paths import CARD, STRANDS, core_file, path_of
from memory.folder.slices import Slice, render
from memory.folder.strands import render_strands
from memory.llm.client import ModelServer
from tests.conversation.filled import DOWN, GARBAGE, CountedTalk, added, counted_talk, filled, form
from tests.conversation.folders import a_slice
from tests.model_server.answers import Answer
from tests.model_server.book import ANALYST
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]

FIRST = "2026-08-10-2130"
MARKED = form("close", focus="A half marathon in Lisbon", summary="Lisbon in October.", tags=["half marathon"])
WORTH_IT = form("turn", worth_remembering=True)
SAID = "I train for a half marathon"


@pytest.fixture
def talk(tmp_path: Path, connect: Connect) -> CountedTalk:
    return counted_talk(tmp_path, connect)


def closed(talk: CountedTalk, text: str = SAID, **how: object) -> Slice:
    """A slice of one turn that has closed by its time, its close pass not begun; the next one is open."""
    taken = talk.say(text, **how)
    talk.later(minutes=40)
    talk.say("Later.")
    talk.count()
    return talk.slice(taken.slice_id)


def lay(talk: CountedTalk, *slice_ids: str) -> None:
    """Put old slices by hand into a folder that is there, closed without any mark."""
    for slice_id in slice_ids:
        old = a_slice(slice_id, (f"What I said on {slice_id}.", "I see."))
        path = talk.core(slice_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(old))


def dry(talk: CountedTalk, *slice_ids: str) -> list[str]:
    return [slice_id for slice_id in slice_ids if talk.slice(slice_id).dry]


def closes(talk: CountedTalk) -> list[str]:
    """The slices whose close pass is not through."""
    return [work.slice_id for work in talk.folder.state.todo() if work.what == todo.CLOSE]


def check_derived(talk: CountedTalk) -> None:
    """The derived files are what a rebuild makes."""
    made = derived.rebuild(talk.folder)
    assert talk.folder.read(STRANDS) == render_strands(made.strands).encode()
    assert made.months == {}


def test_it_works(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    operation = added(path_of(FIRST), "mVhV2g", SAID, "Trains for a half marathon")
    model_server.rules(
        filled("turn", WORTH_IT),
        filled("close", MARKED),
        filled("evolve_card", form("evolve_card", operations=[operation], evolution_summary="You train.")),
    )
    closed(talk, turn_id="mVhV2g")
    before = len(talk.subjects())
    talk.work()
    found = talk.slice(FIRST)
    assert (found.focus, found.summary, found.tags) == (
        "A half marathon in Lisbon", "Lisbon in October.", ("half marathon",)
    )  # fmt: skip
    assert f"- Trains for a half marathon — [{found.path}#mVhV2g]\n" in talk.folder.card()
    assert "Trains for" not in (talk.folder.read(f"memory/episodic/slices/{found.path}/previously.md") or b"").decode()
    assert talk.folder.strands() == {"half marathon": (found.path,)}
    assert talk.count() == {"close": 1, "evolve_card": 1}
    assert talk.subjects()[before:] == [f"close {FIRST}: A half marathon in Lisbon"]
    assert talk.folder.state.evolution() == "You train."
    check_derived(talk)
    talk.check_sound()


def test_a_slice_that_is_not_worth_it_leaves_the_card_alone(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    closed(talk, "Thanks!")
    card = talk.folder.card()
    talk.work()
    assert talk.count() == {"close": 1}
    assert talk.folder.card() == card


def test_an_analysis_is_tried_three_times_within_the_hour(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    model_server.rules(filled("turn", WORTH_IT), *(filled(kind, GARBAGE) for kind in ("close", "backfill")))
    closed(talk)
    lay(talk, "2026-06-01-0900")
    talk.work()
    assert talk.count() == {"close": 2, "evolve_card": 1, "backfill": 2}
    began, commits = talk.clock, talk.subjects()
    asked: Counter[str] = Counter()
    while talk.clock - began < timedelta(hours=3):
        talk.later(minutes=1)
        talk.sweep()
        asked += talk.count()
    assert asked == {"close": 4}
    assert due(talk.folder, talk.clock) == []
    assert not closes(talk)
    assert talk.subjects() == commits
    assert is_floor_summary(talk.slice(FIRST).summary)


def test_a_retry_has_a_commit_of_its_own_and_fills_nothing_else(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(filled("turn", WORTH_IT), *(filled(kind, DOWN) for kind in ("close", "evolve_card", "backfill")))
    closed(talk)
    lay(talk, "2026-06-01-0900")
    talk.work()
    assert talk.count() == {"close": 1, "evolve_card": 1, "backfill": 1}
    before = talk.subjects()
    model_server.rules(filled("close", MARKED))
    talk.later(minutes=5)
    talk.work()
    assert talk.count() == {"close": 1, "evolve_card": 1}
    assert talk.subjects()[len(before) :] == [f"close {FIRST}: A half marathon in Lisbon"]
    assert dry(talk, "2026-06-01-0900")
    check_derived(talk)


def test_the_card_evolves_once_though_the_analysis_is_tried_again(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    operation = added(path_of(FIRST), "mVhV2g", SAID, "Trains for a half marathon")
    answer = form("evolve_card", operations=[operation], evolution_summary="You train.")
    model_server.rules(filled("turn", WORTH_IT), filled("close", GARBAGE), filled("evolve_card", answer))
    closed(talk, turn_id="mVhV2g")
    talk.work()
    model_server.rules(filled("close", MARKED), filled("evolve_card", answer))
    talk.count()
    talk.later(minutes=5)
    talk.work()
    assert talk.count() == {"close": 1}
    assert talk.folder.card().count("half marathon") == 1
    assert talk.folder.state.evolution() == "You train."


def test_old_dry_slices_are_filled_three_a_boundary_oldest_first(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    old = [f"2026-0{month}-01-0900" for month in (3, 4, 5, 6)]
    model_server.rules(filled("backfill", form("backfill", focus="An old matter", tags=["old matters"])))
    closed(talk)
    lay(talk, *old)
    before = {slice_id: talk.slice(slice_id).entries for slice_id in old}
    talk.work()
    assert talk.count() == {"close": 1, "backfill": 3}
    assert dry(talk, *old) == old[3:]
    talk.end()
    assert talk.count() == {"close": 1, "backfill": 1}
    assert dry(talk, *old) == []
    assert {slice_id: talk.slice(slice_id).entries for slice_id in old} == before
    assert talk.folder.strands()["old matters"] == tuple(path_of(slice_id) for slice_id in old)
    check_derived(talk)
    talk.check_sound()


def test_nothing_is_filled_between_boundaries(talk: CountedTalk) -> None:
    talk.say("Hello")
    lay(talk, "2026-03-01-0900", "2026-04-01-0900")
    for number in range(10):
        talk.say(f"message {number}")
        talk.later(minutes=1)
    for _ in range(30):
        talk.later(seconds=10)
        talk.sweep()
    assert talk.count() == {"turn": 11}
    assert len(dry(talk, "2026-03-01-0900", "2026-04-01-0900")) == 2


def test_a_pass_that_the_sweep_finds_fills_nothing(talk: CountedTalk) -> None:
    closed(talk)
    lay(talk, "2026-03-01-0900")
    talk.later(minutes=1)
    while talk.sweep():
        pass
    assert talk.count() == {"close": 1}
    assert dry(talk, "2026-03-01-0900")
    assert not is_floor_summary(talk.slice(FIRST).summary)


def test_a_slice_whose_answer_is_useless_three_times_goes_to_the_end(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    old = [f"2026-0{month}-01-0900" for month in (3, 4, 5, 6)]
    model_server.rules(filled("backfill", GARBAGE))
    talk.say("Hello")
    lay(talk, *old)
    for _ in range(3):
        talk.say("Hello again")
        talk.end()
        talk.later(minutes=1)
    assert dry(talk, *old) == old
    model_server.rules(filled("backfill", form("backfill"), times=1), filled("backfill", DOWN))
    talk.say("Hello")
    talk.end()
    assert dry(talk, *old) == old[:3]


def test_a_model_that_is_down_ends_the_filling_and_counts_against_no_slice(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(filled("backfill", DOWN))
    talk.say("Hello")
    lay(talk, "2026-03-01-0900", "2026-04-01-0900")
    for _ in range(4):
        talk.say("Hello again")
        talk.count()
        talk.end()
        assert talk.count()["backfill"] == 1
        talk.later(minutes=1)
    assert talk.folder.state.backfill_failures() == {}


def test_steps_out_of_order_and_delivered_twice_do_nothing(talk: CountedTalk) -> None:
    closed(talk)
    for step in reversed(todo.STEPS[1:]):
        assert not talk.step(FIRST, step)
    for step in todo.STEPS:
        assert talk.step(FIRST, step)
        assert not talk.step(FIRST, step)
    assert talk.count() == {"close": 1}
    assert [subject for subject in talk.subjects() if subject.startswith("close")] == [talk.subjects()[-1]]
    assert not talk.step("2026-01-01-0000", todo.ANALYSE_CLOSE)


def test_a_step_delivered_twice_at_once_is_done_once(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    closed(talk)
    done: list[bool] = []
    together = threading.Barrier(4)

    def deliver() -> None:
        for step in todo.STEPS:
            together.wait(30)
            done.append(talk.step(FIRST, step))

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) <= len(todo.STEPS)
    talk.work()
    assert talk.count() == {"close": 1}
    assert sum(subject.startswith("close") for subject in talk.subjects()) == 1
    check_derived(talk)
    talk.check_sound()


def test_passes_do_not_interleave_and_the_oldest_goes_first(talk: CountedTalk) -> None:
    first = closed(talk)
    talk.later(minutes=40)
    talk.say("And later still.", seen=[])
    second = sorted(work.slice_id for work in talk.folder.state.todo())[1]
    assert not talk.step(second, todo.ANALYSE_CLOSE)
    assert talk.step(first.slice_id, todo.ANALYSE_CLOSE)
    assert not talk.step(second, todo.ANALYSE_CLOSE)
    assert due(talk.folder, talk.clock) == [Close(first.slice_id, todo.EVOLVE_CARD)]
    talk.close_pass(first.slice_id, todo.EVOLVE_CARD)
    assert due(talk.folder, talk.clock) == [Close(second)]
    talk.work()
    closes = [subject.split(":")[0] for subject in talk.subjects() if subject.startswith("close")]
    assert closes == [f"close {first.slice_id}", f"close {second}"]


def test_a_retry_that_waits_for_its_time_holds_nobody_up(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    model_server.rules(filled("close", DOWN, times=1), filled("close", MARKED))
    closed(talk)
    talk.work()
    talk.end()
    newer = talk.folder.newest(1)[0]
    assert isinstance(newer, Slice)
    assert newer.focus == "A half marathon in Lisbon"
    assert is_floor_summary(talk.slice(FIRST).summary)


def test_a_slice_that_owes_a_reply_waits_for_it(talk: CountedTalk) -> None:
    taken = talk.receive("Is anybody there?")
    talk.command("/close")
    assert due(talk.folder, talk.clock) == [OwedAnswer(taken.slice_id, taken.turn_id)]
    for step in todo.STEPS:
        assert not talk.step(taken.slice_id, step)
    assert talk.count() == {}
    talk.later(seconds=9)
    talk.answer(taken)
    assert talk.jobs == [Close(taken.slice_id)]
    talk.work()
    assert talk.count() == {"turn": 1, "close": 1}
    assert talk.slice(taken.slice_id).end == talk.clock


def test_a_reply_owed_to_another_slice_holds_nobody_up(talk: CountedTalk) -> None:
    owing = talk.receive("Is anybody there?")
    talk.command("/close")
    talk.later(minutes=2)
    talk.reload()
    ended = talk.receive("Still nobody?")
    talk.command("/close")
    talk.answer(Received(slice_id=ended.slice_id, turn_id=ended.turn_id, at=ended.at, existed=True))
    talk.answer(owing)
    (job,) = [job for job in due(talk.folder, talk.clock) if isinstance(job, Close)]
    assert talk.step(job.slice_id, job.step)


def test_what_changes_while_the_model_is_asked_stays(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    waits = form("close", focus="The model's", summary="The model's too.", tags=["running"])
    model_server.rules(filled("close", replace(waits, hang_after=0)))
    closed(talk, "About #running")
    step = threading.Thread(target=talk.step, args=(FIRST, todo.ANALYSE_CLOSE))
    step.start()
    assert model_server.wait_for(waiting=1)
    path = talk.core(FIRST)
    text = path.read_text().replace("tags:\n- running\n", "tags:\n- running\n- added meanwhile\n")
    text = text.replace("focus: 'About", "focus: 'By hand, about")
    assert "added meanwhile" in text
    path.write_text(text)
    model_server.release()
    step.join()
    found = talk.slice(FIRST)
    assert found.focus.startswith("By hand, about")
    assert (found.summary, found.tags) == ("The model's too.", ("running", "added meanwhile"))


def test_a_verdict_that_comes_while_the_slice_is_analysed_counts(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    quiet = form("close")
    model_server.rules(filled("turn", form("turn")), filled("close", replace(quiet, hang_after=0)))
    closed(talk, "Well, well.")
    step = threading.Thread(target=talk.step, args=(FIRST, todo.ANALYSE_CLOSE))
    step.start()
    assert model_server.wait_for(waiting=1)
    with talk.folder.files_lock():
        works = talk.folder.state.todo()
        talk.folder.state.save_todo([todo.Work(what=todo.CLOSE, slice_id=FIRST, worth_it=True), *works[1:]])
    model_server.release()
    step.join()
    talk.step(FIRST, todo.EVOLVE_CARD)
    assert talk.count() == {"close": 1, "evolve_card": 1}


def test_a_card_that_cannot_be_read_does_not_hold_up_the_pass(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(filled("turn", WORTH_IT), filled("close", MARKED))
    closed(talk)
    broken = b"---\nupdated: '2026\n---\n\xff\xfe"
    (talk.folder.root / CARD).write_bytes(broken)
    talk.work()
    assert (talk.folder.root / CARD).read_bytes() == broken
    assert talk.slice(FIRST).focus == "A half marathon in Lisbon"
    assert not closes(talk)


def test_a_slice_that_was_made_unreadable_does_not_hold_up_the_pass(talk: CountedTalk) -> None:
    closed(talk)
    path = talk.folder.root / core_file(FIRST)
    path.write_bytes(path.read_bytes().replace(b"status: closed", b"status: 'closed"))
    damaged = path.read_bytes()
    talk.work()
    assert path.read_bytes() == damaged
    assert not closes(talk)
    assert talk.count() == {}


def test_what_was_only_thought_is_in_no_request_of_a_colleague(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    model_server.rules(filled("turn", WORTH_IT))
    wrong = {"name": "read_slice", "arguments": {"slice_id": "violet-otter-called"}}
    model_server.script(
        Answer(text="Let me look.", reasoning="violet-otter-thought", tool_calls=[wrong]), Answer(text="There is none.")
    )
    closed(talk)
    assert "violet-otter-thought" in talk.agent(FIRST).read_text()
    assert "violet-otter-called" in talk.agent(FIRST).read_text()
    talk.say("One more")
    talk.work()
    talk.end()
    asked = Counter(call["body"].get("model") for call in model_server.calls())
    assert asked[ANALYST] >= 6
    assert not any("violet-otter" in json.dumps(body) for body in model_server.requests(ANALYST))
    assert "violet-otter" not in json.dumps(model_server.requests("talker")[2:])


def test_a_slice_whose_prompt_is_made_is_not_told_of_merges_and_old_slices(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    closed(talk)
    lay(talk, "2026-08-09-0900")
    frozen = model_server.requests("talker")[-1]["messages"][0]
    model_server.rules(filled("backfill", form("backfill", focus="A lighthouse", tags=["lighthouses"])))
    talk.work()
    assert "lighthouses" in talk.folder.strands()
    talk.later(minutes=1)
    talk.say("Go on")
    assert model_server.requests("talker")[-1]["messages"][0] == frozen
    assert "ighthouse" not in frozen["content"]
