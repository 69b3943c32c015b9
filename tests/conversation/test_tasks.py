"""The tasks as Celery runs them: embedded in `serve`, and in a worker of its own around Redis."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import redis
from celery import Celery

from accounts.models import User
from memory import access, tasks
from memory.conversation.due import Answer, Close, Settle
from memory.conversation.receive import Received, receive
from memory.folder import todo
from memory.folder.clock import utc_now
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Places
from memory.models import ModelCalls
from previously_site.celery import app
from tests.killing.servers import Installation, Server
from tests.model_server.fixture import ModelServerProcess
from tests.served import ROOT, clean_environment
from tests.settings import STACKS

NAMES = {
    "answer", "analyse_close", "evolve_card", "backfill", "consolidate_strands", "upkeep", "settle", "index", "sweep",
}  # fmt: skip
OURS = urlsplit(STACKS["postgres-redis"]["PREVIOUSLY_BROKER_URL"])._replace(path="/11").geturl()
"""A database of our own on the Redis that the tests may use."""
PATIENCE = 60.0


def wait_until(holds: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(0.05)


class Alice:
    """Alice at an installation: her folder, and her page at its first web process."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        data, user_id = installation.data_dir, installation.user_id
        self.folder = MemoryFolder(
            Places(root=data / "folders" / user_id, run=data / "run" / user_id, pending=data / "pending" / user_id)
        )

    def post(self, text: str, turn_id: str, *seen: str) -> None:
        self._installation.say(self._installation.servers[0], text, turn_id, seen)

    def subjects(self) -> list[str]:
        if self.folder.repository.head() is None:
            return []
        return [commit.subject for commit in reversed(self.folder.repository.log(limit=100))]

    def wait_for_commit(self, begin: str) -> None:
        wait_until(lambda: any(subject.startswith(begin) for subject in self.subjects()), f"a commit {begin!r}")

    def talk(self) -> Slice:
        """Two turns, and the slice is ended; the slice, when all is done that follows from that."""
        self.post("I train for a #marathon", "mVhV2g")
        self.post("and my knee holds", "Ab12cQ", "mVhV2g")
        self.wait_for_commit("turn mVhV2g")
        self.wait_for_commit("turn Ab12cQ")
        self.post("/close", "q7Zk_w")
        self.wait_for_commit("close ")
        wait_until(lambda: not self.folder.state.todo(), "the close pass")
        wait_until(lambda: not self.folder.state.pending.exists(), "the pending marker")
        (found,) = self.folder.newest(5)
        assert isinstance(found, Slice)
        return found

    def check(self, found: Slice) -> None:
        """One entry each, marks of the model's, one commit each, and git content."""
        keys = [("mVhV2g", "user"), ("Ab12cQ", "user"), ("mVhV2g", "agent"), ("Ab12cQ", "agent")]
        assert sorted(entry.key for entry in found.entries) == sorted(keys)
        assert found.focus.startswith("About: ")
        assert found.tags == ("marathon",)
        assert [re.split(r"[ :]", subject)[0] for subject in self.subjects()] == ["turn", "turn", "close"]
        wait_until(lambda: self.folder.repository.status() == [], "a clean status")
        assert self.folder.repository.fsck() == []


@pytest.fixture
def install(tmp_path: Path, model_server: ModelServerProcess) -> Iterator[Callable[..., Installation]]:
    """Set up an installation and start these of its processes."""
    made: list[Installation] = []

    def install(*names: str, broker: str = "") -> Installation:
        installation = Installation(tmp_path / "installed" / "data", model_server.url, broker=broker)
        made.append(installation)
        installation.servers = [server for server in installation.servers if server.name in names]
        for server in installation.servers:
            server.command = tuple("INFO" if part == "WARNING" else part for part in server.command)
            installation.start(server)
        installation.wait_until_ready()
        return installation

    yield install
    for installation in made:
        installation.stop()


def log_of(server: Server) -> str:
    return server.log.read_text("utf-8", "replace")


