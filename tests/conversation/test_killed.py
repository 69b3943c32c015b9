"""What a kill leaves at the worst moments, each moment by itself; the trials in tests/killing take any moment."""

import itertools
import shutil
from collections import Counter
from pathlib import Path

import pytest

from memory.conversation.settle import settle
from memory.folder import flushed
from memory.folder.branch import commit_files, look
from memory.folder.git import Change
from memory.folder.paths import CARD, core_file, new_turn_id
from tests.conversation.aftermath import finish, finish_index, texts
from tests.conversation.talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_it_works(talk: Talk) -> None:
    """A worker dies between the reply and its commit."""
    taken = talk.receive("One")
    with pytest.MonkeyPatch.context() as crash:
        crash.setattr("memory.conversation.answer.analyse_turn", _killed)
        with pytest.raises(KeyboardInterrupt):
            talk.answer(taken)
    assert talk.folder.repository.head() is None
    finish(talk)
    assert texts(talk) == Counter(["One"])


def test_a_git_that_outlives_its_worker_commits_once(talk: Talk) -> None:
    """The branch moves, between our look and our commit, to the very commit that we are about to make."""
    talk.say("One")
    talk.later(seconds=5)
    taken = talk.receive("Two")
    core = core_file(taken.slice_id)
    with talk.folder.files_lock():
        branch = look(talk.folder, [core])
        data = talk.folder.read(core)
        talk.folder.repository.commit([Change(core, data)], "of a killed worker", parent=branch.head, at=talk.clock)
        assert commit_files(talk.folder, branch, {core: data}, "the same again", talk.clock) is None
    talk.answer(taken)
    assert "the same again" not in talk.subjects()
    for before, after in itertools.pairwise(["HEAD~2", "HEAD~1", "HEAD"]):
        assert talk.git("diff", "--name-only", before, after)
    finish_index(talk)


def test_a_commit_whose_end_nobody_noted_leaves_no_stale_knowledge(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last noted commit held is not taken for what the branch holds after another one."""
    talk.say("One #work")
    taken = talk.receive("Two")
    with monkeypatch.context() as crash:
        crash.setattr(type(talk.folder.state), "save_committed", _killed)
        with pytest.raises(KeyboardInterrupt):
            talk.answer(taken)
    settle(talk.folder, now=talk.clock)
    card = talk.folder.root / CARD
    card.write_text(card.read_text() + "\nmine\n")
    talk.command("/close")
    talk.sweep()
    talk.later(minutes=1)
    talk.reload()
    talk.say("Three")
    finish_index(talk)
    assert not [subject for subject in talk.subjects() if subject.startswith("edited by hand: memory/episodic")]


def test_a_boundary_without_its_message_is_the_closes_own_commit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process dies after the slice was closed and before the message was on disk; the page sends it again."""
    talk.say("One")
    talk.later(minutes=31)
    turn_id = new_turn_id()
    real = flushed.make_directories

    def dying(path: Path, *, below: Path) -> None:
        if path.parent.name == "2201":
            raise KeyboardInterrupt
        real(path, below=below)

    with monkeypatch.context() as crash:
        crash.setattr(flushed, "make_directories", dying)
        with pytest.raises(KeyboardInterrupt):
            talk.receive("Two", turn_id=turn_id)
    for _ in range(10):
        if not talk.sweep():
            break
    talk.say("Two", turn_id=turn_id)
    finish(talk)
    assert [subject for subject in talk.subjects() if turn_id in subject] == [f"turn {turn_id}: Two"]
    assert [subject for subject in talk.subjects() if subject.startswith("close 2026-08-10-2130: ")]


@pytest.mark.parametrize("cut", [1, 3, 9, 12, 19, 45, 60, 73, 80, 81, 82, 90])
@pytest.mark.parametrize("resent", [False, True])
def test_an_append_that_a_kill_cut_short_is_nobodys_edit(talk: Talk, cut: int, resent: bool) -> None:
    talk.say("One #work")
    path = talk.core("2026-08-10-2130")
    before = path.read_bytes()
    taken = talk.receive("半 Two, at some length")
    path.write_bytes(path.read_bytes()[: len(before) + cut])
    if resent:
        talk.receive("半 Two, at some length", turn_id=taken.turn_id)
    for _ in range(5):
        if not talk.sweep():
            break
    talk.say("Three")
    assert not [subject for subject in talk.subjects() if "by hand" in subject]
    if resent:
        assert texts(talk)["半 Two, at some length"] == 1
    for _ in range(5):
        if not talk.sweep():
            break
    talk.check_sound()


def test_the_run_directory_may_go_between_any_two_steps(talk: Talk) -> None:
    for number in range(6):
        taken = talk.receive(f"message {number}")
        shutil.rmtree(talk.folder.state.directory)
        talk.answer(taken)
        shutil.rmtree(talk.folder.state.directory)
    talk.later(minutes=31)
    talk.say("Later")
    for _ in range(10):
        if not talk.sweep():
            break
    assert texts(talk) == Counter([*(f"message {number}" for number in range(6)), "Later"])
    talk.check_sound()


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
