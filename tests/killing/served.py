"""Trials on a whole installation: real web and worker processes, driven over HTTP, killed and started again."""

import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from memory.conversation.due import due, nothing_due
from memory.folder.clock import utc_now
from memory.folder.paths import new_turn_id
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Places
from tests.killing.fuse import Fuse
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
from tests.killing.servers import Installation, Server
from tests.killing.words import REFUSED, REFUSING, message
from tests.model_server.fixture import ModelServerProcess

SECONDS_OF_WORK = 12.0
SECONDS_TO_RECOVER = 90.0
MOST_STEPS = {"close": 15, "commit": 25, "index": 12, "repack": 10, "sweep": 3}
IN_THE_WEB = ("receive", "boundary")


def trials(place: Path, model: ModelServerProcess, plan: list[str], seed: int, *, broker: str) -> Iterator[Result]:
    """One trial a place in the plan, all on one installation until one of its promises is broken."""
    installed = None
    for number, where in enumerate(plan):
        if installed is None:
            model.clear()
            installed = _Trials(Installation(place / f"from-{number}" / "data", model.url, broker), model)
        result = installed.trial(where, random.Random(f"{seed} {number}"), number)
        yield result
        if result.broken:
            installed.installation.stop()
            installed = None
    if installed:
        installed.installation.stop()
        shutil.rmtree(installed.installation.data_dir.parent)


class _Trials:
    def __init__(self, installation: Installation, model: ModelServerProcess) -> None:
        self.installation = installation
        self._model = model
        self._ledger = Ledger()
        self._lock = threading.Lock()
        data, name = installation.data_dir, installation.user_id
        self._folder = MemoryFolder(
            Places(root=data / "folders" / name, run=data / "run" / name, pending=data / "pending" / name)
        )
        for server in installation.servers:
            installation.start(server)
        installation.wait_until_ready()

    def trial(self, where: str, chance: random.Random, number: int) -> Result:
        installation = self.installation
        self._model.clear()
        self._model.rules(REFUSING)
        with_git = chance.random() < 0.5
        victims = [server for server in installation.servers if self._may_die(server, where)]
        victims = chance.sample(victims, chance.randint(1, len(victims)) if where == "time" else 1)
        if where != "time":
            fuse = Fuse(
                place=where,
                step=chance.randint(1, MOST_STEPS.get(where, 25)),
                torn=chance.random(),
                delay=chance.choice((0.0, 0.005, 0.02)),
                with_git=with_git,
            )
            for server in victims:
                installation.kill(server, with_git=True)
                installation.start(server, fuse)
            if where != "sweep":  # which is at its place as soon as it starts
                installation.wait_until_ready()
        before = len(self._ledger.said)
        seconds = chance.uniform(0.3, 3) if where == "time" else SECONDS_OF_WORK
        unsent = self._work(victims, chance, number, seconds=seconds)
        for server in victims:
            installation.kill(server, with_git=with_git)
        died = next((found for server in victims if (found := server.died_at())), "by the clock")
        broken = unmarked_work(self._folder, utc_now())
        time.sleep(0.1)
        ended, asked_before = ended_markers(self._folder), asked(self._model.requests())
        for server in installation.servers:
            if not installation.lives(server):
                installation.start(server)
        installation.wait_until_ready()
        for text, turn_id, seen in unsent:
            self._say(self._web(chance), text, turn_id, seen)
        broken += self._wait_for_recovery(chance)
        asked_after = asked(self._model.requests())
        broken += [f"{each} was asked again" for each in sorted(ended) if asked_after[each] != asked_before[each]]
        broken += broken_promises(self._folder, self._ledger, utc_now(), derived_too=False)
        self._ledger.commits |= commits_of(self._folder)
        return Result(
            number=number,
            place=where,
            died=died,
            acknowledged=len(self._ledger.said) - before,
            broken=tuple(broken),
            kept=installation.data_dir.parent,
        )

    def _may_die(self, server: Server, where: str) -> bool:
        if not self.installation.broker or where == "time":
            return True
        return bool(server.port) == (where in IN_THE_WEB)

    def _work(
        self, victims: list[Server], chance: random.Random, number: int, *, seconds: float
    ) -> list[tuple[str, str, list[str]]]:
        """Talk until a victim is dead or the time is up; the messages that nobody acknowledged."""
        until = time.monotonic() + seconds
        count = 0
        while time.monotonic() < until and all(map(self.installation.lives, victims)):
            count += 1
            text = message(chance, f"m{number}-{count}") + (REFUSED if chance.random() < 0.1 else "")
            if chance.random() < 0.15:
                text = "/close"
            seen = [] if chance.random() < 0.15 else self._seen()
            turn_id = new_turn_id()
            try:
                self._say(self._web(chance), text, turn_id, seen)
            except OSError:
                return [(text, turn_id, seen)] if text != "/close" else []
            time.sleep(chance.choice((0.0, 0.1, 0.5)))
        return []

    def _say(self, server: Server, text: str, turn_id: str, seen: list[str]) -> None:
        self.installation.say(server, text, turn_id, seen)
        if text == "/close":
            return
        # Where it is, is read off the folder: under its own id, unless a torn write of it was answered meanwhile.
        places = [
            Said(found.slice_id, entry.turn_id, text)
            for found in slices_of(self._folder)
            for entry in found.person_entries
            if entry.content.startswith(text.split()[0] + " ") and len(entry.content) >= len(text) - text.count("\r")
        ]
        self._ledger.said += places[-1:] or [Said("nowhere", turn_id, text)]

    def _seen(self) -> list[str]:
        newest = next(iter(self._folder.newest(1)), None) if self._folder.exists() else None
        return [entry.turn_id for entry in newest.person_entries] if isinstance(newest, Slice) else []

    def _web(self, chance: random.Random) -> Server:
        living = [each for each in self.installation.servers if each.port and self.installation.lives(each)]
        return chance.choice(living or [each for each in self.installation.servers if each.port])

    def _wait_for_recovery(self, chance: random.Random) -> list[str]:
        """Until nothing is due and no marker is left; a page that is opened now and then takes part, as people do."""
        until = time.monotonic() + SECONDS_TO_RECOVER
        looked = time.monotonic()
        while time.monotonic() < until:
            marked = self._folder.state.pending.exists()
            if not due(self._folder, utc_now()) and marked != nothing_due(self._folder, utc_now()):
                return []
            if time.monotonic() - looked > 2:
                self.installation.look(self._web(chance))
                looked = time.monotonic()
            time.sleep(0.05)
        return [f"still due: {due(self._folder, utc_now())}"]
