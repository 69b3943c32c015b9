"""`python -m tests.benchmarks.streams`: many people streaming at once, and whether each of them keeps up.

Starts `manage.py serve` on a data folder of its own, or with --url uses a stack that runs: this command then needs
that stack's environment (it makes accounts, signs them in and reads the slices afterwards), and the stack has to ask
the model at --model-port. The words of the model say when they were sent, so a word's lag is what lies between that
and the moment a page has it. Everything is on the loopback interface and ends at the latest a reply after --seconds.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks import stack
from tests.benchmarks.browser import Browser, Refused
from tests.benchmarks.measure import memory_of, ms, percentile
from tests.benchmarks.stack import Stack
from tests.benchmarks.stamping import message
from tests.benchmarks.table import Row, markdown
from tests.served import ROOT

WORDS = 400
GIANT_BYTES = 100_000
SETTLED = 120
"""Seconds after which a process has imported and cached what it ever will."""
_WORD = re.compile(r"(\d+):(\d{13})\b")


@dataclass
class Stream:
    """One reply as a page saw it: seconds of lag a word, and when updates with words came."""

    path: str
    giant: bool = False
    lags: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    ended: bool = False

    @property
    def per_second(self) -> float:
        """Updates a second while words came."""
        lasted = self.updates[-1] - self.updates[0] if len(self.updates) > 1 else 0.0
        return (len(self.updates) - 1) / lasted if lasted else 0.0


@dataclass
class Seen:
    """What was watched while people streamed."""

    streams: list[Stream] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)
    cpu: float = 0.0
    lasted: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.streams", description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--words-per-second", type=float, default=40)
    parser.add_argument("--words", type=int, default=WORDS, help="words a reply")
    parser.add_argument("--giant", action="store_true", help="one of them gets a reply of 100 KB in one paragraph")
    parser.add_argument("--url", default="", help="a stack that runs already")
    parser.add_argument("--pids", default="", help="with --url: the processes of the stack, the web process first")
    parser.add_argument("--model-port", type=int, default=0)
    options = parser.parse_args()
    with _model(options.model_port, options.words_per_second) as model_url, _data(options.url) as data:
        settings = {"PREVIOUSLY_MODEL_URL": model_url, "PREVIOUSLY_MODEL": "talker"}
        stack.open_data(data, _kept_settings() if options.url else settings)
        people = [stack.make_person(f"Alice-{os.getpid()}-{number}") for number in range(options.people)]
        sessions = [stack.sign_in(user) for user in people]
        with _stack(options, data, settings) as running:
            seen = asyncio.run(_talk(running, sessions, options))
            time.sleep(3)  # the last turns are committed
        rows = _rows(seen, people, options)
    print(f"{options.people} people for {seen.lasted:.0f} s at {options.words_per_second:g} words a second, "
          f"{options.words} words a reply; {os.cpu_count()} cores, CPU of our processes "
          f"{seen.cpu / seen.lasted:.2f} cores\n")  # fmt: skip
    print(markdown(rows))


async def _talk(running: Stack, sessions: list[str], options: argparse.Namespace) -> Seen:
    seen = Seen()
    begun, cpu = time.monotonic(), running.cpu()
    until = begun + options.seconds
    watching = asyncio.create_task(_observe(running, seen, until))
    await asyncio.gather(
        *(
            _person(Browser(running.url, session), seen, until, number, options)
            for number, session in enumerate(sessions)
        )
    )
    seen.lasted, seen.cpu = time.monotonic() - begun, running.cpu() - cpu
    await watching
    return seen


async def _person(browser: Browser, seen: Seen, until: float, number: int, options: argparse.Namespace) -> None:
    """Say something, watch the reply, and again, until the time is over."""
    # Spread over the length of a reply: people do not all begin in the same second.
    await asyncio.sleep(options.words / options.words_per_second * number / options.people)
    first = True
    while time.monotonic() < until:
        giant = options.giant and number == 0 and first
        first = False
        words = GIANT_BYTES // len("1234:1786397422123 ") if giant else options.words
        try:
            path = await browser.say(message(words, in_one_piece=giant))
            stream = Stream(path, giant=giant)
            seen.streams.append(stream)
            await _watch(browser, stream)
        except (Refused, OSError, asyncio.IncompleteReadError) as error:
            seen.refused.append(f"{type(error).__name__}: {error}")
            await asyncio.sleep(1)


async def _watch(browser: Browser, stream: Stream) -> None:
    """Follow a reply to its end; a stream that the server ends early is opened anew, as a page does."""
    last = 0
    while not stream.ended:
        async for event in browser.watch(stream.path):
            now = time.time()
            new = {int(count): int(at) for count, at in _WORD.findall(event.data) if int(count) > last}
            if new:
                last = max(new)
                stream.lags += [now - at / 1000 for at in new.values()]
                stream.updates.append(now)
            stream.ended = stream.ended or event.name == "end"
        if not stream.ended:
            await asyncio.sleep(1)


async def _observe(running: Stack, seen: Seen, until: float) -> None:
    """Memory and database connections of the web process, ten times while it lasts."""
    begun = time.monotonic()
    pause = (until - begun) / 10
    if not running.pids:
        return
    while time.monotonic() < until:
        await asyncio.sleep(pause)
        seen.memory.append(sum(map(memory_of, running.pids)))
        seen.connections.append(await asyncio.to_thread(_connections, running))


def _connections(running: Stack) -> int:
    """Database connections held at this moment: open SQLite files, or sessions that PostgreSQL lists."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            held = int(cursor.fetchone()[0]) - 1
        connection.close()
        return held
    held = 0
    for pid in running.pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed while we looked
                held += os.readlink(descriptor).endswith(".sqlite3")
    return held


