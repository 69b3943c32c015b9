"""From the JSON of an answer to its pieces."""

from collections.abc import Iterator
from typing import Any

from memory.llm.errors import CutOff, EmptyAnswer, Filtered, NotAModelServer
from memory.llm.pieces import Finished, Piece, Reasoning, Text
from memory.llm.reasoning import ThinkSplitter
from memory.llm.toolcalls import ToolCalls
from memory.llm.troubles import error_in_answer


class Reading:
    """One answer being read. `feed` takes its JSON objects in order; `end` says how it ended.

    Plain text that looks like a tool call is text: only the protocol's own `tool_calls` are.
    """

    def __init__(self) -> None:
        self.reason = ""  # the server's word for why the answer ended, once it was given
        self._begun = False
        self._choices = False
        self._deltas = False
        self._text = False
        self._think = ThinkSplitter()
        self._calls = ToolCalls()

    @property
    def begun(self) -> bool:
        """Whether the model has produced anything. A chunk that only names the role is sent before it thinks."""
        return self._begun

    def feed(self, answer: dict[str, Any]) -> Iterator[Piece]:
        """The pieces that one chunk, or a whole answer, holds. Raises the ModelError that stands in it."""
        if error := error_in_answer(answer):
            raise error
        choices = answer.get("choices")
        if not isinstance(choices, list):
            if self._choices or "usage" in answer:
                return
            raise NotAModelServer("the answer has no list of choices")
        choice = choices[0] if choices and isinstance(choices[0], dict) else None
        if choice is None:
            return  # the chunk that counts the tokens
        self._choices = True
        if isinstance(choice.get("delta"), dict):
            self._deltas = True
            yield from self._message(choice["delta"])
        elif isinstance(choice.get("message"), dict) and not self._deltas:
            # After deltas, a whole message is the same text once more.
            yield from self._message(choice["message"])
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self.reason = choice["finish_reason"]
            self._begun = True

    def end(self, *, marked: bool) -> Iterator[Piece]:
        """The last pieces. `marked`: the server said that this is the end (end marker, or a whole document).

        Raises CutOff, Filtered or EmptyAnswer; all text that came has been yielded by then.
        """
        yield from self.held()
        if self.reason == "content_filter":
            raise Filtered
        if not self.reason and not marked:
            raise CutOff
        if not self._text and not self._calls:
            raise EmptyAnswer
        yield from self._calls.requests()
        yield Finished("tool_calls" if self._calls and self.reason != "length" else self.reason or "stop")

    def held(self) -> Iterator[Piece]:
        """Text that still waited for its next character, now that there will be none."""
        yield from self._noted(self._think.end())

    def _message(self, message: dict[str, Any]) -> Iterator[Piece]:
        for key in ("reasoning_content", "reasoning"):
            if isinstance(message.get(key), str) and message[key]:
                self._begun = True
                yield Reasoning(message[key])
                break  # servers that send both send the same words
        yield from self._content(message.get("content"))
        yield from self._content(message.get("refusal"))
        if message.get("tool_calls"):
            self._begun = True
            self._calls.feed(message["tool_calls"])

    def _content(self, content: object) -> Iterator[Piece]:
        if isinstance(content, str) and content:
            self._begun = True
            yield from self._noted(self._think.feed(content))
        elif isinstance(content, list):
            for part in content:
                yield from self._part(part)

    def _part(self, part: object) -> Iterator[Piece]:
        """Content in parts, each with its type; a part of thinking holds parts of its own."""
        if not isinstance(part, dict):
            return
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            words = inner if isinstance(inner, str) else "".join(_texts(inner))
            if words:
                self._begun = True
                yield Reasoning(words)
        else:
            yield from self._content(part.get("text"))

    def _noted(self, pieces: list[Text | Reasoning]) -> Iterator[Piece]:
        for piece in pieces:
            if isinstance(piece, Text) and piece.text.strip():
                self._text = True
            yield piece


def _texts(parts: object) -> Iterator[str]:
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
