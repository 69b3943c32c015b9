"""Trials in which the work is done by a process of its own that calls the product's functions.

The process is forked, so that a trial costs the work and not the start of an interpreter; a fork knows nothing of the
folder but what is on disk.
"""

import json
import logging
import os
import random
import select
import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.conversation.due import nothing_due
from memory.conversation.settle import clear_marker, settle
from tests.conversation.talk import BEGIN, Talk
from tests.killing.fuse import Fuse, kill, light
from tests.killing.ledger import (
    Ledger,
    Said,
    asked,
    broken_promises,
    commits_of,
    ended_markers,
    slices_of,
    unmarked_work,
)
from tests.killing.results import Result
from tests.killing.words import REFUSING
from tests.killing.work import Work, talk_at
from tests.model_server.fixture import ModelServerProcess

SECONDS_OF_WORK = 20.0
TRIALS_A_FOLDER = 10
MOST_STEPS = {"close": 40, "commit": 30, "index": 20, "repack": 12, "sweep": 60}


@dataclass
class Person:
    """One folder, its promises, and where its clock and its unsent message stand."""

    place: Path
    clock: datetime = BEGIN
    ledger: Ledger = field(default_factory=Ledger)
    unsent: dict[str, Any] | None = None
    """The message that was on its way when the process died; a page sends it again."""


def trials(place: Path, model: ModelServerProcess, plan: list[str], seed: int) -> Iterator[Result]:
    """One trial a place in the plan; folders with a broken promise are kept, the others are removed."""
    person = None
    for number, where in enumerate(plan):
        if person is None:
            person = Person(place / f"from-{number}")
        last = (number + 1) % TRIALS_A_FOLDER == 0 or number + 1 == len(plan)
        result = _trial(person, model, where, random.Random(f"{seed} {number}"), number, last=last)
        yield result
        if result.broken:
            person = None
        elif last:
            shutil.rmtree(person.place)
            person = None


def _trial(
    person: Person, model: ModelServerProcess, where: str, chance: random.Random, number: int, *, last: bool
) -> Result:
    model.clear()
    model.rules(REFUSING)
    with_git = chance.random() < 0.5
    fuse = Fuse(
        place=where,
        step=chance.randint(1, MOST_STEPS.get(where, 50)),
        torn=chance.random(),
        delay=chance.choice((0.0, 0.002, 0.005, 0.01, 0.02)),
        with_git=with_git,
    )
    seconds = chance.uniform(0.05, 1.5) if where in ("time", "sweep") else SECONDS_OF_WORK

    def work(told: int) -> None:
        doing = Work(talk_at(person.place, model.url, person.clock), seed=number, trial=number, told=told)
        if where not in ("time", "sweep"):
            light(fuse, died=lambda step: doing.tell("died", step=step))
        doing.run()

    broken: list[str] = []
    told = _killed_after(work, seconds, with_git=with_git)
    said_before = len(person.ledger.said)
    died = _note(person, told, broken)
    again = chance.random() < 0.5
    if where == "sweep":

        def first_recovery(out: int) -> None:
            talk = talk_at(person.place, model.url, person.clock)
            light(fuse, died=lambda step: os.write(out, json.dumps({"what": "died", "step": step}).encode() + b"\n"))
            _recover(talk)

        told = _killed_after(first_recovery, SECONDS_OF_WORK, with_git=with_git)
        died = _note(person, told, broken) or "recovered before the step came"

    def recovery(out: int) -> None:
        talk = talk_at(person.place, model.url, person.clock)
        lines = unmarked_work(talk.folder, talk.clock)
        time.sleep(0.05)  # a request that was on its way is counted
        ended, before = ended_markers(talk.folder), asked(model.requests())
        if again:
            _recover(talk)
        _send_again(talk, person)
        _recover(talk)
        after = asked(model.requests())
        lines += [f"{each} was asked again" for each in sorted(ended) if after[each] != before[each]]
        lines += [f"{each} was asked although stopped" for each in person.ledger.never_asked if after[each]]
        if last:
            talk.command("/close")
            _recover(talk)
        lines += broken_promises(talk.folder, person.ledger, talk.clock, derived_too=last)
        commits = sorted(commits_of(talk.folder)) if talk.folder.exists() else []
        news = {"what": "recovered", "broken": lines, "commits": commits, "clock": talk.clock.isoformat()}
        os.write(out, json.dumps(news).encode() + b"\n")

    told = _killed_after(recovery, 120.0, with_git=True)
    broken += [news["trace"] for news in told if news["what"] == "raised"]
    ends = [news for news in told if news["what"] == "recovered"]
    if ends:
        broken += ends[0]["broken"]
        person.ledger.commits |= set(ends[0]["commits"])
        person.clock = datetime.fromisoformat(ends[0]["clock"])
    elif not broken:
        broken.append("recovery did not end within two minutes")
    return Result(
        number=number,
        place=where,
        died=died or "by the clock",
        acknowledged=len(person.ledger.said) - said_before,
        broken=tuple(broken),
        kept=person.place,
    )


