"""One request to a model, and what to leave out of it when a server refuses it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ask:
    model: str
    messages: Sequence[Message]
    tools: tuple[dict[str, Any], ...] = ()
    effort: str = ""
    response_format: dict[str, Any] | None = None
    streamed: bool = True

    def parameters(self) -> dict[str, Any]:
        """The body of the request. Nothing optional is named unless it is used: some servers refuse what they
        do not know."""
        body: dict[str, Any] = {"model": self.model, "messages": _sendable(list(self.messages))}
        if self.streamed:
            body["stream"] = True
        if self.tools:
            body["tools"] = _sendable(list(self.tools))
        if self.effort:
            body["reasoning_effort"] = self.effort
        if self.response_format:
            body["response_format"] = _sendable(self.response_format)
        return body

    def less(self, status: int, body: str, *, keep_tools: bool) -> "Ask | None":
        """This request without what the server's refusal is about, or None when it is about something else.

        The effort goes first: the answer can do without it better than without tools. A schema becomes JSON mode
        before nothing is said about the form of the answer.
        """
        words = body[:4000].lower()
        if self.response_format and _about_format(status, words):
            return self.plainer()
        if self.effort and status in (400, 404, 422) and any(word in words for word in _ABOUT_EFFORT):
            return replace(self, effort="")
        # A 500 that speaks of tools may be a passing failure; only this one is known to be a refusal.
        about_tools = "tools param requires" in words if status == 500 else "tool" in words or "function" in words
        if self.tools and not keep_tools and status in (400, 404, 422, 500, 501) and about_tools:
            return replace(self, tools=())
        return None

    @property
    def form(self) -> str:
        """The kind of answer asked for: 'json_schema', 'json_object', or '' for any text."""
        return str(self.response_format["type"]) if self.response_format else ""

    def plainer(self) -> "Ask":
        """This request asking one step less of the form of the answer: a schema, JSON of any kind, any text."""
        return replace(self, response_format={"type": "json_object"} if self.form == "json_schema" else None)


def _about_format(status: int, words: str) -> bool:
    # A 500 may be a passing failure; only one that names the format is known to be about it.
    about = _NAMES_FORMAT if status == 500 else (*_NAMES_FORMAT, *_ABOUT_FORMAT)
    return status in (400, 404, 422, 500, 501) and any(word in words for word in about)


_UNKNOWN = ("unknown parameter", "unrecognized", "unexpected", "extra", "not permitted")
_NAMES_FORMAT = ("response_format", "json_schema", "json_object", "json schema", "json mode", "grammar")
_ABOUT_FORMAT = ("response format", "structured output", "guided", "schema", "requested parameters", *_UNKNOWN)
_ABOUT_EFFORT = ("effort", "reasoning", *_UNKNOWN)


def _sendable(value: Any) -> Any:
    """The same value with lone surrogates replaced: a model may write them, but no request can carry them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [_sendable(item) for item in value]
    if isinstance(value, dict):
        return {key: _sendable(item) for key, item in value.items()}
    return value
