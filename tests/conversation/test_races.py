"""Whoever is at a folder at the same time, each word is there once: tabs, devices, workers, editors and a person's git."""

import itertools
import os
import random
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.conversation.companion import Companion
from memory.conversation.due import Answer, Settle, due
from memory.conversation.receive import Received
from memory.conversation.settle import settle
from memory.folder import derived
from memory.folder.branch import commit_files, look
from memory.folder.git import Change
from memory.folder.paths import CARD, core_file, new_turn_id, slice_ids
from memory.folder.slices import Slice
from memory.llm.client import ModelServer
from tests.conversation.at_once import at_once
from tests.conversation.talk import Talk
from tests.model_server.answers import Answer as Spoken
from tests.model_server.answers import Rule
from tests.model_server.fixture import ModelServerProcess


Connect = Callable[..., ModelServer]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def slices_of(talk: Talk) -> list[Slice]:
    return [talk.slice(slice_id) for slice_id in slice_ids(talk.folder.root)]


def texts(talk: Talk) -> Counter[str]:
    """How often each text of the person is there."""
    return Counter(entry.content for found in slices_of(talk) for entry in found.person_entries)


def finish(talk: Talk) -> None:
    """Sweep until nothing is due, then look whether every turn has one reply and one commit."""
    for _ in range(100):
        if not talk.sweep():
            break
    for found in slices_of(talk):
        keys = Counter(entry.key for entry in found.entries)
        assert set(keys.values()) == {1}
        assert {turn_id for turn_id, role in keys if role == "agent"} == {one.turn_id for one in found.person_entries}
    turns = Counter(subject.split()[1].rstrip(":") for subject in talk.subjects() if subject.startswith("turn "))
    assert set(turns.values()) <= {1}
    assert len(turns) == sum(texts(talk).values())
    talk.check_sound()


def working(talk: Talk, seconds: float = 20.0) -> Callable[[], None]:
    """A worker that sweeps until nothing has been due for a while."""

    def work() -> None:
        quiet_since = began = time.monotonic()
        while time.monotonic() - quiet_since < 0.5 and time.monotonic() - began < seconds:
            if talk.sweep():
                quiet_since = time.monotonic()
            time.sleep(0.01)

    return work


def test_it_works(talk: Talk) -> None:
    """Two web processes and two workers on one folder."""
    talk.say("The first word")

    def web(name: str) -> Callable[[], list[Received]]:
        return lambda: [talk.receive(f"{name} says {number} #topic{number}") for number in range(8)]

    at_once(web("one"), web("two"), working(talk), working(talk))
    finish(talk)
    assert texts(talk) == Counter(
        ["The first word", *(f"{name} says {number} #topic{number}" for name in ("one", "two") for number in range(8))]
    )
    assert len(slices_of(talk)) == 1
    assert talk.folder.strands() == derived.rebuild(talk.folder).strands


def test_a_double_click_is_one_turn(talk: Talk) -> None:
    """The same form posted twice within 50 ms, to two web processes."""
    for number in range(10):
        turn_id = new_turn_id()

        def post(turn_id: str = turn_id, number: int = number, pause: float = 0.0) -> Received:
            time.sleep(pause)
            return talk.receive(f"click {number}", turn_id=turn_id)

        def post_later(post: Callable[..., Received] = post, pause: float = 0.005 * number) -> Received:
            return post(pause=pause)

        first, second = at_once(post, post_later)
        assert (first.slice_id, first.turn_id) == (second.slice_id, second.turn_id)
        assert {first.existed, second.existed} == {False, True}
        talk.shown.append(turn_id)
    finish(talk)
    assert set(texts(talk).values()) == {1}


def test_a_duplicated_tab_with_other_words_loses_neither(talk: Talk) -> None:
    """Two tabs carry the same turn id, because one was duplicated; each has its own text."""
    talk.say("Before")
    for number in range(5):
        turn_id = new_turn_id()

        def left(turn_id: str = turn_id, number: int = number) -> Received:
            return talk.receive(f"left {number}", turn_id=turn_id)

        def right(turn_id: str = turn_id, number: int = number) -> Received:
            return talk.receive(f"right {number}", turn_id=turn_id)

        first, second = at_once(left, right)
        assert first.turn_id != second.turn_id
        assert turn_id in (first.turn_id, second.turn_id)
        talk.shown += [first.turn_id, second.turn_id]
    finish(talk)
    assert set(texts(talk).values()) == {1}
    assert len(texts(talk)) == 11


