"""A signed-in person's browser as a benchmark needs it: a form sent as htmx sends it, and an event source.

Plain asyncio on one connection a request, so that fifty of them cost little beside the server that is measured.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from memory.folder.paths import new_turn_id

CSRF = "b" * 32

_STREAM = re.compile(r'sse-connect="([^"]+)"')


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: str


class Refused(Exception):
    """The server did not answer as it should; the text begins with the status."""


class Browser:
    """One tab of one person. `shown` are the turns on its page, `answer` is what the last message was answered with."""

    def __init__(self, url: str, session: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._cookie = f"sessionid={session}; csrftoken={CSRF}"
        self.shown: list[str] = []
        self.answer = ""

    async def get(self, path: str) -> str:
        """The text of a page."""
        async with self._asked(path, {}) as answer:
            return (await answer.body()).decode()

    async def say(self, text: str) -> str:
        """Send a message; the path of the stream of its reply, '' when the reply has come already."""
        turn_id = new_turn_id()
        form = [("csrfmiddlewaretoken", CSRF), ("text", text), ("turn", turn_id), ("zone", "Europe/Lisbon")]
        form += [("seen", turn_id) for turn_id in self.shown]
        async with self._asked("/", {"HX-Request": "true"}, form) as answer:
            self.answer = shown = (await answer.body()).decode()
        if f'id="turn-{turn_id}"' not in shown:
            raise Refused("the message is not on the page")
        self.shown.append(turn_id)
        found = _STREAM.search(shown)
        return found[1] if found else ""

    async def watch(self, path: str) -> AsyncIterator[Event]:
        """The events of a reply until the server closes the stream."""
        async with self._asked(path, {"Accept": "text/event-stream"}) as answer:
            name, data = "", []
            async for line in answer.lines():
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    data.append(line[6:])
                elif not line:
                    if name:
                        yield Event(name, "\n".join(data))
                    name, data = "", []

    @asynccontextmanager
    async def _asked(
        self, path: str, headers: Mapping[str, str], form: list[tuple[str, str]] | None = None
    ) -> AsyncIterator["_Answer"]:
        body = urlencode(form).encode() if form is not None else b""
        head = {"Host": f"{self._host}:{self._port}", "Cookie": self._cookie, "Connection": "close", **headers}
        if form is not None:
            head |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
        method = "GET" if form is None else "POST"
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=2**22)
        try:
            writer.write("\r\n".join(lines).encode() + body)
            answer = _Answer(reader)
            status = await answer.head()
            if status != 200:
                raise Refused(f"{status} for {method} {path}: {(await answer.body())[:300]!r}")
            yield answer
        finally:
            writer.close()


class _Answer:
    """What came back, its chunks put together."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._chunked = False
        self._length: int | None = None

    async def head(self) -> int:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        self._chunked = "transfer-encoding: chunked" in head
        if found := re.search(r"content-length: (\d+)", head):
            self._length = int(found[1])
        return int(head.split(" ", 2)[1])

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self._pieces()])

    async def lines(self) -> AsyncIterator[str]:
        rest = b""
        async for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode()

    async def _pieces(self) -> AsyncIterator[bytes]:
        if not self._chunked:
            yield await (self._reader.read() if self._length is None else self._reader.readexactly(self._length))
            return
        while size := int(await self._reader.readline() or b"0", 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
