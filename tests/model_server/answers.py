"""What the model server can be told to answer, and when."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer. Told nothing, it is an empty one that ends well.

    text or chunks: what it says, by words or exactly in these pieces. words_per_second: 0 is all at once.
    first_after, between: seconds before the first chunk and between chunks. reasoning comes before the text, as the
    field `reasoning_content` or `reasoning`, or written into the text between the tags `think` or `thinking`.
    tool_calls: dicts with name, arguments (text, or anything JSON) and id (None leaves it out), their arguments in
    fragments of so many characters. lines: further data lines of the stream, as they stand, before its end.
    finish_reason: '' is the fitting one, None gives none. done: whether the end marker is sent.
    cut_after: the connection breaks after so many chunks. hang_after: so many chunks, then nothing until released; -1
    holds back even the headers. whole: one JSON document although a stream was asked for.
    choices: False sends empty lists of choices.
    status, headers, body: any other HTTP answer; a body that is no text is sent as JSON.
    """

    text: str = ""
    chunks: list[str] = field(default_factory=list)
    words_per_second: float = 0
    first_after: float = 0
    between: float = 0
    reasoning: str = ""
    reasoning_as: str = "reasoning_content"
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    fragment: int = 5
    lines: list[str] = field(default_factory=list)
    finish_reason: str | None = ""
    done: bool = True
    cut_after: int | None = None
    hang_after: int | None = None
    whole: bool = False
    choices: bool = True
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Answers for the requests that fit everything named here; `form` is the schema name of a structured call.

    The last answer is repeated; nth counts the fitting requests from 1; times is how often the rule may answer in all.
    """

    answers: list[Answer]
    path: str = "/chat/completions"
    system: str = ""
    user: str = ""
    model: str = ""
    form: str = ""
    has_tools: bool | None = None
    nth: int | None = None
    times: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def rule_from(value: dict[str, Any]) -> Rule:
    """Raises TypeError when `value` holds anything a rule does not have."""
    return Rule(**{**value, "answers": [Answer(**answer) for answer in value["answers"]]})


def error_body(message: str, *, code: str = "", kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code or None}}
