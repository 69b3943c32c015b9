"""The turn is answered: what is sent, what is recorded, how it ends, what is committed."""

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.conversation.companion import Companion
from memory.conversation.due import Answer as OwedAnswer
from memory.conversation.due import due, owed
from memory.conversation.events import fold, read_events
from memory.conversation.outcomes import outcome, reopen, request_stop
from memory.conversation.receive import Received
from memory.folder.closing import limits
from memory.folder.paths import CARD
from memory.llm.client import ModelServer
from tests.conversation.talk import Talk
from tests.model_server.answers import Answer, Rule, error_body
from tests.model_server.book import ANALYST
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]

TALKER = "talker"


@pytest.fixture
def talk(tmp_path: Path, connect: Connect) -> Talk:
    return Talk(tmp_path, Companion(model=connect(analyst=ANALYST), pauses=(0.01, 0.02), card_wait=0))


def state_of(talk: Talk, taken: Received) -> Any:
    """What the page was told of a reply."""
    return fold(read_events(talk.folder.state.directory, taken.slice_id, taken.turn_id)[0])


def reply(talk: Talk, taken: Received) -> str | None:
    """The recorded reply of a turn."""
    entry = talk.slice(taken.slice_id).entry(taken.turn_id, "agent")
    return entry.content if entry else None


def ended(talk: Talk, taken: Received) -> tuple[str, str]:
    """The recorded outcome of a turn."""
    found = outcome(talk.folder.state.directory, taken.slice_id, taken.turn_id)
    assert found is not None
    return found.kind, found.code


def test_it_works(talk: Talk, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(text="Good evening, Alice."))
    taken = talk.say("Hello")
    assert reply(talk, taken) == "Good evening, Alice."
    assert state_of(talk, taken).text == "Good evening, Alice."
    assert state_of(talk, taken).ended.how == "done"
    assert talk.subjects() == [f"turn {taken.turn_id}: Hello"]
    assert not due(talk.folder, talk.clock)
    talk.check_sound()


def test_every_request_extends_the_one_before(talk: Talk, model_server: ModelServerProcess) -> None:
    for number in range(4):
        model_server.script(Answer(text=f"reply {number}"))
        talk.say(f"message {number}")
        talk.later(minutes=2)
    sent = [body["messages"] for body in model_server.requests(TALKER)]
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before
    assert [message["content"] for message in sent[-1][1:]] == [
        "message 0", "reply 0", "message 1", "reply 1", "message 2", "reply 2", "message 3",
    ]  # fmt: skip


def test_the_system_message_is_frozen_at_birth(tmp_path: Path, talk: Talk, model_server: ModelServerProcess) -> None:
    talk.clock = talk.clock.replace(hour=15, minute=50)  # ten to midnight in Shanghai
    talk.say("One #running")
    path = talk.folder.root / CARD
    path.write_text(path.read_text().replace("## Now\n", "## Now\n- Edited by hand\n"))
    talk.later(minutes=15)
    other = Talk(tmp_path, talk.companion, language="zh-hans", timezone="Europe/Lisbon", limits=limits(60, 100))
    other.clock, other.shown = talk.clock, talk.shown
    other.say("Two #worktop")
    systems = [body["messages"][0] for body in model_server.requests(TALKER)]
    assert len(systems) == 2
    assert systems[0] == systems[1]
    assert systems[0]["role"] == "system"


def test_reasoning_goes_to_agent_md_and_nowhere_else(talk: Talk, model_server: ModelServerProcess) -> None:
    marker = "violet-otter"
    model_server.script(Answer(text="Fine.", reasoning=f"thinking of {marker}"))
    taken = talk.say("One")
    assert marker in talk.agent(taken.slice_id).read_text()
    assert marker not in talk.core(taken.slice_id).read_text()
    model_server.script(Answer(text=f"<think>again {marker}</think>Good."))
    assert reply(talk, talk.say("Two")) == "Good."
    talk.say("Three")
    assert not any(marker in json.dumps(body) for body in model_server.requests(TALKER))


