"""What a person does with their own git, between our steps and at the same time: no word is lost by ours."""

import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.conversation.due import Answer, Settle, due
from memory.conversation.settle import settle
from memory.folder import derived
from memory.folder.paths import core_file
from tests.conversation.aftermath import finish, slices_of, texts, working
from tests.conversation.at_once import at_once
from tests.conversation.talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_it_works(talk: Talk) -> None:
    talk.say("One")
    (talk.folder.root / "notes.txt").write_text("mine")
    talk.git("add", "-A")
    talk.git("commit", "-q", "-m", "mine")
    talk.say("Two")
    finish(talk)
    assert [subject.split()[0] for subject in talk.subjects()] == ["turn", "mine", "turn"]


def _commit(talk: Talk) -> None:
    (talk.folder.root / "notes.txt").write_text("mine")
    talk.git("add", "notes.txt")
    talk.git("commit", "-q", "-m", "mine")


def _commit_all(talk: Talk) -> None:
    (talk.folder.root / "notes.txt").write_text("mine")
    talk.git("add", "notes.txt")
    talk.git("commit", "-q", "-a", "-m", "mine")


def _soft_reset(talk: Talk) -> None:
    talk.git("reset", "-q", "HEAD~1")


def _branch(talk: Talk) -> None:
    talk.git("checkout", "-q", "-b", "other")


def _amend(talk: Talk) -> None:
    talk.git("commit", "-q", "--amend", "-a", "-m", "mine")


def _pack(talk: Talk) -> None:
    talk.git("gc", "-q", "--prune=now")


ACTS = [_commit, _commit_all, _soft_reset, _branch, _amend, _pack]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("moment", ["between turns", "while a reply is owed", "after a boundary"])
def test_what_a_person_does_with_git_loses_no_word(talk: Talk, act: Callable[[Talk], None], moment: str) -> None:
    talk.say("One #work")
    talk.say("Two")
    waiting = talk.receive("Three") if moment == "while a reply is owed" else None
    if moment == "after a boundary":
        talk.later(minutes=31)
        waiting = talk.receive("Three")
    act(talk)
    if waiting:
        talk.answer(waiting)
    talk.say("Four")
    for _ in range(10):
        if not talk.sweep():
            break
    expected = ["One #work", "Two", *(["Three"] if waiting else []), "Four"]
    said = [entry for found in slices_of(talk) for entry in found.person_entries]
    assert [entry.content for entry in said] == expected
    committed = "".join(talk.git("show", f"HEAD:{core_file(found.slice_id)}") for found in slices_of(talk))
    for entry in said:
        assert committed.count(f"## Turn {entry.turn_id} ") == 2
    assert not [subject for subject in talk.subjects() if subject.startswith("turn") and subject.endswith(": ")]
    talk.check_sound()


@pytest.mark.parametrize("way", [("checkout", "--", "."), ("stash", "-q"), ("reset", "-q", "--hard")], ids=" ".join)
def test_a_message_that_a_person_takes_back_is_gone_and_blocks_nothing(talk: Talk, way: tuple[str, ...]) -> None:
    talk.say("One")
    taken = talk.receive("Two")
    talk.git(*way)
    talk.answer(taken)
    assert texts(talk) == Counter(["One"])
    finish(talk)
    talk.say("Three")
    finish(talk)
    assert texts(talk) == Counter(["One", "Three"])


def test_a_stash_that_comes_back_brings_its_message(talk: Talk) -> None:
    talk.say("One")
    taken = talk.receive("Two")
    talk.git("stash", "-q")
    settle(talk.folder, now=talk.clock)
    talk.git("stash", "pop", "-q")
    assert Answer(taken.slice_id, taken.turn_id) in due(talk.folder, talk.clock)
    talk.answer(taken)
    talk.say("Three")
    assert texts(talk) == Counter(["One", "Two", "Three"])
    talk.check_sound()


