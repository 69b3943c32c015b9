"""The processes of an installation, each of which can be killed and started again: embedded, or with Redis."""

import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.killing.fuse import VARIABLE, Fuse, kill
from tests.served import ROOT, clean_environment

SECONDS_TO_START = 60.0
_DIED = re.compile(r"died at (.+)")

# Alice's account and a session of hers; printed are her id and the session's cookie.
_SIGN_UP = """
from django.test import Client
from accounts.models import User
alice = User.objects.create_user("alice@example.org", "a-long-walk-by-the-sea", called="Alice")
browser = Client()
browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
print("made", alice.pk, browser.cookies["sessionid"].value)
"""


@dataclass
class Server:
    """One process of an installation; `port` is 0 for a worker."""

    name: str
    command: tuple[str, ...]
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    log: Path = Path()

    def died_at(self) -> str:
        """Where its fuse ended it, '' when something else did or it lives."""
        found = _DIED.search(self.log.read_text("utf-8", "replace"))
        return found[1] if found else ""


@dataclass
class Installation:
    """A data folder, what serves it, and the address of a model server."""

    data_dir: Path
    model_url: str
    broker: str = ""
    """Empty: `serve` alone. Else two web processes and two workers around this broker."""
    servers: list[Server] = field(default_factory=list)
    user_id: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        self.data_dir.mkdir(mode=0o700, parents=True)
        self._run("migrate", "--verbosity", "0")
        _, self.user_id, self.session = self._run("shell", "--verbosity", "0", "-c", _SIGN_UP).split()[-3:]
        if not self.broker:
            port = _free_port()
            self.servers = [Server("serve", ("manage.py", "serve", "--port", str(port)), port)]
            return
        for number in (1, 2):
            port = _free_port()
            web = ("uvicorn", "previously_site.asgi:application", "--port", str(port), "--log-level", "warning")
            self.servers.append(Server(f"web{number}", web, port))
            worker = ("celery", "-A", "previously_site", "worker", "--loglevel", "WARNING", "-n", f"w{number}@%h")
            self.servers.append(Server(f"worker{number}", worker))

    def start(self, server: Server, fuse: Fuse | None = None) -> None:
        """Start it, again if it is dead, without waiting."""
        server.log = self.data_dir.parent / f"{server.name}-{secrets.token_hex(3)}.log"
        more = {VARIABLE: fuse.as_text()} if fuse else {}
        with server.log.open("wb") as log:
            server.process = subprocess.Popen(
                [sys.executable, "-m", "tests.killing.hooked", *server.command],
                cwd=ROOT,
                env=self._environment() | more,
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self) -> None:
        """Until every web process answers; raises AssertionError with the log of one that does not."""
        until = time.monotonic() + SECONDS_TO_START
        for server in self.servers:
            while server.port and not self._answers(server):
                assert self.lives(server), server.log.read_text("utf-8", "replace")[-2000:]
                assert time.monotonic() < until, f"{server.name} does not answer"
                time.sleep(0.05)

    def lives(self, server: Server) -> bool:
        return server.process is not None and server.process.poll() is None

    def kill(self, server: Server, *, with_git: bool) -> None:
        """SIGKILL, whether it lives or not."""
        if server.process is not None:
            if server.process.poll() is None:
                kill(server.process.pid, with_children=with_git)
            server.process.wait()

    def stop(self) -> None:
        """Everything ends."""
        for server in self.servers:
            self.kill(server, with_git=True)

    def say(self, server: Server, text: str, turn_id: str, seen: Sequence[str]) -> None:
        """Post one message as the page does; raises OSError when it is not acknowledged."""
        form = [("text", text), ("turn", turn_id), ("zone", "Asia/Shanghai"), *(("seen", each) for each in seen)]
        self._ask(server, "/", urllib.parse.urlencode(form).encode())

    def look(self, server: Server) -> None:
        """Open the page, which also hands over whatever is due; raises OSError."""
        self._ask(server, "/")

    def _ask(self, server: Server, path: str, data: bytes | None = None) -> None:
        token = secrets.token_hex(16)
        headers = {"Cookie": f"sessionid={self.session}; csrftoken={token}", "X-CSRFToken": token, "HX-Request": "true"}
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def _answers(self, server: Server) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _run(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self._environment(), check=True, capture_output=True, text=True
        ).stdout

    def _environment(self) -> dict[str, str]:
        settings = {"PREVIOUSLY_MODEL_URL": self.model_url, "PREVIOUSLY_MODEL": "talker"}
        if self.broker:
            settings["PREVIOUSLY_BROKER_URL"] = self.broker
        return clean_environment(self.data_dir, settings)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


