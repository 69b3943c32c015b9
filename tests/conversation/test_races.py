"""Whoever is at a folder at the same time, each word is there once: tabs, devices, workers, editors."""

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.conversation.companion import Companion
from memory.conversation.receive import Received
from memory.folder import derived
from memory.folder.paths import core_file, new_turn_id
from memory.llm.client import ModelServer
from tests.conversation.aftermath import finish, slices_of, texts, working
from tests.conversation.at_once import at_once
from tests.conversation.talk import Talk
from tests.model_server.answers import Answer, Rule
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


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
    model_server.rules(Rule(user="Hello", has_tools=True, answers=[Answer(text="Hello, Alice.", between=0.02)]))
    at_once(*[answer] * workers)
    assert [entry.content for entry in talk.slice(taken.slice_id).entries] == ["Hello", "Hello, Alice."]
    assert len([one for one in model_server.requests() if "response_format" not in one]) == 1
    finish(talk)


def test_a_worker_that_is_late_for_a_closed_slice(
    tmp_path: Path, connect: Connect, model_server: ModelServerProcess
) -> None:
    talk = Talk(tmp_path)
    taken = talk.receive("Slowly, please")
    model_server.rules(Rule(user="Slowly", has_tools=True, answers=[Answer(text="Here I am.", hang_after=0)]))

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
