"""The pieces an answer comes in, in the order the model gave them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Text:
    """Words for the person."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """What the model thought aloud; never part of the reply."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    """One whole tool call. `arguments` is None when `raw`, the text the model wrote, is no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str


@dataclass(frozen=True)
class ToolsNotOffered:
    """Always the first piece when it comes: tools were given, but the request went out without them."""


@dataclass(frozen=True)
class Finished:
    """Always the last piece of a complete answer. `reason`: 'stop', 'tool_calls', 'length' or the server's own word."""

    reason: str


Piece = Text | Reasoning | ToolRequest | ToolsNotOffered | Finished
