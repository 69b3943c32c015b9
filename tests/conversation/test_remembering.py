"""What one slice hands on to the next: how long the first answer waits for it, and where it is told."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memory.conversation.events import Waiting, read_events
from memory.conversation.receive import Received
from memory.folder import todo
from memory.folder.paths import path_of, slice_id_at
from memory.llm.client import ModelServer
from tests.conversation.filled import CountedTalk, added, counted_talk, filled, form
from tests.model_server.answers import Answer
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]

FIRST = "2026-08-10-2130"
SAID = "I train for a half marathon"
SENTENCE = "You are training for a half marathon."
TURN = "mVhV2g"


@pytest.fixture
def talk(tmp_path: Path, connect: Connect) -> CountedTalk:
    return counted_talk(tmp_path, connect, card_wait=30.0)


def forms(model_server: ModelServerProcess, *, slow: float = 0.0, worth: bool = True, **evolve: Answer) -> None:
    """A model that takes `slow` seconds for each form, and finds one thing for the card in the first slice."""
    operation = added(path_of(FIRST), TURN, SAID, "Trains for a half marathon")
    evolved = form("evolve_card", operations=[operation], evolution_summary=SENTENCE)
    answers = {"turn": form("turn", worth_remembering=worth), "close": form("close"), "evolve_card": evolved, **evolve}
    model_server.rules(*(filled(kind, replace(answer, first_after=slow)) for kind, answer in answers.items()))


def boundary(talk: CountedTalk) -> Received:
    """The first slice is answered and closes behind the next message, which is not answered yet."""
    talk.say(SAID, turn_id=TURN)
    talk.later(minutes=40)
    return talk.receive("What next?")


def worker(talk: CountedTalk) -> threading.Thread:
    """A worker at the close pass."""
    thread = threading.Thread(target=talk.close_pass, args=(FIRST,))
    thread.start()
    return thread


def system(model_server: ModelServerProcess) -> str:
    """The system message of the last request for a reply."""
    return str(model_server.requests("talker")[-1]["messages"][0]["content"])


def waited(talk: CountedTalk, taken: Received) -> bool:
    """Whether the page was told to wait."""
    events, _ = read_events(talk.folder.state.directory, taken.slice_id, taken.turn_id)
    return any(isinstance(event, Waiting) and event.code == "remembering" for event in events)


def test_it_works(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    forms(model_server, slow=0.3)
    taken = boundary(talk)
    thread = worker(talk)
    talk.answer(taken)
    thread.join()
    assert talk.slice(taken.slice_id).evolution_summary == SENTENCE
    assert SENTENCE in system(model_server)
    assert "Trains for a half marathon" in system(model_server)
    assert waited(talk, taken)
    assert talk.folder.state.evolution() == ""


def test_it_is_told_word_for_word_when_the_message_is_lost(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    forms(model_server)
    taken = boundary(talk)
    talk.close_pass(FIRST)
    talk.answer(taken)
    first = system(model_server)
    (talk.folder.state.directory / "prompts" / f"{taken.slice_id}.md").unlink()
    talk.say("And then?")
    assert SENTENCE in system(model_server)
    assert system(model_server) == first


@pytest.mark.parametrize("wait", [0.0, 0.4])
def test_it_never_waits_longer_than_it_may(talk: CountedTalk, model_server: ModelServerProcess, wait: float) -> None:
    forms(model_server, close=replace(form("close"), hang_after=0))
    taken = boundary(talk)
    talk.companion = replace(talk.companion, card_wait=wait)
    thread = worker(talk)
    assert model_server.wait_for(waiting=1)
    began = time.monotonic()
    talk.answer(taken)
    took = time.monotonic() - began
    assert thread.is_alive()
    assert took >= wait
    assert took < wait + 20  # a slow machine, not the pass, which hangs until it is let go
    assert waited(talk, taken) == bool(wait)
    assert SENTENCE not in system(model_server)
    model_server.release()
    thread.join()
    assert talk.folder.state.evolution() == SENTENCE
    assert talk.slice(taken.slice_id).evolution_summary == ""


def test_what_comes_too_late_is_told_to_the_next_slice(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    forms(model_server)
    talk.companion = replace(talk.companion, card_wait=0.0)
    taken = boundary(talk)
    talk.answer(taken)
    frozen = system(model_server)
    talk.close_pass(FIRST)
    assert talk.folder.state.evolution() == SENTENCE
    second = added(path_of(taken.slice_id), taken.turn_id, "What next?", "Asks what comes next")
    forms(model_server, evolve_card=form("evolve_card", operations=[second], evolution_summary="You ask what is next."))
    talk.say("Anything else?")
    assert system(model_server) == frozen
    talk.end()
    talk.later(minutes=5)
    third = talk.say("Good morning")
    told = f"{SENTENCE}; You ask what is next."
    assert talk.slice(third.slice_id).evolution_summary == told
    assert told in system(model_server)
    assert talk.folder.state.evolution() == ""
    assert talk.slice(taken.slice_id).evolution_summary == ""


def test_nobody_waits_for_a_slice_that_is_not_worth_it(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    forms(model_server, worth=False)
    taken = boundary(talk)
    talk.answer(taken)  # the pass is never run: a wait would last the whole half minute
    assert not waited(talk, taken)


def test_while_nobody_has_said_it_is_waited_for_the_analysis_alone(
    talk: CountedTalk, model_server: ModelServerProcess
) -> None:
    forms(model_server, turn=Answer(text="no form"), close=form("close"))
    taken = boundary(talk)
    (work,) = [work for work in talk.folder.state.todo() if work.what == todo.CLOSE]
    assert work.worth_it is None
    thread = threading.Thread(target=talk.step, args=(FIRST, todo.ANALYSE_CLOSE))
    thread.start()
    talk.answer(taken)  # ends though the other steps are not run
    thread.join()
    assert SENTENCE not in system(model_server)


def test_a_pass_that_is_tried_again_is_not_waited_for(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    forms(model_server, close=Answer(status=503, body="down"))
    boundary(talk)
    talk.close_pass(FIRST)
    (work,) = [work for work in talk.folder.state.todo() if work.what == todo.CLOSE]
    assert work.attempts == 1
    talk.reload()
    talk.later(minutes=1)
    taken = talk.receive("Anybody?", seen=[])
    began = time.monotonic()
    talk.companion = replace(talk.companion, card_wait=60.0)
    talk.answer(taken)
    assert time.monotonic() - began < 50


def test_a_prompt_is_not_touched_by_what_happens_later(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    forms(model_server)
    taken = boundary(talk)
    talk.companion = replace(talk.companion, card_wait=0.0)
    talk.answer(taken)
    frozen = system(model_server)
    talk.close_pass(FIRST)
    card = talk.folder.root / "memory" / "previously.md"
    card.write_text(card.read_text().replace("## Now\n", "## Now\n- Written by hand\n"))
    talk.later(minutes=1)
    talk.say("Go on")
    assert system(model_server) == frozen


def test_every_slice_after_one_that_was_worth_it_is_told(talk: CountedTalk, model_server: ModelServerProcess) -> None:
    talk.companion = replace(talk.companion, card_wait=6.0)
    model_server.rules(filled("turn", form("turn", worth_remembering=True)))
    told: list[str] = []
    for number in range(4):
        path = path_of(slice_id_at(talk.clock))
        operation = added(path, f"turn{number}", f"thing number {number}", f"Did thing number {number}")
        sentence = f"You did thing number {number}."
        evolved = form("evolve_card", operations=[operation], evolution_summary=sentence)
        taken = talk.receive(f"I did thing number {number}", turn_id=f"turn{number}")
        passes = [threading.Thread(target=talk.close_pass, args=(taken.closed.slice_id,))] if taken.closed else []
        for thread in passes:
            thread.start()
        talk.answer(taken)
        for thread in passes:
            thread.join()
        found = talk.slice(taken.slice_id)
        assert found.evolution_summary == (told[-1] if told else "")
        assert found.evolution_summary in system(model_server)
        told.append(sentence)
        talk.later(minutes=40)
        answers = {"turn": form("turn", worth_remembering=True), "close": form("close"), "evolve_card": evolved}
        # What the model makes of this slice when the next one begins, a second for each form.
        model_server.rules(*(filled(kind, replace(answer, first_after=1.0)) for kind, answer in answers.items()))
