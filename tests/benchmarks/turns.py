"""A whole turn as the person sees it: sent, accepted, first words, end; over a model that answers at once."""

import asyncio
import http.client
import json
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.benchmarks.browser import Browser
from tests.benchmarks.measure import ms, percentile
from tests.benchmarks.stack import Stack
from tests.benchmarks.table import Row, size
from tests.model_server.answers import Answer, Rule
from tests.model_server.fixture import ModelServerProcess

REPLY = (
    "You settled on **oak** for the worktop, because it can be sanded, and because the stone would have to be replaced "
    "after a few years anyway. The rest of the money goes into the heating, and the kitchen waits until spring."
)
FIRST_WORDS = "You settled on"
TURNS = 15
QUIET = 1.0
"""Seconds after a turn in which the worker commits it."""
QUIET_SHARE = 0.03


@dataclass(frozen=True)
class Taken:
    """One turn, in seconds from sending the message."""

    accepted: float
    first: float
    end: float


def told_model(server: ModelServerProcess) -> ModelServerProcess:
    """The model server, told to give the same 40 words as every reply; to an analysis it has nothing to add."""
    server.rules(Rule(has_tools=True, answers=[Answer(text=REPLY)]))
    return server


def whole_turns(
    stack: Stack, session: str, slices: int, *, model_seconds: float, how: str, first_limit: float, times: int = TURNS
) -> list[Row]:
    """Turns in an open slice. `first_limit` is for the first words after the message was accepted."""
    taken, cpu = asyncio.run(_turns(stack, session, times))
    first = percentile((one.first for one in taken), 0.5)
    end = percentile((one.end for one in taken), 0.5)
    waited = percentile((one.first - one.accepted for one in taken), 0.5) - model_seconds
    rows = [
        Row(
            what=f"accepted → first rendered words, over what the model took ({how})",
            slices=size(slices),
            measured=f"{ms(waited)} (accepted {ms(percentile((one.accepted for one in taken), 0.5))} after sending)",
            limit=f"≤ {ms(first_limit)}",
            held=waited <= first_limit,
        )
    ]
    strict = how == "embedded"
    limits = ((first, 0.06, "first words"), (end, 0.25, "end"), (cpu, 0.12, "CPU of all our processes"))
    for seconds, limit, name in limits:
        rows.append(
            Row(
                what=f"a whole turn over an instant model ({how}): {name}",
                slices=size(slices),
                measured=ms(seconds),
                limit=f"≤ {ms(limit)}" if strict else "",
                held=seconds <= limit if strict else None,
            )
        )
    return rows


def model_seconds(server: ModelServerProcess) -> float:
    """What the model server alone takes from the request to its first words."""
    address = urlsplit(server.url)
    body = json.dumps({"model": "talker", "stream": True, "messages": [{"role": "user", "content": "Hello"}]})
    taken = []
    for _ in range(10):
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        begun = time.perf_counter()
        connection.request("POST", f"{address.path}/chat/completions", body)
        response = connection.getresponse()
        response.read1()
        taken.append(time.perf_counter() - begun)
        response.read()
        connection.close()
    return percentile(taken, 0.5)


async def _turns(stack: Stack, session: str, times: int) -> tuple[list[Taken], float]:
    """The turns, and the CPU seconds of one, less what the processes use when nothing happens."""
    browser = Browser(stack.url, session)
    for _ in range(3):
        await _turn(browser)
        await asyncio.sleep(QUIET)
    idle = await _when_quiet(stack)
    begun, before = time.monotonic(), stack.cpu()
    taken = []
    for _ in range(times):
        taken.append(await _turn(browser))
        await asyncio.sleep(QUIET)
    used = stack.cpu() - before - idle * (time.monotonic() - begun)
    return taken, used / times


async def _when_quiet(stack: Stack) -> float:
    """CPU seconds a second that the processes use once nothing is left to do: no close pass, no index being built."""
    for _ in range(100):
        begun, before = time.monotonic(), stack.cpu()
        await asyncio.sleep(3)
        idle = (stack.cpu() - before) / (time.monotonic() - begun)
        if idle < QUIET_SHARE:
            return idle
    raise AssertionError("the processes are never idle, so what a turn takes of the CPU cannot be told")


async def _turn(browser: Browser) -> Taken:
    begun = time.perf_counter()
    stream = await browser.say("What did we say about it in the end? I would like to be sure before I order.")
    accepted = time.perf_counter() - begun
    if not stream:
        return Taken(accepted, accepted, accepted)
    first = end = 0.0
    async for event in browser.watch(stream):
        now = time.perf_counter() - begun
        if not first and FIRST_WORDS in event.data:
            first = now
        if event.name == "end":
            end = now
    assert end, "the stream ended without an end"
    return Taken(accepted, first, end)