@pytest.mark.parametrize("closed", [False, True])
def test_a_form_from_the_back_forward_cache(talk: Talk, closed: bool) -> None:
    """Sent once more as it was it is the turn that exists; with other words it is a turn of its own."""
    taken = talk.say("Hello")
    if closed:
        talk.later(minutes=31)
        talk.say("Later")
    again = talk.receive("Hello", turn_id=taken.turn_id, seen=[taken.turn_id])
    assert (again.slice_id, again.turn_id, again.existed) == (taken.slice_id, taken.turn_id, True)
    other = talk.receive("Hello there", turn_id=taken.turn_id, seen=[taken.turn_id])
    assert other.turn_id != taken.turn_id
    finish(talk)
    assert texts(talk)["Hello"] == texts(talk)["Hello there"] == 1


def test_two_devices_one_of_which_shows_nothing(talk: Talk) -> None:
    """A fresh page closes the slice that the other device goes on with: once, and never again in turn."""
    shown = [talk.say("On the desk").turn_id]

    def desk() -> list[str]:
        return [talk.receive(f"desk {number}", seen=shown).slice_id for number in range(4)]

    def phone() -> list[str]:
        own: list[str] = []
        places = []
        for number in range(4):
            taken = talk.receive(f"phone {number}", seen=list(own))
            own.append(taken.turn_id)
            places.append(taken.slice_id)
            talk.answer(taken)
        return places

    at_once(desk, phone)
    finish(talk)
    assert len(slices_of(talk)) == 2
    assert sum(found.active for found in slices_of(talk)) == 1
    assert set(texts(talk).values()) == {1}
    assert len(texts(talk)) == 9


def test_closing_from_two_tabs_at_once_closes_once(talk: Talk) -> None:
    for number in range(5):
        talk.reload()
        talk.say(f"round {number}")
        outcomes = at_once(lambda: type(talk.command("/close")).__name__, lambda: type(talk.command("/close")).__name__)
        assert sorted(outcomes) == ["Ended", "NothingOpen"]
        talk.later(minutes=1)
    finish(talk)
    assert len(slices_of(talk)) == 5


@pytest.mark.parametrize("workers", [1, 4])
def test_a_task_delivered_many_times_makes_one_reply(
    tmp_path: Path, connect: Connect, model_server: ModelServerProcess, workers: int
) -> None:
    def answer() -> None:
        talk = Talk(tmp_path, Companion(model=connect(), pauses=()))
        talk.answer(taken)
        talk.answer(taken)

    talk = Talk(tmp_path)
    taken = talk.receive("Hello")
    model_server.rules(Rule(user="Hello", has_tools=True, answers=[Spoken(text="Hello, Alice.", between=0.02)]))
    at_once(*[answer] * workers)
    assert [entry.content for entry in talk.slice(taken.slice_id).entries] == ["Hello", "Hello, Alice."]
    assert len([one for one in model_server.requests() if "response_format" not in one]) == 1
    finish(talk)


def test_a_worker_that_is_late_for_a_closed_slice(
    tmp_path: Path, connect: Connect, model_server: ModelServerProcess
) -> None:
    talk = Talk(tmp_path)
    taken = talk.receive("Slowly, please")
    model_server.rules(Rule(user="Slowly", has_tools=True, answers=[Spoken(text="Here I am.", hang_after=0)]))

    def worker() -> None:
        late = Talk(tmp_path, Companion(model=connect(), pauses=()))
        late.clock = talk.clock
        late.later(minutes=41)
        late.answer(taken)

    def web() -> Received:
        assert model_server.wait_for(waiting=1)
        talk.later(minutes=40)
        later = talk.receive("Something else")
        model_server.release()
        return later

    _, later = at_once(worker, web)
    assert later.closed
    closed = talk.slice(taken.slice_id)
    assert not closed.active
    assert [entry.content for entry in closed.entries] == ["Slowly, please", "Here I am."]
    assert closed.end == closed.entries[-1].at
    talk.clock = closed.end
    finish(talk)
    shown = talk.git("show", f"HEAD:{core_file(taken.slice_id)}")
    assert "closed_by: time_cap" in shown


