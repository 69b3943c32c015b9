"""`manage.py serve` as a process of its own, the way people run it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS_TO_START = 60


def clean_environment(data_dir: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process of ours: this data folder, these settings, none from outside."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREVIOUSLY_", "OPENAI_", "DJANGO_", "PYTEST_"))
    }
    return kept | {"PREVIOUSLY_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1"} | dict(more)


class Served:
    """The running process: `url` ends with a slash, `link` is the one-time link or '', `output` all it has printed."""

    def __init__(self, data_dir: Path, more: Mapping[str, str], *arguments: str) -> None:
        self.data_dir = data_dir
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", "0", *arguments],
            cwd=ROOT,
            env=clean_environment(data_dir, more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        return self._printed(r"Previously is at (http://\S+/)")

    @property
    def link(self) -> str:
        return self._printed(r"(http://\S+/first/\S+/)")

    def wait_until_ready(self) -> None:
        """Until /healthz answers; raises AssertionError with the output when the process ends or takes too long."""
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline and self.process.poll() is None:
            if "Press Ctrl+C" in self.output and self._answers():
                return
            time.sleep(0.05)
        raise AssertionError(f"serve did not start:\n{self.output}")

    def stop(self, signal_number: int = signal.SIGTERM, *, timeout: float = 10) -> int:
        """Ask it to stop; its exit status. Raises subprocess.TimeoutExpired."""
        self.process.send_signal(signal_number)
        status = self.process.wait(timeout)
        self._reader.join(timeout)
        return status

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self._reader.join(5)
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}healthz", timeout=5) as response:
                return bool(response.status == 200)
        except urllib.error.URLError:
            return False

    def _printed(self, pattern: str) -> str:
        found = re.search(pattern, self.output)
        return found[1] if found else ""
