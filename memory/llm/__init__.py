"""How a model is spoken to.

A *model server* is anything that speaks the chat completions protocol. An *answer* comes as *pieces*: text, reasoning,
whole tool requests, and at last Finished. Whatever goes wrong is one of the few errors of `memory.llm.errors`.
A *structured call* (`memory.llm.structured`) asks for one JSON object, and its failing is data, not an error.
Nothing here knows what the conversation is about or where it is kept.
"""

from memory.llm.client import ModelServer
from memory.llm.errors import ModelError
from memory.llm.pieces import Finished, Piece, Reasoning, Text, ToolRequest, ToolsNotOffered
from memory.llm.settings import ServerSettings

__all__ = [
    "Finished",
    "ModelError",
    "ModelServer",
    "Piece",
    "Reasoning",
    "ServerSettings",
    "Text",
    "ToolRequest",
    "ToolsNotOffered",
]
