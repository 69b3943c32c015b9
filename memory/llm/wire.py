"""What a model server sends, from bytes to JSON: an event stream, or one whole JSON document."""

import json
from collections.abc import Iterator
from typing import Any

from memory.llm.errors import CutOff, NotAModelServer

LONGEST = 16 * 1024 * 1024  # bytes in one event or one whole answer; what is longer is no answer
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class Wire:
    """Feed it the bytes as they arrive; it gives back the JSON objects that are complete.

    Which of the two forms it is shows at the first line that is not blank, not in the Content-Type: servers
    mislabel streams, and some answer whole although a stream was asked for.
    Raises NotAModelServer for HTML and other garbage, CutOff for garbage after a good beginning.
    """

    def __init__(self) -> None:
        self.done = False  # the end marker was read
        self.complete = False  # the end marker was read, or one whole document
        self._streamed: bool | None = None
        self._bytes = bytearray()
        self._data: list[bytes] = []
        self._good = False

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        self._bytes += chunk
        if len(self._bytes) + sum(map(len, self._data)) > LONGEST:
            raise NotAModelServer(f"more than {LONGEST} bytes without an end")
        if self._streamed is None:
            self._bytes = self._bytes.removeprefix(b"\xef\xbb\xbf").lstrip()
            self._streamed = _looks_streamed(self._bytes)
        if self._streamed:
            yield from self._events()

    def end(self) -> Iterator[dict[str, Any]]:
        """What is left when the body has ended: a last event without its blank line, or the whole document."""
        if self._streamed:
            self._bytes += b"\n\n"
            yield from self._events()
        elif not self._bytes.strip():
            raise CutOff("the server sent nothing")
        else:
            yield self._parsed(bytes(self._bytes))
            self.complete = True

    def _events(self) -> Iterator[dict[str, Any]]:
        # A CR at the very end may be half of a CRLF, so it waits for the next byte.
        upto = max(self._bytes.rfind(b"\n"), self._bytes.rfind(b"\r", 0, len(self._bytes) - 1)) + 1
        lines = bytes(self._bytes[:upto]).splitlines()
        del self._bytes[:upto]
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                data = b"\n".join(self._data)
                self._data.clear()
                if data.startswith(b"[DONE]"):
                    self.done = self.complete = True
                elif data.strip():
                    yield self._parsed(data)

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            value = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            self._good = True
            return value
        error = CutOff if self._good else NotAModelServer
        raise error(data[:2000].decode("utf-8", "replace"))


def _looks_streamed(begin: bytearray) -> bool | None:
    """None while too little has come to tell."""
    if begin.startswith(_FIELDS):
        return True
    return None if any(field.startswith(bytes(begin)) for field in _FIELDS) else False
