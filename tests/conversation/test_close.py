"""The work after a boundary: strands and timeline made new, one commit, the same bytes as a rebuild."""

from pathlib import Path

import pytest

from memory.conversation.due import Answer, Close, due
from memory.folder import derived, todo
from memory.folder.paths import STRANDS, month_file
from memory.folder.strands import render_strands
from memory.folder.timeline import Line, catalogue, render_month
from tests.conversation.talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def week(talk: Talk) -> None:
    """Some slices, each closed by its time, with topics that come and go."""
    for topics in ("#running #sleep", "#running", "no topic", "#worktop", "#running #worktop", "#sleep"):
        talk.say(f"About {topics}")
        talk.later(minutes=5)
        talk.say("and more of it")
        talk.later(days=3)
        talk.reload()
        while talk.sweep():
            pass


def test_it_works(talk: Talk) -> None:
    taken = talk.say("About #running")
    talk.later(minutes=40)
    talk.say("Later")
    assert talk.sweep() == [Close(taken.slice_id)]
    assert talk.subjects()[-1] == f"close {taken.slice_id}: About #running (running)"
    (month,) = catalogue(talk.folder.root, before="2026-08-10-2200")
    assert isinstance(month, Line)
    assert (month.id, month.turns, month.strands) == (taken.slice_id, 1, ("running",))
    assert due(talk.folder, talk.clock) == []
    talk.check_sound()


def test_a_rebuild_gives_the_same_bytes(talk: Talk) -> None:
    week(talk)
    before = {path: (talk.folder.root / path).read_bytes() for path in (STRANDS, month_file("2026-08"))}
    made = derived.rebuild(talk.folder)
    assert render_strands(made.strands).encode() == before[STRANDS]
    assert made.months == {}
    (talk.folder.root / month_file("2026-08")).unlink()
    again = derived.rebuild(talk.folder)
    assert render_month("2026-08", again.months["2026-08"]).encode() == before[month_file("2026-08")]


def test_stale_strands_of_one_slice_are_pruned_and_come_back_whole(talk: Talk) -> None:
    talk.say("About #chess")
    talk.later(days=20)
    talk.say("Something else", seen=[])
    talk.later(minutes=31)
    talk.say("and else", seen=[])
    talk.sweep()
    talk.sweep()
    assert "chess" not in talk.folder.strands()
    talk.later(minutes=31)
    talk.say("#chess again", seen=[])
    talk.later(minutes=31)
    talk.say("later", seen=[])
    while talk.sweep():
        pass
    assert len(talk.folder.strands()["chess"]) == 2


def test_a_slice_that_owes_a_reply_is_not_worked_on_yet(talk: Talk) -> None:
    first = talk.receive("About #running")
    talk.later(minutes=40)
    second = talk.receive("Later")
    assert due(talk.folder, talk.clock) == [Answer(first.slice_id, first.turn_id)]
    assert not talk.step(first.slice_id, todo.ANALYSE_CLOSE)
    talk.answer(first)
    assert Close(first.slice_id) in talk.jobs
    assert talk.jobs[0] == Answer(second.slice_id, second.turn_id)


def test_ending_a_slice_is_one_commit_of_the_close_pass(talk: Talk) -> None:
    taken = talk.say("One")
    talk.command("/close")
    talk.sweep()
    assert len(talk.subjects()) == 2
    assert talk.subjects()[-1].startswith(f"close {taken.slice_id}: ")
    changed = {Path(path).name for path in talk.git("show", "--format=", "--name-only", "HEAD").split()}
    assert changed == {"core.md", "previously.md", "strands.json", "2026-08.json"}
    assert "+status: closed" in talk.git("show", "HEAD")
    talk.check_sound()


def test_a_second_delivery_changes_nothing(talk: Talk) -> None:
    taken = talk.say("One")
    talk.later(minutes=40)
    talk.say("Two")
    talk.sweep()
    commits = talk.subjects()
    assert not talk.step(taken.slice_id, todo.ANALYSE_CLOSE)
    assert talk.subjects() == commits


def test_a_damaged_slice_hides_no_other_and_keeps_its_strands(talk: Talk) -> None:
    week(talk)
    strands = talk.folder.strands()
    broken = talk.core("2026-08-10-2130")
    broken.write_bytes(broken.read_bytes().replace(b"status: closed", b"status: 'closed"))
    damaged = broken.read_bytes()
    talk.say("a new slice", seen=[])
    talk.later(minutes=40)
    talk.say("and the next")
    while talk.sweep():
        pass
    assert len(catalogue(talk.folder.root)) == 8
    assert set(strands["running"]) <= set(talk.folder.strands()["running"])
    assert broken.read_bytes() == damaged


def test_a_corrupt_month_is_read_from_its_slices_and_written_again(talk: Talk) -> None:
    week(talk)
    path = talk.folder.root / month_file("2026-08")
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    assert len(catalogue(talk.folder.root)) == 6
    talk.later(minutes=40)
    talk.say("closes the last one", seen=[])
    talk.sweep()
    assert path.read_bytes().startswith(whole[: whole.rindex(b"\n  ]")])
