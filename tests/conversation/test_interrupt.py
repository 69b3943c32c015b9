"""Stopping a reply and asking for it again."""

from pathlib import Path

import pytest

from memory.conversation.due import Answer, owed
from memory.conversation.inflight import ReplyWriter
from memory.conversation.interrupt import stop_reply, try_again
from memory.conversation.outcomes import Outcome, outcome, record_outcome
from memory.folder.errors import NotThere
from tests.conversation.talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_it_works(talk: Talk) -> None:
    taken = talk.receive("Hello")
    assert stop_reply(talk.folder, taken.slice_id, taken.turn_id, now=talk.clock)
    talk.answer(taken)
    assert talk.slice(taken.slice_id).entry(taken.turn_id, "agent") is None
    talk.sweep()
    assert talk.subjects() == [f"turn {taken.turn_id}: Hello"]


def test_a_reply_that_has_begun_is_left_to_its_worker(talk: Talk) -> None:
    taken = talk.receive("Hello")
    with ReplyWriter(talk.folder.state.directory, taken.slice_id, taken.turn_id) as writer:
        writer.attempt()
        assert not stop_reply(talk.folder, taken.slice_id, taken.turn_id, now=talk.clock)
        assert writer.stop_requested()
    assert outcome(talk.folder.state.directory, taken.slice_id, taken.turn_id) is None


def test_a_reply_that_is_over_cannot_be_stopped(talk: Talk) -> None:
    taken = talk.say("Hello")
    assert not stop_reply(talk.folder, taken.slice_id, taken.turn_id, now=talk.clock)
    assert outcome(talk.folder.state.directory, taken.slice_id, taken.turn_id) is None
    with pytest.raises(NotThere):
        stop_reply(talk.folder, "2020-01-01-0000", "abcdef", now=talk.clock)


def test_only_an_outcome_can_be_tried_again_and_only_once(talk: Talk) -> None:
    taken = talk.receive("Hello")
    assert not try_again(talk.folder, taken.slice_id, taken.turn_id)
    record_outcome(talk.folder.state.directory, taken.slice_id, taken.turn_id, Outcome("failed", "cut_off", talk.clock))
    assert owed([talk.slice(taken.slice_id)], talk.folder, talk.clock) == []
    assert try_again(talk.folder, taken.slice_id, taken.turn_id)
    assert not try_again(talk.folder, taken.slice_id, taken.turn_id)
    assert talk.sweep() == [Answer(taken.slice_id, taken.turn_id)]
