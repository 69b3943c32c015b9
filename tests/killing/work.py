"""The work of one person's web process and worker in one process: as much of everything as there is, until it dies."""

import json
import os
import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.conversation.companion import Companion
from memory.conversation.interrupt import stop_reply
from memory.conversation.receive import Received
from memory.folder.errors import BadId
from memory.folder.paths import new_turn_id
from memory.llm.client import ModelServer, ServerSettings
from tests.conversation.talk import Talk
from tests.killing.words import REFUSED, message


def talk_at(place: Path, model_url: str, clock: datetime) -> Talk:
    """The person's folder and a companion that asks the model server."""
    model = ModelServer(ServerSettings(url=model_url, key="sk-of-nobody", model="talker"))
    talk = Talk(place, Companion(model=model, pauses=()))
    talk.clock = clock
    return talk


class Work:
    """Goes on for ever. What is promised to the person is written to the pipe `told`, as a page would hear of it."""

    def __init__(self, talk: Talk, *, seed: int, trial: int, told: int) -> None:
        self._talk = talk
        self._random = random.Random(seed)
        self._trial = trial
        self._number = 0
        self._write: Callable[[int, bytes], int] = os.write  # before a fuse takes its place
        self._told = told

    def run(self) -> None:
        """One thing after the other, until the process dies."""
        talk = self._talk
        talk.shown = _shown(talk)
        ways = [self._say, self._say, self._say_two, self._after_a_while, self._on_a_fresh_page, self._end]
        ways += [self._refused, self._stopped]
        while True:
            self._random.choice(ways)()
            talk.later(seconds=self._random.randint(1, 90))
            if self._random.random() < 0.3:
                talk.sweep()

    def tell(self, what: str, **values: Any) -> None:
        """One line, whole: a pipe takes so much in one piece."""
        line = json.dumps({"what": what, "clock": self._talk.clock.isoformat(), **values}).encode() + b"\n"
        while line:
            line = line[self._write(self._told, line) :]

    def _say(self, mark: str = "") -> Received:
        taken = self._receive(mark)
        self._answer(taken)
        return taken

    def _say_two(self) -> None:
        first, second = self._receive(), self._receive()
        self._answer(first)
        self._answer(second)

    def _after_a_while(self) -> None:
        self._talk.later(minutes=31)
        self._say()
        self._talk.sweep()

    def _on_a_fresh_page(self) -> None:
        self._talk.reload()
        self._say()

    def _end(self) -> None:
        self._talk.command("/close")
        self._talk.reload()
        self._talk.sweep()

    def _refused(self) -> None:
        self._say(REFUSED)

    def _stopped(self) -> None:
        taken = self._receive()
        if stop_reply(self._talk.folder, taken.slice_id, taken.turn_id, now=self._talk.clock):
            self.tell("stopped", turn_id=taken.turn_id)
        self._answer(taken)

    def _receive(self, mark: str = "") -> Received:
        self._number += 1
        text = message(self._random, f"m{self._trial}-{self._number}") + mark
        turn_id = new_turn_id()
        seen = list(self._talk.shown)
        self.tell("sending", turn_id=turn_id, text=text, seen=seen)
        taken = self._talk.receive(text, turn_id=turn_id)
        self.tell("said", slice_id=taken.slice_id, turn_id=taken.turn_id)
        return taken

    def _answer(self, taken: Received) -> None:
        self._talk.later(seconds=2)
        self._talk.answer(taken)
        self.tell("head", commit=self._talk.folder.repository.head())


def _shown(talk: Talk) -> list[str]:
    """What a page shows that has been open all the time."""
    newest = talk.folder.newest(1)
    try:
        return [entry.turn_id for entry in talk.slice(newest[0].slice_id).person_entries]  # type: ignore[union-attr]
    except (IndexError, BadId):
        return []
