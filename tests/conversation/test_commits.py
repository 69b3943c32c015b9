"""One commit a turn, hand edits in their own, and whatever else may happen to a person's repository meanwhile."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from memory.conversation import answer as answering
from memory.conversation.due import Settle, due
from memory.conversation.settle import settle
from memory.folder.commits import commit_ready
from memory.folder.paths import CARD, STRANDS
from tests.conversation.talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_it_works(talk: Talk) -> None:
    taken = talk.say("Hello #world")
    assert talk.subjects() == [f"turn {taken.turn_id}: Hello #world"]
    assert talk.git("log", "--format=%an <%ae> %cn <%ce> %ad", "--date=format:%z").strip() == (
        "Previously <previously@localhost> Previously <previously@localhost> +0000"
    )
    talk.check_sound()


def test_twenty_turns_are_twenty_commits_each_with_its_own_lines(talk: Talk) -> None:
    turns = [talk.say(f"message {number} about #topic{number}") for number in range(20)]
    assert talk.subjects() == [f"turn {turn.turn_id}: message {n} about #topic{n}" for n, turn in enumerate(turns)]
    for number, turn in enumerate(turns):
        commit = f"HEAD~{19 - number}"
        shown = talk.git("show", "--format=", commit)
        added = [line for line in shown.splitlines() if line.startswith("+## Turn ")]
        assert added == [line for line in added if turn.turn_id in line]
        assert len(added) == 2
        assert f"topic{number}" in shown
        for other in range(20):
            if other != number:
                assert f"+message {other} about" not in shown
        assert set(talk.git("show", "--name-only", "--format=", commit).split()) - {CARD} == {
            "memory/episodic/slices/2026/08/10/2130/timeline/core.md",
            STRANDS,
        }
    talk.check_sound()


def test_a_later_message_on_disk_is_not_in_the_commit(talk: Talk) -> None:
    first = talk.receive("one")
    second = talk.receive("two")
    talk.answer(first)
    assert "two" not in talk.git("show", "HEAD:memory/episodic/slices/2026/08/10/2130/timeline/core.md")
    assert talk.git("status", "--porcelain").startswith(" M")
    talk.answer(second)
    talk.check_sound()


def test_the_first_commit_holds_the_card(talk: Talk) -> None:
    talk.say("Hello")
    assert CARD in talk.git("show", "--name-only", "--format=", "HEAD").split()


def test_a_hand_edit_between_turns_is_the_persons_commit(talk: Talk) -> None:
    taken = talk.say("One")
    path = talk.core(taken.slice_id)
    path.write_text(path.read_text().replace("One", "Uno"))
    talk.say("Two")
    assert [subject.split(":")[0] for subject in talk.subjects()] == [
        f"turn {taken.turn_id}", "edited by hand", f"turn {talk.shown[-1]}",
    ]  # fmt: skip
    assert "Two" not in talk.git("show", "--format=", "HEAD~1")
    assert "Uno" not in talk.git("show", "--format=", "-U0", "HEAD")
    talk.check_sound()


def test_a_hand_edit_before_a_boundary(talk: Talk) -> None:
    taken = talk.say("One")
    path = talk.core(taken.slice_id)
    path.write_text(path.read_text().replace("One", "Uno"))
    talk.later(minutes=40)
    talk.say("Two")
    assert talk.subjects()[1].startswith("edited by hand: ")
    assert "+Uno" in talk.git("show", "--format=", "HEAD~1")
    assert "closed" not in talk.git("show", "--format=", "HEAD~1")
    assert talk.slice(taken.slice_id).focus == "Uno"
    talk.sweep()
    talk.check_sound()


def test_files_we_do_not_touch_are_left_alone(talk: Talk) -> None:
    talk.say("One")
    (talk.folder.root / "notes.txt").write_text("mine")
    card = talk.folder.root / CARD
    card.write_text(card.read_text() + "\nmine too\n")
    talk.say("Two")
    assert talk.git("status", "--porcelain").splitlines() == [" M memory/previously.md", "?? notes.txt"]


def test_the_persons_own_commit_between_turns(talk: Talk) -> None:
    talk.say("One")
    (talk.folder.root / "notes.txt").write_text("mine")
    talk.git("add", "notes.txt")
    talk.git("commit", "-q", "-m", "my notes")
    talk.say("Two")
    assert talk.subjects()[1] == "my notes"
    talk.check_sound()


def test_a_commit_made_with_a_stale_index_is_mended(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our commit and our refresh of the index, `git commit` of the person takes the turn back."""
    talk.say("One")
    stale = (talk.folder.root / ".git" / "index").read_bytes()
    taken = talk.say("Two")
    (talk.folder.root / ".git" / "index").write_bytes(stale)
    (talk.folder.root / "notes.txt").write_text("mine")
    talk.git("add", "notes.txt")
    talk.git("commit", "-q", "-m", "my notes")
    core = "HEAD:memory/episodic/slices/2026/08/10/2130/timeline/core.md"
    assert "Two" not in talk.git("show", core)
    talk.say("Three")
    assert "Two" in talk.git("show", core)
    assert f"recovered turn {taken.turn_id}" in talk.subjects()
    talk.check_sound()