def test_tools_are_run_and_their_errors_stay_out_of_later_turns(talk: Talk, model_server: ModelServerProcess) -> None:
    calls = [
        {"name": "current_time", "arguments": {}},
        {"name": "read_slice", "arguments": {"slice_id": "../../../etc/passwd"}},
    ]
    model_server.script(Answer(text="Let me look.", tool_calls=calls), Answer(text="It is Tuesday."))
    taken = talk.say("Which day is it?")
    assert reply(talk, taken) == "Let me look.\n\nIt is Tuesday."
    steps = [(step.name, step.state) for step in state_of(talk, taken).steps]
    assert steps == [("current_time", "ok"), ("read_slice", "error")]
    block = talk.agent(taken.slice_id).read_text()
    assert "- `current_time`() → ok\n" in block
    assert '- `read_slice`(slice_id: "../../../etc/passwd") → error: no such slice\n' in block
    second = model_server.requests(TALKER)[1]["messages"]
    assert [message["role"] for message in second[2:]] == ["assistant", "tool", "tool"]
    talk.say("Thanks")
    assert "no such slice" not in json.dumps(model_server.requests(TALKER)[-1])
    assert talk.slice(taken.slice_id).turn_count == 2


def test_a_model_that_never_stops_calling_tools_is_made_to_answer(talk: Talk, model_server: ModelServerProcess) -> None:
    model_server.rules(
        Rule(answers=[Answer(tool_calls=[{"name": "current_time", "arguments": {}}])], has_tools=True),
        Rule(answers=[Answer(text="Enough.")], has_tools=False),
    )
    assert reply(talk, talk.say("Go")) == "Enough."
    assert len(model_server.requests(TALKER)) == 21


def test_a_tool_call_written_as_text_is_text(talk: Talk, model_server: ModelServerProcess) -> None:
    written = '<tool_call>{"name":"read_card","arguments":{}}</tool_call>'
    model_server.script(Answer(text=written))
    taken = talk.say("Go")
    assert reply(talk, taken) == written
    assert len(model_server.requests(TALKER)) == 1


def test_a_second_delivery_does_nothing(talk: Talk, model_server: ModelServerProcess) -> None:
    taken = talk.say("One")
    talk.answer(taken)
    assert len(model_server.requests(TALKER)) == 1
    assert len(talk.subjects()) == 1


def test_two_workers_at_once_write_one_reply(talk: Talk, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(chunks=["One ", "reply."], hang_after=1))
    taken = talk.receive("Hello")
    first = threading.Thread(target=talk.answer, args=(taken,))
    first.start()
    assert model_server.wait_for(waiting=1)
    talk.answer(taken)  # the second worker leaves at once
    model_server.release()
    first.join()
    assert reply(talk, taken) == "One reply."
    assert len(model_server.requests(TALKER)) == 1


def test_messages_sent_meanwhile_wait_in_order(talk: Talk, model_server: ModelServerProcess) -> None:
    first, second, third = (talk.receive(text) for text in ("one", "two", "three"))
    talk.answer(third)
    assert reply(talk, first) is not None
    assert talk.jobs == [OwedAnswer(second.slice_id, second.turn_id)]
    talk.answer(second)
    assert talk.jobs[-1] == OwedAnswer(third.slice_id, third.turn_id)
    talk.answer(third)
    assert not owed([talk.slice(first.slice_id)], talk.folder, talk.clock)
    asked = [body["messages"][-1]["content"] for body in model_server.requests(TALKER)]
    assert asked == ["one", "two", "three"]
    assert talk.subjects() == [f"turn {taken.turn_id}: {word}" for taken, word in
                               ((first, "one"), (second, "two"), (third, "three"))]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(status=500, body="oops"), "server_failed"),
        (Answer(status=429, headers={"Retry-After": "0"}, body=error_body("slow down")), "rate_limited"),
        (Answer(status=401, body=error_body("no")), "bad_key"),
        (Answer(status=400, body=error_body("no", code="context_length_exceeded")), "context_overflow"),
        (Answer(status=502, body="<html>bad gateway</html>", headers={"Content-Type": "text/html"}), "server_failed"),
        (Answer(status=200, body="<html>hello</html>", headers={"Content-Type": "text/html"}), "not_a_model_server"),
        (Answer(choices=False), None),
        (Answer(text=""), "empty_answer"),
        (Answer(text="", finish_reason="content_filter"), "filtered"),
        (Answer(chunks=["half ", "a reply"], cut_after=2), "cut_off"),
        (Answer(lines=["{garbage"]), None),
    ],
)
def test_trouble_with_the_model_has_an_outcome(
    talk: Talk, model_server: ModelServerProcess, answer: Answer, code: str | None
) -> None:
    model_server.rules(Rule(answers=[answer]))
    taken = talk.say("Hello")
    assert reply(talk, taken) is None
    kind, found = ended(talk, taken)
    assert kind == "failed"
    assert found == code or (code is None and found)
    assert state_of(talk, taken).ended.how == "failed"
    assert talk.subjects() == [f"turn {taken.turn_id}: Hello"]
    assert not due(talk.folder, talk.clock)
    asked = len(model_server.requests(TALKER))
    for _ in range(3):
        assert talk.sweep() == []
    assert len(model_server.requests(TALKER)) == asked
    talk.check_sound()


