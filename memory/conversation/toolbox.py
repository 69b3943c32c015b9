"""What the tools of every conversation with a model have in common: their form, and the strict reading of arguments.

Arguments come from a model; a mistake is answered with a plain sentence that it can act on, and nothing is looked up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.conversation.quoting import quoted_line


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What the model reads (`text`, bounded), and in `error` why there is nothing to read, None when it went well."""

    text: str
    error: str | None = None


class RefusedError(Exception):
    """The call cannot be carried out; the text is what the model reads."""


def tool(name: str, description: str, properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """A tool as it is offered to a model: a function with a strict object of arguments."""
    parameters: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    if required:
        parameters["required"] = list(required)
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def text(description: str) -> dict[str, Any]:
    """A text argument."""
    return {"type": "string", "description": description}


def texts(description: str) -> dict[str, Any]:
    """An argument that is a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def number(description: str) -> dict[str, Any]:
    """A whole number from 1 on."""
    return {"type": "integer", "minimum": 1, "description": description}


def checked(offered: Mapping[str, Any], arguments: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments without those that are null; raises RefusedError where they do not fit the tool that is offered."""
    schema = offered["function"]["parameters"]
    if not isinstance(arguments, dict):
        raise RefusedError("the arguments are not a JSON object")
    given = {key: value for key, value in arguments.items() if value is not None}
    if unknown := sorted(quoted_line(str(key), 40) for key in given.keys() - schema["properties"].keys()):
        raise RefusedError(f"unknown arguments: {', '.join(unknown[:5])}")
    for key in schema.get("required", ()):
        if key not in given:
            raise RefusedError(f"{key} is missing")
    for key, value in given.items():
        wanted = schema["properties"][key]["type"]
        if wanted == "string" and not isinstance(value, str):
            raise RefusedError(f"{key} has to be text")
        if wanted == "array" and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise RefusedError(f"{key} has to be a list of texts")
        if wanted == "integer" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise RefusedError(f"{key} has to be a whole number from 1 on")
    return given