@pytest.mark.parametrize("state", ["detached", "merge"])
def test_commits_wait_while_the_persons_git_is_busy(talk: Talk, state: str) -> None:
    talk.say("One")
    if state == "detached":
        talk.git("checkout", "-q", "--detach")
    else:
        (talk.folder.root / ".git" / "MERGE_HEAD").write_text(talk.git("rev-parse", "HEAD"))
    taken = talk.say("Two")
    assert talk.slice(taken.slice_id).entry(taken.turn_id, "agent") is not None
    assert len(talk.subjects()) == 1
    assert Settle() in due(talk.folder, talk.clock)
    if state == "detached":
        talk.git("checkout", "-q", "main")
    else:
        (talk.folder.root / ".git" / "MERGE_HEAD").unlink()
    talk.sweep()
    assert talk.subjects()[-1] == f"turn {taken.turn_id}: Two"
    talk.check_sound()


def test_we_commit_to_the_branch_that_head_names(talk: Talk) -> None:
    talk.say("One")
    talk.git("checkout", "-q", "-b", "another/branch")
    talk.say("Two")
    assert talk.git("log", "-1", "--format=%D").strip() == "HEAD -> another/branch"
    talk.check_sound()


def test_a_stale_index_lock_never_blocks_a_commit(talk: Talk) -> None:
    talk.say("One")
    lock = talk.folder.root / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    talk.say("Two")
    assert len(talk.subjects()) == 2
    assert lock.exists()
    assert Settle() in due(talk.folder, talk.clock)
    lock.unlink()
    talk.sweep()
    talk.check_sound()


def test_a_lock_on_the_branch_makes_commits_wait_and_nothing_else(talk: Talk) -> None:
    talk.say("One")
    lock = talk.folder.root / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    taken = talk.say("Two")
    assert talk.slice(taken.slice_id).entry(taken.turn_id, "agent") is not None
    assert len(talk.subjects()) == 1
    lock.unlink()
    talk.say("Three")
    assert len(talk.subjects()) == 3
    talk.check_sound()


def test_runtime_files_may_be_lost_at_any_time(talk: Talk) -> None:
    talk.say("One")
    answered = talk.receive("Two")
    talk.folder.repository  # noqa: B018 - nothing of it is kept in memory
    lock = talk.folder.root / ".git" / "HEAD.lock"
    lock.touch()
    talk.answer(answered)
    waiting = talk.receive("Three")
    shutil.rmtree(talk.folder.state.directory)
    lock.unlink()
    talk.answer(waiting)
    assert talk.subjects()[1:] == [f"recovered turn {answered.turn_id}", f"turn {waiting.turn_id}: Three"]
    talk.check_sound()


def test_a_lost_run_directory_before_the_first_commit(talk: Talk) -> None:
    taken = talk.receive("One")
    shutil.rmtree(talk.folder.state.directory)
    talk.answer(taken)
    assert talk.subjects() == [f"turn {taken.turn_id}: One"]
    talk.check_sound()


def test_a_crash_between_commit_and_note_makes_no_second_commit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.say("One")
    taken = talk.receive("Two")
    state = type(talk.folder.state)
    with monkeypatch.context() as crash:
        crash.setattr(state, "save_committed", _killed)
        with pytest.raises(KeyboardInterrupt):
            talk.answer(taken)
    assert len(talk.subjects()) == 2
    settle(talk.folder, now=talk.clock)
    assert len(talk.subjects()) == 2
    assert not talk.folder.state.touched()
    talk.check_sound()


