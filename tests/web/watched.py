"""A reply in flight for the tests that watch one: the files a worker would write, and how a browser reads a stream."""

import re
from dataclasses import dataclass
from datetime import datetime

from memory.conversation.events import Event, line_of
from memory.conversation.outcomes import reply_file
from memory.folder.paths import core_file, slice_id_at
from memory.folder.slices import Slice, render
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry

TURN = "mVhV2g"


@dataclass
class Reply:
    """Alice's question about the worktop, and what happens to the reply to it."""

    folder: MemoryFolder
    slice: Slice

    @property
    def path(self) -> str:
        return f"/replies/{self.slice.path}/{TURN}/stream/"

    def happens(self, *events: Event) -> None:
        path = reply_file(self.folder.state.directory, self.slice.slice_id, TURN, "events")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(b"".join(map(line_of, events)))

    def is_recorded(self, text: str, at: datetime) -> None:
        question = self.slice.person_entries[0]
        self._keep((question, Entry(TURN, at, "agent", text)))

    def _keep(self, entries: tuple[Entry, ...]) -> None:
        start = entries[0].at
        self.slice = Slice(slice_id=slice_id_at(start), status="active", start=start, entries=entries)
        path = self.folder.root / core_file(self.slice.slice_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(self.slice), "utf-8")


def asked(folder: MemoryFolder, at: datetime) -> Reply:
    """A slice with a question that has no answer yet."""
    question = Entry(TURN, at, "user", "What did I decide about the worktop?")
    reply = Reply(folder, Slice(slice_id=slice_id_at(at), status="active", start=at))
    reply._keep((question,))
    return reply


def parsed(stream: bytes) -> list[tuple[str, str]]:
    """The (event, data) pairs as a browser reads them; blocks without an event name are left out."""
    found = []
    for block in re.split(r"\r\n\r\n|\n\n|\r\r", stream.decode()):
        lines = re.split(r"\r\n|\n|\r", block)
        names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        if names:
            found.append((names[0], "\n".join(line[6:] for line in lines if line.startswith("data: "))))
    return found


def names(events: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in events]