def _recover(talk: Talk) -> None:
    """Sweep until nothing is due, as the timer of a new worker would."""
    if not talk.folder.exists():
        return
    for _ in range(200):
        if not talk.sweep():
            settle(talk.folder, now=talk.clock)  # as the next turn would: half-written files go
            clear_marker(talk.folder, now=talk.clock)
            if nothing_due(talk.folder, talk.clock):
                return
            talk.later(minutes=20)  # something waits for its time: an analysis that failed is tried again
        time.sleep(0.01)  # a git that outlived us may hold the index for a moment


def _send_again(talk: Talk, person: Person) -> None:
    """The page never heard of its message and sends it again, with the same turn id."""
    unsent = person.unsent
    if unsent is None:
        return
    taken = talk.receive(unsent["text"], turn_id=unsent["turn_id"], seen=unsent["seen"])
    person.ledger.said.append(Said(taken.slice_id, taken.turn_id, unsent["text"]))
    if taken.turn_id != unsent["turn_id"]:
        # What a torn write had left was answered meanwhile; it stays as an entry of its own.
        torn = [entry for found in slices_of(talk.folder) if (entry := found.entry(unsent["turn_id"], "user"))]
        assert all(unsent["text"].startswith(entry.content.rstrip("\ufffd")) for entry in torn)


def _note(person: Person, told: list[dict[str, Any]], broken: list[str]) -> str:
    """Enter what was told into the ledger; returns where the process died, as far as it said."""
    died = ""
    for news in told:
        if "clock" in news:
            person.clock = datetime.fromisoformat(news["clock"])
        match news["what"]:
            case "sending":
                person.unsent = news
            case "said":
                assert person.unsent is not None
                person.ledger.said.append(Said(news["slice_id"], news["turn_id"], person.unsent["text"]))
                person.unsent = None
            case "stopped":
                person.ledger.never_asked.add(person.ledger.said[-1].text.split()[0])
            case "head":
                person.ledger.commits |= {news["commit"]} - {None}
            case "died":
                died = news["step"]
            case "raised":
                broken.append(news["trace"])
    return died


def _last_words() -> str:
    """The error, and the few calls that it came through."""
    return "".join(traceback.format_exc(limit=-4)).rstrip()


def _killed_after(function: Callable[[int], None], seconds: float, *, with_git: bool) -> list[dict[str, Any]]:
    """What the lines say that `function` wrote, in a fork that is killed after so many seconds at the latest."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        logging.disable()
        try:
            function(writing)
        except BaseException:
            os.write(writing, json.dumps({"what": "raised", "trace": _last_words()}).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    until = time.monotonic() + seconds
    data = bytearray()
    while (left := until - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            piece = os.read(reading, 1 << 16)
            if not piece:
                break
            data += piece
    kill(pid, with_children=with_git)
    os.waitpid(pid, 0)
    with suppress(BlockingIOError):
        os.set_blocking(reading, False)  # a git that outlived it does not have the pipe, but nothing is waited for
        while piece := os.read(reading, 1 << 16):
            data += piece
    os.close(reading)
    return [json.loads(line) for line in bytes(data).split(b"\n")[:-1]]
