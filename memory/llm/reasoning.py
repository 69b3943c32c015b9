"""Reasoning that a model writes into its text, as `<think>…</think>` before the reply."""

import re

from memory.llm.pieces import Reasoning, Text

TAGS = ("think", "thinking")
_OPENINGS = tuple(f"<{tag}>" for tag in TAGS)
_OPENING = re.compile(rf"<({'|'.join(TAGS)})>", re.IGNORECASE)


class ThinkSplitter:
    """Splits a stream of content into Text and Reasoning, wherever the chunks are cut.

    Only blocks at the very start count, several in a row included. A tag further on, or one inside code, is text.
    A block that is never closed is reasoning to its end.
    """

    def __init__(self) -> None:
        self._held = ""  # seen, but not yet known to be one or the other
        self._closing = ""  # inside a block: the tag that ends it
        self._after_block = False  # the blank lines between a block and the reply belong to neither
        self._text_began = False

    def feed(self, chunk: str) -> list[Text | Reasoning]:
        """What `chunk` settles; the rest is held back until the next chunk or `end`."""
        if self._text_began:
            return [Text(chunk)] if chunk else []
        self._held += chunk
        pieces: list[Text | Reasoning] = []
        while self._step(pieces):
            pass
        return pieces

    def end(self) -> list[Text | Reasoning]:
        """What was still held back when the content ended."""
        held, self._held = self._held, ""
        if not held:
            return []
        if self._closing:
            return [Reasoning(held)]
        if self._after_block and not held.strip():
            return []
        return [Text(held)]

    def _step(self, pieces: list[Text | Reasoning]) -> bool:
        """Settle one stretch of what is held; True while there may be more to settle."""
        return self._inside(pieces) if self._closing else self._before(pieces)

    def _before(self, pieces: list[Text | Reasoning]) -> bool:
        rest = self._held.lstrip()
        if opening := _OPENING.match(rest):
            self._closing = f"</{opening[1].lower()}>"
            self._held = rest[opening.end() :]
            return True
        if not rest or any(tag.startswith(rest.lower()) for tag in _OPENINGS):
            return False
        pieces.append(Text(rest if self._after_block else self._held))
        self._held = ""
        self._text_began = True
        return False

    def _inside(self, pieces: list[Text | Reasoning]) -> bool:
        found = re.search(re.escape(self._closing), self._held, re.IGNORECASE)
        settled = found.start() if found else len(self._held) - _overlap(self._held, self._closing)
        if settled:
            pieces.append(Reasoning(self._held[:settled]))
        if not found:
            self._held = self._held[settled:]
            return False
        self._held = self._held[found.end() :]
        self._closing = ""
        self._after_block = True
        return True


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    lowered = text[-len(tag) :].lower()
    return next((size for size in range(len(lowered), 0, -1) if tag.startswith(lowered[-size:])), 0)