def test_an_editor_that_saves_by_rename_in_the_middle_of_a_write(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a step of ours taken at random, an editor reads core.md, adds a word and renames its copy into place."""
    first = talk.say("Hello")
    path, chance = talk.core(first.slice_id), random.Random(1)
    steps = itertools.count()
    saves: list[int] = []
    due_at = -1

    def save() -> None:
        mark = f"edited{len(saves)}"
        saves.append(len(saves))
        copy = path.with_name("core.md.swp~")
        copy.write_bytes(path.read_bytes().replace(b"\nloops: ", f"\n{mark}: 'yes'\nloops: ".encode(), 1))
        copy.rename(path)

    def step(real: Callable[..., object]) -> Callable[..., object]:
        def taken(*arguments: object, **more: object) -> object:
            nonlocal due_at
            if next(steps) == due_at:
                due_at = -1
                save()
            return real(*arguments, **more)

        return taken

    for name in ("open", "write", "fsync", "fstat", "stat"):
        monkeypatch.setattr(os, name, step(getattr(os, name)))
    said = [f"message {number} #topic{number % 15}" for number in range(40)]
    for text in said:
        due_at = next(steps) + chance.randint(1, 60)
        taken = talk.receive(text)
        talk.answer(taken)
        talk.later(seconds=1)
    monkeypatch.undo()
    assert len(saves) > 20
    found = talk.slice(first.slice_id)
    assert [entry.content for entry in found.person_entries] == ["Hello", *said]
    assert {key for key, _ in found.extra} == {f"edited{number}" for number in saves}
    assert found.stray == ""
    finish(talk)


@pytest.mark.parametrize("at", range(1, 6))
def test_an_editor_that_saves_while_we_rewrite_the_front_matter(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Whichever flush of ours it comes before: what it saved stays, and so do our tags."""
    taken = talk.receive("About #running")
    path = talk.core(taken.slice_id)
    flushes, fsync = itertools.count(1), os.fsync

    def flush(handle: int) -> None:
        if next(flushes) == at:
            copy = path.with_name("core.md~")
            copy.write_bytes(path.read_bytes().replace(b"\nloops: ", b"\nedited: 'yes'\nloops: ", 1))
            copy.rename(path)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", flush)
    talk.answer(taken)
    monkeypatch.undo()
    assert next(flushes) > at
    found = talk.slice(taken.slice_id)
    assert found.tags == ("running",)
    assert dict(found.extra) == {"edited": "edited: 'yes'\n"}
    assert len(found.entries) == 2
    finish(talk)


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


@pytest.mark.parametrize("act", [_commit, _commit_all, _soft_reset, _branch, _amend, _pack], ids=lambda act: act.__name__)
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
def test_a_message_that_a_person_takes_back_with_git_is_gone_and_blocks_nothing(talk: Talk, way: tuple[str, ...]) -> None:
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


def test_a_git_that_outlives_its_worker_commits_once(talk: Talk) -> None:
    """The branch moves, between our look and our commit, to the very commit that we are about to make."""
    talk.say("One")
    talk.later(seconds=5)
    taken = talk.receive("Two")
    core = core_file(taken.slice_id)
    with talk.folder.files_lock():
        branch = look(talk.folder, [core])
        data = talk.folder.read(core)
        talk.folder.repository.commit([Change(core, data)], "turn of a killed worker", parent=branch.head, at=talk.clock)
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
    from memory.folder import flushed

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
    assert [subject.split(":")[0] for subject in talk.subjects() if subject.startswith("close")][0].startswith("close ")


def test_two_people_with_the_same_words_never_meet(tmp_path: Path, connect: Connect) -> None:
    """The same texts, turn ids and minutes; each has words of their own as well."""
    turn_ids = [new_turn_id() for _ in range(6)]

    def talking(name: str) -> Callable[[], None]:
        def talk_through() -> None:
            talk = Talk(tmp_path / name, Companion(model=connect(), pauses=()), name=name)
            for number, turn_id in enumerate(turn_ids):
                talk.say(f"the same words {number} #same", turn_id=turn_id)
                talk.say(f"secret of {name} {number} #of-{name}")
            talk.command("/close")
            finish(talk)

        return talk_through

    at_once(talking("alice"), talking("bob"))
    for name, other in (("alice", "bob"), ("bob", "alice")):
        talk = Talk(tmp_path / name)
        finish(talk)
        assert len(texts(talk)) == 12
        for file in (tmp_path / name).rglob("*"):
            if file.is_file():
                assert f"secret of {other}".encode() not in file.read_bytes()
                assert f"of-{other}".encode() not in file.read_bytes()


def test_threads_of_one_process_exclude_each_other_too(talk: Talk) -> None:
    threads = [threading.Thread(target=talk.receive, args=(f"message {number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    finish(talk)
    assert texts(talk) == Counter(f"message {number}" for number in range(16))


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


def finish_index(talk: Talk) -> None:
    """Sweep until nothing is due; the work tree equals HEAD but for the card that the person edits."""
    for _ in range(10):
        if not talk.sweep():
            break
    assert {line[3:] for line in talk.git("status", "--porcelain").splitlines()} <= {CARD}
    talk.git("fsck", "--strict", "--full")


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