def test_corrupt_strands_are_set_aside_and_made_again(talk: Talk) -> None:
    talk.say("About #running")
    path = talk.folder.root / STRANDS
    path.write_text(path.read_text()[:9])
    talk.say("and #sleep")
    assert set(talk.folder.strands()) == {"running", "sleep"}
    assert [found.read_text() for found in path.parent.glob("strands.json.damaged-*")] == ['{\n  "runn']
    talk.check_sound()


def test_message_texts_are_never_commands(talk: Talk, tmp_path: Path) -> None:
    for text in ("--exec=touch pwned", "-m pwned", "$(touch pwned)", "a\n\nfrom 0000\ndata 5\n", "'; touch pwned"):
        talk.say(text)
    assert len(talk.subjects()) == 5
    assert not list(tmp_path.rglob("pwned"))
    talk.check_sound()


def test_the_persons_git_configuration_takes_no_part(
    talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    (hooks / "reference-transaction").chmod(0o755)
    (home / ".gitconfig").write_text(f"[core]\nhooksPath = {hooks}\nautocrlf = true\n[commit]\ngpgSign = true\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    talk.say("One\nline")
    monkeypatch.delenv("GIT_DIR")
    assert not (tmp_path / "hook-ran").exists()
    assert len(talk.subjects()) == 1


def test_commits_race_with_messages_and_lose_nothing(talk: Talk) -> None:
    taken = [talk.receive(f"message {number}") for number in range(8)]
    workers = [threading.Thread(target=talk.answer, args=(one,)) for one in taken]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    while talk.sweep():
        pass
    found = talk.slice(taken[0].slice_id)
    assert len(found.entries) == 16
    assert sorted(talk.subjects()) == sorted(
        f"turn {one.turn_id}: message {number}" for number, one in enumerate(taken)
    )
    talk.check_sound()


def test_a_process_killed_while_it_holds_a_lock_blocks_nobody(talk: Talk) -> None:
    talk.say("One")
    held = subprocess.Popen(
        [sys.executable, "-c", "import sys, time\nfrom pathlib import Path\nfrom memory.folder.locks import held\n"
         "with held(Path(sys.argv[1]), timeout=1):\n    print('held', flush=True)\n    time.sleep(60)",
         str(talk.folder.state.directory / "files.lock")],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert held.stdout is not None
    held.stdout.readline()
    held.send_signal(signal.SIGKILL)
    held.wait()
    held.stdout.close()
    talk.say("Two")
    assert len(talk.subjects()) == 2


def test_a_settle_during_the_analysis_makes_no_second_commit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    analyse = answering.analyse_turn

    def with_settle(*given: Any, **named: Any) -> None:
        settle(talk.folder, now=talk.clock)  # a page load, a sweep, or another worker's close step
        analyse(*given, **named)

    monkeypatch.setattr(answering, "analyse_turn", with_settle)
    taken = talk.say("About #running")
    assert talk.subjects() == [f"turn {taken.turn_id}: About #running"]
    assert "running" in talk.git("show", "--format=", "HEAD")
    talk.check_sound()


def test_the_next_claim_does_not_wait_for_an_analysis(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    analyse, late = answering.analyse_turn, []
    monkeypatch.setattr(answering, "analyse_turn", lambda *given, **named: late.append((given, named)))
    first = talk.receive("About #running")
    second = talk.receive("and #sleep")
    talk.answer(first)
    assert len(talk.subjects()) == 1
    monkeypatch.setattr(answering, "analyse_turn", analyse)
    analyse(*late[0][0], **late[0][1])
    talk.answer(second)
    assert [subject.split(":")[0] for subject in talk.subjects()] == [f"turn {one.turn_id}" for one in (first, second)]
    shown = talk.git("show", "--format=", "HEAD")
    assert "+- running" in shown
    assert "+- sleep" in shown
    talk.check_sound()


def test_owners_that_are_not_ready_stay_listed(talk: Talk) -> None:
    talk.receive("One")
    with talk.folder.files_lock():
        assert commit_ready(talk.folder, lambda owner: False, now=talk.clock) == []
    assert talk.folder.state.touched()
    assert talk.folder.repository.head() is None


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
