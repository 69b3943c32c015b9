"""What is owed, found out from files alone."""

from datetime import timedelta
from pathlib import Path

import pytest

from memory.conversation.due import Answer, Close, Settle, due, nothing_due
from memory.conversation.settle import clear_marker
from memory.folder.todo import Work
from tests.conversation.talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_it_works(talk: Talk) -> None:
    assert due(talk.folder, talk.clock) == []
    taken = talk.receive("Hello")
    assert due(talk.folder, talk.clock) == [Answer(taken.slice_id, taken.turn_id)]
    talk.answer(taken)
    assert due(talk.folder, talk.clock) == []


def test_of_the_owed_replies_the_oldest_is_due(talk: Talk) -> None:
    first = talk.receive("one")
    talk.receive("two")
    talk.later(minutes=40)
    talk.receive("three")
    assert due(talk.folder, talk.clock) == [Answer(first.slice_id, first.turn_id)]


def test_a_reply_owed_behind_many_short_slices_is_still_found(talk: Talk) -> None:
    first = talk.receive("the one that nobody answered")
    for number in range(6):
        talk.later(minutes=31)
        talk.receive(f"later {number}")
    assert due(talk.folder, talk.clock)[0] == Answer(first.slice_id, first.turn_id)


def test_work_that_waits_for_its_time_is_not_due_yet_but_kept(talk: Talk) -> None:
    talk.say("Hello")
    with talk.folder.files_lock():
        later = talk.clock + timedelta(minutes=5)
        talk.folder.state.save_todo([Work(what="close", slice_id="2026-08-10-2130", not_before=later)])
    assert due(talk.folder, talk.clock) == []
    assert not nothing_due(talk.folder, talk.clock)
    assert due(talk.folder, later) == [Close("2026-08-10-2130")]


def test_uncommitted_turns_are_due_once_they_have_ended(talk: Talk) -> None:
    talk.say("One")
    (talk.folder.root / ".git" / "MERGE_HEAD").write_text(talk.git("rev-parse", "HEAD"))
    talk.say("Two")
    assert due(talk.folder, talk.clock) == [Settle()]


def test_the_marker_goes_when_nothing_is_due_and_not_before(talk: Talk) -> None:
    marker = talk.folder.state.pending
    taken = talk.receive("Hello")
    clear_marker(talk.folder, now=talk.clock)
    assert marker.exists()
    talk.answer(taken)
    clear_marker(talk.folder, now=talk.clock)
    assert not marker.exists()