def test_a_server_that_is_not_there(tmp_path: Path, connect: Connect) -> None:
    nobody = connect(url="http://127.0.0.1:9", analyst=ANALYST)
    talk = Talk(tmp_path, Companion(model=nobody, pauses=(0.01,), card_wait=0))
    taken = talk.say("Hello")
    assert ended(talk, taken) == ("failed", "unreachable")
    assert talk.slice(taken.slice_id).entries[0].content == "Hello"


def test_a_silent_server_times_out(tmp_path: Path, connect: Connect, model_server: ModelServerProcess) -> None:
    model_server.rules(Rule(answers=[Answer(text="late", hang_after=-1)]))
    talk = Talk(tmp_path, Companion(model=connect(first=0.2, analyst=ANALYST), pauses=(), card_wait=0))
    assert ended(talk, talk.say("Hello")) == ("failed", "timed_out")


def test_a_passing_failure_is_tried_again(talk: Talk, model_server: ModelServerProcess) -> None:
    limit = Answer(status=429, body=error_body("slow down"))
    model_server.script(limit, limit, Answer(text="Here."))
    taken = talk.say("Hello")
    assert reply(talk, taken) == "Here."
    assert state_of(talk, taken).attempts == 3
    assert len(talk.slice(taken.slice_id).entries) == 2


def test_a_broken_stream_leaves_an_unfinished_reply_and_can_be_tried_again(
    talk: Talk, model_server: ModelServerProcess
) -> None:
    model_server.rules(Rule(answers=[Answer(chunks=["half ", "a reply"], cut_after=2)], times=3))
    taken = talk.say("Hello")
    assert ended(talk, taken) == ("failed", "cut_off")
    assert "### Unfinished reply\nhalf a reply\n" in talk.agent(taken.slice_id).read_text()
    assert reply(talk, taken) is None
    reopen(talk.folder.state.directory, taken.slice_id, taken.turn_id)
    model_server.script(Answer(text="whole"))
    talk.later(minutes=1)
    assert talk.sweep() == [OwedAnswer(taken.slice_id, taken.turn_id)]
    assert reply(talk, taken) == "whole"
    assert talk.subjects() == [f"turn {taken.turn_id}: Hello", f"turn {taken.turn_id}, again: Hello"]
    assert "half a reply" not in json.dumps(model_server.requests(TALKER)[-1])


def test_stopped_in_the_middle_keeps_what_came(talk: Talk, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(chunks=["First words, ", "never said"], hang_after=1))
    taken = talk.receive("Hello")
    worker = threading.Thread(target=talk.answer, args=(taken,))
    worker.start()
    assert model_server.wait_for(waiting=1)
    while not state_of(talk, taken).text:
        pass
    request_stop(talk.folder.state.directory, taken.slice_id, taken.turn_id)
    worker.join(5)
    assert reply(talk, taken) == "First words, "
    assert state_of(talk, taken).ended.how == "stopped"
    assert model_server.wait_for(hung_up=1)


def test_stopped_before_the_first_word_is_never_asked_again(talk: Talk, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(text="never said", hang_after=0))
    taken = talk.receive("Hello")
    worker = threading.Thread(target=talk.answer, args=(taken,))
    worker.start()
    assert model_server.wait_for(waiting=1)
    request_stop(talk.folder.state.directory, taken.slice_id, taken.turn_id)
    worker.join(5)
    assert ended(talk, taken) == ("stopped", "")
    for _ in range(3):
        assert talk.sweep() == []
    assert len(model_server.requests(TALKER)) == 1
    assert talk.subjects() == [f"turn {taken.turn_id}: Hello"]


