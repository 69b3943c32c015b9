"""Two web processes and two workers on PostgreSQL and Redis, behind nginx; each can be killed and started again."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.drill.services import Nginx, Postgres, Redis, free_port, wait_for_port
from tests.served import ROOT, clean_environment


class Process:
    """One of our own processes; what it says goes to a file."""

    def __init__(self, name: str, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        self.name, self._command, self._environment, self._log = name, command, dict(environment), log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()


class TeamStack:
    """Everything, with the environment that each of our processes gets."""

    def __init__(self, folder: Path, model_url: str, *, ours: bool) -> None:
        self.postgres, self.redis = Postgres(folder), Redis()
        ports = [free_port(), free_port()]
        self.nginx = Nginx(folder, ports, ours=ours)
        self.data = folder / "data"
        self.settings = {
            "PREVIOUSLY_DATABASE_URL": self.postgres.url,
            "PREVIOUSLY_BROKER_URL": self.redis.url,
            "PREVIOUSLY_MODEL_URL": model_url,
            "PREVIOUSLY_MODEL": "talker",
            "PREVIOUSLY_LOG_FORMAT": "json",
        }
        if ours:
            # Our example names the visitor and the scheme; here the outer scheme is plain http.
            self.settings |= {
                "PREVIOUSLY_TRUSTED_PROXIES": "1",
                "PREVIOUSLY_TRUSTED_ORIGINS": self.nginx.url.rstrip("/"),
            }
        environment = clean_environment(self.data, self.settings)
        serve = [sys.executable, "manage.py", "serve", "--port"]
        work = [sys.executable, "-m", "celery", "-A", "previously_site", "worker", "--loglevel", "WARNING", "-n"]
        self.webs = [
            Process(f"web {port}", [*serve, str(port)], environment, folder / f"web-{port}.log") for port in ports
        ]
        self.workers = [
            Process(f"worker {name}", [*work, name], environment, folder / f"worker-{name}.log")
            for name in ("one", "two")
        ]
        self._ports = ports
        self.logs = folder

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in (*self.webs, *self.workers))

    def start(self) -> None:
        self.postgres.start()
        self.redis.start()
        for process in self.webs:
            process.start()
        for port in self._ports:
            wait_for_port(port)
        for process in self.workers:
            process.start()
        self.nginx.start()

    def ready(self) -> bool:
        """Whether the stack says of itself that it has all it needs."""
        try:
            with urllib.request.urlopen(f"{self.nginx.url}readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except urllib.error.URLError:
            return False

    def stop(self) -> None:
        self.nginx.stop()
        for process in (*self.webs, *self.workers):
            process.kill()
        self.redis.kill()
        self.postgres.kill()


@contextmanager
def running(folder: Path, model_url: str, *, ours: bool) -> Iterator[TeamStack]:
    """The stack from its start to its end."""
    stack = TeamStack(folder, model_url, ours=ours)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
