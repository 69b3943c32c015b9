"""People go on talking while a worker, a web process, Redis and PostgreSQL are killed in turn; then it is counted."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.browser import Browser, Refused
from tests.benchmarks.stamping import message
from tests.drill.stack import TeamStack

WORDS = 40
DOWN_SECONDS = 6.0
"""So long each of them stays away."""
UP_SECONDS = 6.0
PATIENCE = 200.0
"""Seconds for every owed reply to come: a sweep a minute, and what it finds takes its time."""
DELAYED = "Replies are delayed"


@dataclass
class Said:
    """What one person said and the server acknowledged, and what they were told when it did not go well."""

    turns: list[str] = field(default_factory=list)
    delayed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True)
class Count:
    """What was found in the folders afterwards."""

    acknowledged: int
    lost: int
    doubled: int
    unanswered: int
    unsound: int


async def hurt(stack: TeamStack, browsers: list[Browser]) -> tuple[list[Said], str]:
    """Kill and bring back each in turn; what was said meanwhile, and who was killed when the last refusal came."""
    said = [Said() for _ in browsers]
    over = asyncio.Event()
    now = {"what": "nothing"}
    talking = [asyncio.create_task(_talk(browser, one, over, now)) for browser, one in zip(browsers, said, strict=True)]
    await asyncio.sleep(UP_SECONDS)
    hurts: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("a worker", stack.workers[0].kill, stack.workers[0].start),
        ("a web process", stack.webs[0].kill, stack.webs[0].start),
        ("Redis", stack.redis.kill, stack.redis.start),
        ("PostgreSQL", stack.postgres.kill, stack.postgres.start),
    ]
    for what, kill, start in hurts:
        print(f"killing {what}", flush=True)
        now["what"] = what
        await asyncio.to_thread(kill)
        await asyncio.sleep(DOWN_SECONDS)
        await asyncio.to_thread(start)
        await asyncio.sleep(UP_SECONDS)
        now["what"] = f"nothing, after {what}"
    over.set()
    await asyncio.gather(*talking)
    return said, now["what"]


async def _talk(browser: Browser, said: Said, over: asyncio.Event, now: dict[str, str]) -> None:
    while not over.is_set():
        try:
            await asyncio.wait_for(browser.say(message(WORDS, in_one_piece=False)), 30)
        except (Refused, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            said.refused[
                f"{now['what']}: {str(error)[:3] if isinstance(error, Refused) else type(error).__name__}"
            ] += 1
        else:
            said.turns.append(browser.shown[-1])
            if DELAYED in browser.answer:
                said.delayed[now["what"]] += 1
        await asyncio.sleep(1)


def count(people: list[Any], said: list[Said]) -> Count:
    """Wait until nothing is owed, then look at the folders. Needs Django with the stack's settings."""
    until = time.monotonic() + PATIENCE
    while (found := _count(people, said)).unanswered and time.monotonic() < until:
        time.sleep(2)
    return found


def _count(people: list[Any], said: list[Said]) -> Count:
    from memory import access
    from memory.folder.paths import slice_ids

    lost = doubled = unanswered = unsound = 0
    for person, one in zip(people, said, strict=True):
        folder = access.folder_of(person)
        keys = Counter(entry.key for slice_id in slice_ids(folder.root) for entry in folder.slice(slice_id).entries)
        lost += sum((turn, "user") not in keys for turn in one.turns)
        unanswered += sum((turn, "agent") not in keys for turn in one.turns)
        doubled += sum(times - 1 for times in keys.values())
        unsound += folder.exists() and bool(folder.repository.fsck())
    total = sum(len(one.turns) for one in said)
    return Count(acknowledged=total, lost=lost, doubled=doubled, unanswered=unanswered, unsound=unsound)