def _rows(seen: Seen, people: list[Any], options: argparse.Namespace) -> list[Row]:
    usual = [stream for stream in seen.streams if not stream.giant and stream.lags]
    every = [lag for stream in usual for lag in stream.lags]
    worst = [percentile(stream.lags, 0.95) for stream in usual]
    slowest = [stream.per_second for stream in usual if len(stream.updates) > 3]
    lost, doubled = _record(people, seen)
    shown = f"{len(usual):,} replies, {len(every):,} words"
    rows = [
        _row("lag of a word", f"median {ms(percentile(every, 0.5))}, p95 {ms(percentile(every, 0.95))}, "
             f"worst {ms(max(every))} ({shown})", "p95 ≤ 300 ms", percentile(every, 0.95) <= 0.3),
        _row("p95 lag of the stream that kept up worst", ms(max(worst)), "≤ 300 ms", max(worst) <= 0.3),
        _row("updates a second", f"median {percentile(slowest, 0.5):.1f}, lowest {min(slowest):.1f}", "≥ 3",
             min(slowest) >= 3),
        _row("replies", f"{lost} lost, {doubled} doubled, {sum(not one.ended for one in seen.streams)} without an end, "
             f"{len(seen.refused)} requests refused {dict(Counter(seen.refused).most_common(3)) or ''}",
             "none lost, none doubled", not lost and not doubled and all(one.ended for one in seen.streams)),
    ]  # fmt: skip
    for giant in (stream for stream in seen.streams if stream.giant):
        longest = max((b - a for a, b in zip(giant.updates, giant.updates[1:], strict=False)), default=0.0)
        rows.append(_row("the giant reply", f"{len(giant.lags):,} words, {len(giant.updates)} updates, longest pause "
                         f"{longest:.1f} s", "an update in 4 s", giant.ended and longest <= 4.5))  # fmt: skip
    if seen.memory:
        third = max(1, len(seen.memory) // 3)
        begin, middle, end = seen.memory[third - 1], seen.memory[len(seen.memory) // 2], seen.memory[-1]
        rows.append(_row("memory at a third, the middle and the end", f"{begin:.0f}, {middle:.0f}, {end:.0f} MB",
                         "flat (≤ 10 % more), in two minutes or longer",
                         end <= 1.1 * begin if options.seconds >= SETTLED else None))  # fmt: skip
        rows.append(_row("database connections held, ten looks", f"at most {max(seen.connections)}, "
                         f"median {percentile(seen.connections, 0.5):.0f}"))  # fmt: skip
    return rows


def _row(what: str, measured: str, limit: str = "", held: bool | None = None) -> Row:
    return Row(what=what, slices="", measured=measured, limit=limit, held=held)


def _record(people: list[Any], seen: Seen) -> tuple[int, int]:
    """How many replies are not in the slices as they were sent, and how many entries are there twice."""
    from memory import access
    from memory.folder.paths import slice_ids

    lost = doubled = recorded = 0
    for user in people:
        folder = access.folder_of(user)
        for slice_id in slice_ids(folder.root):
            entries = folder.slice(slice_id).entries
            doubled += sum(count - 1 for count in Counter(entry.key for entry in entries).values())
            for entry in entries:
                if entry.role == "agent":
                    recorded += 1
                    numbers = [int(number) for number, _ in _WORD.findall(entry.content)]
                    lost += numbers != list(range(1, len(numbers) + 1)) or not numbers
    return lost + max(0, sum(stream.ended for stream in seen.streams) - recorded), doubled


@contextmanager
def _model(port: int, words_per_second: float) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.benchmarks.stamping", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--words-per-second", str(words_per_second)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


@contextmanager
def _data(url: str) -> Iterator[Path]:
    if url:
        yield Path(os.environ["PREVIOUSLY_DATA_DIR"])
        return
    data = Path(tempfile.mkdtemp(prefix="previously-streams-"))
    try:
        yield data
    finally:
        shutil.rmtree(data)


@contextmanager
def _stack(options: argparse.Namespace, data: Path, settings: dict[str, str]) -> Iterator[Stack]:
    if options.url:
        yield Stack(url=options.url, pids=tuple(int(pid) for pid in options.pids.split(",") if pid))
        return
    with stack.embedded(data, settings) as running:
        yield running


def _kept_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("PREVIOUSLY_")}


if __name__ == "__main__":
    main()
