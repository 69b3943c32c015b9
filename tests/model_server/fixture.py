"""The fixture `model_server`: the server as a process of its own, one for the session, cleared between tests."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.model_server.answers import Answer, Rule

_ROOT = Path(__file__).resolve().parents[2]


class ModelServerProcess:
    """The server's address, and what can be told it and asked of it."""

    def __init__(self, *, words_per_second: float = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.model_server", "--port", "0", "--words-per-second", str(words_per_second)],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"the model server did not start (exit {self._process.wait()})")

    def script(self, *answers: Answer) -> None:
        """Answer the next requests with these, in order; after them the friendly talker answers again.

        Requests to the model named `analyst` are left to rules and defaults.
        """
        self._control("script", [answer.as_json() for answer in answers])

    def rules(self, *rules: Rule) -> None:
        """Answer requests that fit a rule by the first one that does. Takes the place of earlier rules."""
        self._control("rules", [rule.as_json() for rule in rules])

    def context(self, tokens: int) -> None:
        """Refuse requests of more than about so many tokens; 0 refuses none."""
        self._control("context", tokens)

    def requests(self, model: str = "") -> list[dict[str, Any]]:
        """The bodies of the requests for answers so far, in order; only those to a model when one is named."""
        bodies = [call["body"] for call in self.calls() if call["path"] == "/chat/completions"]
        return [body for body in bodies if model in ("", body.get("model"))]

    def calls(self) -> list[dict[str, Any]]:
        """Every request so far: path, headers, body, waiting, ended ('', 'answered', 'cut', 'hung_up')."""
        calls: list[dict[str, Any]] = self._control("calls")
        return calls

    def wait_for(self, *, timeout: float = 10.0, **least: int) -> bool:
        """Wait until at least so many `calls` came, are `waiting` (hang), were `hung_up` on, or were `answered`."""
        return bool(self._control("wait", {"least": least, "timeout": timeout}))

    def release(self) -> None:
        """Let the answers that hang go on."""
        self._control("release")

    def clear(self) -> None:
        """Forget script, rules and requests."""
        self._control("clear")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _control(self, name: str, value: object = None) -> Any:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.request("POST", f"/_control/{name}", json.dumps(value))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(f"the model server refused {name}: {text.decode()}")
        return json.loads(text)


@pytest.fixture(scope="session")
def model_server_process() -> Iterator[ModelServerProcess]:
    server = ModelServerProcess()
    yield server
    server.stop()


@pytest.fixture
def model_server(model_server_process: ModelServerProcess) -> Iterator[ModelServerProcess]:
    model_server_process.clear()
    yield model_server_process
    model_server_process.clear()