def test_a_turn_that_a_person_resets_away_stays_away(talk: Talk) -> None:
    talk.say("One #work")
    gone = talk.say("Two #sleep")
    talk.git("reset", "-q", "--hard", "HEAD~1")
    kept = talk.say("Three #work")
    assert texts(talk) == Counter(["One #work", "Three #work"])
    assert gone.turn_id not in talk.git("log", "--format=%s")
    talk.later(minutes=31)
    talk.reload()
    talk.say("Four")
    finish(talk)
    assert talk.folder.strands() == derived.rebuild(talk.folder).strands
    assert kept.turn_id in talk.git("log", "--format=%s")


def test_another_branch_keeps_its_own_words(talk: Talk) -> None:
    talk.say("One")
    talk.git("branch", "other")
    talk.say("Two")
    main = talk.git("rev-parse", "main")
    talk.git("checkout", "-q", "other")
    assert texts(talk) == Counter(["One"])
    talk.say("Elsewhere")
    talk.check_sound()
    assert talk.git("rev-parse", "main") == main
    talk.git("checkout", "-q", "main")
    talk.say("Three")
    assert texts(talk) == Counter(["One", "Two", "Three"])
    finish(talk)
    assert "Elsewhere" in talk.git("show", f"other:{core_file(slices_of(talk)[0].slice_id)}")


def test_a_rebase_under_way_makes_commits_wait(talk: Talk) -> None:
    for number in range(4):
        talk.say(f"message {number}")
    subprocess.run(
        ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.org", "rebase", "-q", "-i", "HEAD~2"],
        cwd=talk.folder.root,
        env=os.environ | {"GIT_SEQUENCE_EDITOR": "sed -i 1s/pick/edit/"},
        check=True,
        capture_output=True,
    )
    # The work tree stands at an older turn now, and goes on from there.
    before = talk.git("rev-list", "--all", "--count")
    taken = talk.say("During")
    assert talk.git("rev-list", "--all", "--count") == before
    assert Settle() in due(talk.folder, talk.clock)
    assert talk.slice(taken.slice_id).entry(taken.turn_id, "agent")
    talk.git("stash", "-q")
    talk.git("-c", "core.editor=true", "rebase", "--continue")
    talk.say("After")
    finish(talk)
    assert texts(talk) == Counter([*(f"message {number}" for number in range(4)), "After"])


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_of_somebody_else_is_waited_for(talk: Talk, lock: str) -> None:
    talk.say("One")
    path = talk.folder.root / ".git" / lock
    path.touch()
    os.utime(path, (0, 0))
    talk.say("Two")
    talk.later(minutes=31)
    talk.say("Three")
    talk.sweep()
    assert path.exists()
    path.unlink()
    finish(talk)
    assert texts(talk) == Counter(["One", "Two", "Three"])


def test_a_persons_git_at_the_same_time(talk: Talk) -> None:
    """Commits of the person and of two workers at once: nobody's is lost."""
    talk.say("One")

    def person() -> int:
        made = 0
        for number in range(15):
            (talk.folder.root / "notes.txt").write_text(f"note {number}")
            for arguments in (("add", "notes.txt"), ("commit", "-q", "-m", f"note {number}")):
                try:
                    talk.git(*arguments)
                except subprocess.CalledProcessError:
                    break  # a lock of ours, or the branch moved: they would try again
            else:
                made += 1
        return made

    made, *_ = at_once(person, lambda: len([talk.say(f"word {number}") for number in range(8)]), working(talk))
    for _ in range(20):
        if not talk.sweep():
            break
    assert len([subject for subject in talk.subjects() if subject.startswith("note ")]) == made > 0
    assert texts(talk) == Counter(["One", *(f"word {number}" for number in range(8))])
    committed = talk.git("show", f"HEAD:{core_file(slices_of(talk)[0].slice_id)}")
    for entry in slices_of(talk)[0].person_entries:
        assert committed.count(f"## Turn {entry.turn_id} ") == 2
    talk.git("fsck", "--strict", "--full")
    assert {line[3:] for line in talk.git("status", "--porcelain").splitlines()} <= {"notes.txt"}
