"""The running product as benchmarks need it: a data folder with people in it, and the processes that serve it.

`open_data` sets up Django for this process, so it comes before any import of a model or a view.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django

from tests.benchmarks.measure import cpu_of
from tests.served import ROOT, Served, clean_environment

SECONDS_TO_START = 60


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What runs: its address, and every process of ours, the web process first."""

    url: str
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """CPU seconds that all our processes, and the git they ran, have used so far."""
        return sum(map(cpu_of, self.pids))


def open_data(data: Path, more: Mapping[str, str]) -> None:
    """Make a data folder with its database, and use it and these settings in this process from now on."""
    environment = clean_environment(data, more)
    os.environ.clear()
    os.environ.update(environment)
    os.environ["DJANGO_SETTINGS_MODULE"] = "previously_site.settings"
    django.setup()
    from previously_site.migrating import migrate

    migrate()


def make_person(called: str) -> Any:
    """An account that talks in long slices."""
    from accounts.models import User

    return User.objects.create_user(
        f"{called.lower()}@example.org", None, called=called, timezone="Europe/Lisbon", language="en",
        slice_minutes=120, slice_turns=100,
    )  # fmt: skip


def sign_in(user: Any) -> str:
    """A session of this person; the key is what the browser's cookie holds."""
    from django.test import Client

    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value


@contextmanager
def embedded(data: Path, more: Mapping[str, str]) -> Iterator[Stack]:
    """`manage.py serve`: web and worker in one process."""
    served = Served(data, more)
    try:
        served.wait_until_ready()
        yield Stack(url=served.url, pids=(served.process.pid,))
    finally:
        served.kill()


@contextmanager
def separate(data: Path, more: Mapping[str, str]) -> Iterator[Stack]:
    """Redis, uvicorn and a Celery worker, each a process of its own. Raises FileNotFoundError without redis-server."""
    redis = shutil.which("redis-server") or shutil.which("valkey-server")
    if redis is None:
        raise FileNotFoundError("redis-server")
    broker, web = _free_port(), _free_port()
    environment = clean_environment(data, {**more, "PREVIOUSLY_BROKER_URL": f"redis://127.0.0.1:{broker}/0"})
    commands = (
        [redis, "--port", str(broker), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        [sys.executable, "-m", "uvicorn", "previously_site.asgi:application", "--port", str(web), "--lifespan", "off",
         "--no-access-log"],
        [sys.executable, "-m", "celery", "-A", "previously_site", "worker", "--loglevel", "WARNING"],
    )  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            running.append(
                subprocess.Popen(
                    command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
        url = f"http://127.0.0.1:{web}/"
        _wait_until_it_answers(f"{url}healthz")
        yield Stack(url=url, pids=tuple(process.pid for process in running[1:]))
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(url: str) -> None:
    until = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
