"""Tool calls, put together from the fragments in which they are streamed."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from memory.llm.pieces import ToolRequest


@dataclass(kw_only=True)
class _Call:
    index: object
    id: str
    name: str = ""
    raw: str = ""


class ToolCalls:
    """Collects fragments by their index. Servers differ, so a missing index, id or name is made good."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, fragments: object) -> None:
        """Take one chunk's `tool_calls`; anything that has no such shape is passed over."""
        for fragment in fragments if isinstance(fragments, list) else []:
            function = fragment.get("function") if isinstance(fragment, dict) else None
            if isinstance(function, dict):
                call = self._call_of(fragment, function)
                call.name = call.name or _text(function.get("name"))
                call.raw += _arguments_text(function.get("arguments"))

    def requests(self) -> list[ToolRequest]:
        """The calls in the order they began, each with an id of its own."""
        requests: list[ToolRequest] = []
        taken: set[str] = set()
        for call in self._calls:
            call_id = call.id if call.id and call.id not in taken else f"call_{uuid.uuid4().hex[:12]}"
            taken.add(call_id)
            requests.append(ToolRequest(id=call_id, name=call.name, arguments=_parsed(call.raw), raw=call.raw))
        return requests

    def _call_of(self, fragment: dict[str, Any], function: dict[str, Any]) -> _Call:
        index, call_id = fragment.get("index"), _text(fragment.get("id"))
        for call in reversed(self._calls):
            # Some servers number every call 0, or none at all: then another id tells them apart, or the lack of any
            # id and name tells that a fragment goes on with the last call.
            if index is None:
                same = call.id == call_id if call_id else not function.get("name")
            else:
                same = call.index == index and (not call_id or not call.id or call.id == call_id)
            if same:
                call.id = call.id or call_id
                return call
        call = _Call(index=index, id=call_id)
        self._calls.append(call)
        return call


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments_text(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return _text(value)


def _parsed(raw: str) -> dict[str, Any] | None:
    """The arguments as a dict; none written, or `null`, is an empty dict; anything else is None."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None