def test_it_works(install: Callable[..., Installation], model_server: ModelServerProcess) -> None:
    installation = install("serve")
    alice = Alice(installation)
    alice.check(alice.talk())
    assert "Traceback" not in log_of(installation.servers[0])
    forms = [(body.get("response_format") or {}).get("json_schema", {}).get("name") for body in model_server.requests()]
    assert [name for name in forms if name != "turn"].count("close") == 1


def test_the_tasks_are_these_and_no_others() -> None:
    assert {name for name in app.tasks if not name.startswith("celery.")} == {f"memory.tasks.{name}" for name in NAMES}
    for name in NAMES:
        task = app.tasks[f"memory.tasks.{name}"]
        assert (task.ignore_result, task.acks_late, task.autoretry_for if hasattr(task, "autoretry_for") else ()) == (
            True, False, (),
        )  # fmt: skip
    assert app.conf.result_backend is None
    assert not app.conf.beat_schedule


@pytest.fixture
def with_redis() -> Iterator[str]:
    """The address of an empty Redis database of our own."""
    client = redis.Redis.from_url(OURS, socket_connect_timeout=1)
    try:
        client.flushdb()
    except redis.exceptions.ConnectionError:
        pytest.skip(f"no Redis at {OURS}: start redis-server")
    yield OURS
    client.flushdb()
    client.close()


def test_web_and_worker_apart_around_redis(
    install: Callable[..., Installation], with_redis: str, capsys: pytest.CaptureFixture[str]
) -> None:
    installation = install("web1", "worker1", broker=with_redis)
    web, worker = installation.servers
    alice = Alice(installation)
    found = alice.talk()
    alice.check(found)
    log = log_of(worker)
    assert "Traceback" not in log + log_of(web)
    (takes,) = re.findall(r"worker (\S+) takes (.+)", log)
    assert takes[0].startswith("w1@")
    assert set(takes[1].split(", ")) == NAMES
    ran = re.findall(r"worker (\S+) runs (\w+)", log)
    assert {host for host, _ in ran} == {takes[0]}
    assert {"answer", *todo.STEPS} <= {name for _, name in ran}
    assert "marathon" not in log
    with capsys.disabled():
        print(f"\nworker {takes[0]} takes {takes[1]}; it ran {', '.join(dict.fromkeys(name for _, name in ran))}")


def test_every_task_may_be_delivered_again(install: Callable[..., Installation], with_redis: str) -> None:
    installation = install("web1", "worker1", "worker2", broker=with_redis)
    alice = Alice(installation)
    publisher = Celery(broker=with_redis)
    user = installation.user_id

    def deliver(slice_id: str) -> None:
        for _ in range(3):
            for turn_id in ("mVhV2g", "Ab12cQ"):
                publisher.send_task("memory.tasks.answer", (user, slice_id, turn_id), queue="replies")
            for step in (*todo.STEPS, "settle"):
                arguments = (user,) if step == "settle" else (user, slice_id)
                publisher.send_task(f"memory.tasks.{step}", arguments, queue="memory")

    alice.post("I train for a #marathon", "mVhV2g")
    (first,) = alice.folder.newest(1)
    assert isinstance(first, Slice)
    deliver(first.slice_id)
    alice.wait_for_commit("turn mVhV2g")
    alice.post("and my knee holds", "Ab12cQ", "mVhV2g")
    deliver(first.slice_id)
    alice.wait_for_commit("turn Ab12cQ")
    alice.post("/close", "q7Zk_w")
    deliver(first.slice_id)
    alice.wait_for_commit("close ")
    deliver(first.slice_id)
    wait_until(lambda: not alice.folder.state.todo(), "the close pass")
    alice.check(alice.folder.slice(first.slice_id))
    assert not any("Traceback" in log_of(server) for server in installation.servers)
    publisher.close()