def test_a_worker_that_leaves_owes_the_reply(talk: Talk, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(chunks=["half ", "said"], hang_after=1))
    leaving = threading.Event()
    whole, talk.companion = talk.companion, replace(talk.companion, stopping=leaving.is_set)
    taken = talk.receive("Hello")
    worker = threading.Thread(target=talk.answer, args=(taken,))
    worker.start()
    assert model_server.wait_for(waiting=1)
    leaving.set()
    worker.join(5)
    assert reply(talk, taken) is None
    assert state_of(talk, taken).ended is None
    talk.companion = whole
    model_server.script(Answer(text="all of it"))
    assert talk.sweep() == [OwedAnswer(taken.slice_id, taken.turn_id)]
    assert reply(talk, taken) == "all of it"
    assert state_of(talk, taken).text == "all of it"


def test_a_reply_is_owed_for_a_day(talk: Talk, model_server: ModelServerProcess) -> None:
    talk.receive("Hello")
    talk.later(hours=24, minutes=1)
    talk.sweep()
    assert not model_server.requests(TALKER)
    assert len(talk.subjects()) == 1
    talk.check_sound()


def test_a_late_reply_moves_the_end_of_a_closed_slice(talk: Talk, model_server: ModelServerProcess) -> None:
    first = talk.receive("Hello")
    talk.later(minutes=40)
    second = talk.receive("Still there?")
    talk.later(seconds=5)
    talk.answer(first)
    closed = talk.slice(first.slice_id)
    assert closed.status == "closed"
    assert closed.end == talk.clock == closed.entries[-1].at
    talk.answer(second)
    changed = talk.git("show", "--format=", "HEAD~1", "--", talk.core(first.slice_id).as_posix())
    assert "+status: active" in changed
    assert "closed" not in changed
    assert "+status: closed" in talk.git("show", "--format=", "HEAD", "--", talk.core(first.slice_id).as_posix())


def test_named_strands_and_hashtags_are_woven_in_the_turns_own_commit(talk: Talk) -> None:
    first = talk.say("About #running today")
    assert talk.folder.strands() == {"running": (talk.slice(first.slice_id).path,)}
    assert "memory/episodic/strands.json" in talk.git("show", "--name-only", "--format=", "HEAD")
    talk.say("more running")
    assert "strands.json" not in talk.git("show", "--name-only", "--format=", "HEAD")
    talk.later(minutes=40)
    second = talk.say("Running again, after a while")
    assert talk.slice(second.slice_id).tags == ("running",)
    assert len(talk.folder.strands()["running"]) == 2


def test_hand_written_marks_stay_while_a_reply_runs(talk: Talk, model_server: ModelServerProcess) -> None:
    talk.say("One")
    model_server.script(Answer(chunks=["two ", "parts"], hang_after=1))
    taken = talk.receive("Two")
    worker = threading.Thread(target=talk.answer, args=(taken,))
    worker.start()
    assert model_server.wait_for(waiting=1)
    path = talk.core(taken.slice_id)
    path.write_text(path.read_text().replace("One", "Uno"))
    model_server.release()
    worker.join(5)
    assert reply(talk, taken) == "two parts"
    assert [entry.content for entry in talk.slice(taken.slice_id).person_entries] == ["Uno", "Two"]
    assert talk.subjects()[1].startswith("edited by hand: memory/episodic/slices/")
    by_hand = talk.git("show", "--format=", "HEAD~1")
    assert "+Uno" in by_hand
    assert "Two" not in by_hand
    talk.check_sound()


def test_the_model_gone_for_good_still_keeps_every_word(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    taken = talk.say("Dear diary")
    assert "No model is configured" in (reply(talk, taken) or "")
    talk.check_sound()


def test_the_budget_of_an_ordinary_turn_is_one_call(talk: Talk, model_server: ModelServerProcess) -> None:
    for number in range(5):
        talk.say(f"message {number}")
    assert len(model_server.requests(TALKER)) == 5


def test_an_overflowing_slice_leaves_out_whole_turns_and_says_so(
    tmp_path: Path, connect: Connect, model_server: ModelServerProcess
) -> None:
    talk = Talk(tmp_path, Companion(model=connect(context=8_000, analyst=ANALYST), pauses=(), card_wait=0))
    model_server.context(8_000)
    for number in range(12):
        taken = talk.say(f"{number}: " + "words and more words " * 200)
        assert reply(talk, taken) is not None, ended(talk, taken)
    assert any(notice.code == "left_out" for notice in state_of(talk, taken).notices)