@pytest.mark.django_db(transaction=True)
def test_nobody_s_task_ends_and_makes_nothing(alice: User, data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = sorted(data_dir.rglob("*"))
    for user_id, told in (
        (str(uuid4()), "there is no account"),
        ("../etc", "no account"),
        (str(alice.pk), "no folder"),
    ):
        for task in (tasks.answer, tasks.settle, *tasks.CLOSE_STEPS.values()):
            caplog.clear()
            arguments = {tasks.answer: (user_id, "2026-08-10-2130", "mVhV2g"), tasks.settle: (user_id,)}
            task(*arguments.get(task, (user_id, "2026-08-10-2130")))
            assert told in caplog.text
    assert sorted(data_dir.rglob("*")) == before


def message(user: User) -> Received:
    """A message of this user, received as the page does it."""
    taken = receive(
        access.folder_of(user), "Hello", turn_id="mVhV2g", seen=(), person=access.person_of(user), now=utc_now()
    )
    assert isinstance(taken, Received)
    return taken


@pytest.fixture
def talker(previously: Callable[..., None], model_server: ModelServerProcess) -> Iterator[ModelServerProcess]:
    """The worker's companion speaks to the model server."""
    previously(model="talker", model_url=model_server.url, model_key="sk-x", card_wait_seconds=2.5)
    tasks.model_server.cache_clear()
    yield model_server
    tasks.model_server.cache_clear()


@pytest.mark.django_db(transaction=True)
def test_what_the_model_is_asked_is_counted(alice: User, talker: ModelServerProcess) -> None:
    taken = message(alice)
    tasks.answer(str(alice.pk), taken.slice_id, taken.turn_id)
    assert {(row.kind, row.count, row.errors) for row in ModelCalls.objects.all()} == {("answer", 1, 0), ("turn", 1, 0)}
    assert all(row.seconds > 0 for row in ModelCalls.objects.all())
    assert tasks.companion(alice).card_wait == 2.5


@pytest.mark.django_db(transaction=True)
def test_the_sweep_hands_over_what_is_due_and_what_it_takes_up_backfills_nothing(
    alice: User, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = message(alice)
    folder, user_id = access.folder_of(alice), str(alice.pk)
    handed: list[object] = []
    monkeypatch.setattr(tasks, "enqueue", lambda user, job: handed.append((user, job)))
    tasks.sweep()
    assert handed == [(user_id, Answer(taken.slice_id, taken.turn_id))]
    monkeypatch.undo()
    tasks.answer(user_id, taken.slice_id, taken.turn_id)
    receive(folder, "/close", turn_id="Ab12cQ", seen=(), person=access.person_of(alice), now=utc_now())
    (work,) = folder.state.todo()
    assert not work.swept
    monkeypatch.setattr(tasks, "enqueue", lambda user, job: handed.append((user, job)))
    tasks.sweep()
    assert handed[1:] == [(user_id, Close(taken.slice_id))]
    assert folder.state.todo()[0].swept


_ENQUEUE = """
import time
from memory import tasks
from memory.conversation.due import {kind}
began = time.monotonic()
done = tasks.enqueue("{user}", {job})
print("told", done, time.monotonic() - began)
"""


@pytest.mark.parametrize("job", [Answer("2026-08-10-2130", "mVhV2g"), Close("2026-08-10-2130"), Settle()])
@pytest.mark.parametrize("silent", [True, False])
def test_a_broker_that_is_not_there_is_waited_for_a_second_at_most(tmp_path: Path, job: object, silent: bool) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if silent:
            listening.listen()
        port = listening.getsockname()[1]
        script = _ENQUEUE.format(kind=type(job).__name__, user=uuid4(), job=job)
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", script],
            cwd=ROOT,
            env=clean_environment(tmp_path, {"PREVIOUSLY_BROKER_URL": f"redis://127.0.0.1:{port}/0"}),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    told, result, seconds = done.stdout.split()[-3:]
    assert (told, result) == ("told", "False")
    assert float(seconds) < 2.0
    assert "waits for the sweep" in done.stderr
