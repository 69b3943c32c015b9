"""One structured call: a JSON object is asked for in the strictest way the server knows, read in the laxest we know.

An answer that cannot be used is asked for once more, with the reason. What a model says is never an exception: an
answer that fails twice, or a server that does not answer, is a Failure, and the caller has something to fall back on.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from memory.llm import errors
from memory.llm.asking import Message
from memory.llm.client import ModelServer
from memory.llm.errors import ModelError
from memory.llm.extract import readings

T = TypeVar("T")

UNUSABLE = "unusable_answer"
_QUOTED_BACK = 4_000  # characters of a refused answer that its author is shown again
_LONGEST_REASON = 2_000

# The server, not this request, is the trouble: the same request may do well later.
_NOT_REACHED = (
    errors.Unreachable,
    errors.TimedOut,
    errors.RateLimited,
    errors.ServerFailed,
    errors.BadKey,
    errors.OutOfQuota,
    errors.NoSuchModel,
    errors.NotAModelServer,
)
_MAY_BE_ASKED_AGAIN = (UNUSABLE, errors.EmptyAnswer.code, errors.CutOff.code)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """No usable answer. `reason` is a ModelError's code or UNUSABLE, safe to log.

    `reached` is False when the server was down, silent, busy or wrongly set up: then the request itself is not to
    blame. `retry_after` is the number of seconds the server asked us to wait, or None.
    """

    reason: str
    reached: bool
    retry_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class Called:
    """One request that was made: what for, whether its answer could be used, and how many seconds it took."""

    kind: str
    ok: bool
    seconds: float


def nobody(called: Called) -> None:
    """Takes no note of a call."""


def ask(
    model: ModelServer,
    messages: Sequence[Message],
    *,
    schema: dict[str, Any],
    check: Callable[[Any], T],
    kind: str,
    timeout: float = 60.0,
    use: Literal["analyst", "main"] = "analyst",
    called: Callable[[Called], object] = nobody,
) -> T | Failure:
    """What `check` makes of the model's answer to `messages`.

    `schema` is the JSON schema of an object, all of whose properties are required; `check` gets a dict with at least
    one of them and may find anything in it. It raises ValueError with a sentence that tells the model what to mend.
    At most two requests that get an answer, each within `timeout` seconds; `called` hears of each. `kind` is a short
    word of letters, digits and `_` for what is asked.
    """
    strict = {"type": "json_schema", "json_schema": {"name": kind, "schema": schema, "strict": True}}
    name = (model.settings.analyst if use == "analyst" else "") or model.settings.model
    asked, form = list(messages), strict
    failure = Failure(reason=UNUSABLE, reached=True)
    for _ in range(2):
        began = time.monotonic()
        text = ""
        try:
            text = model.call(asked, timeout=timeout, model=name, response_format=form or None)
            answer = _checked(text, schema, check)
        except _Unusable as unusable:
            failure = Failure(reason=UNUSABLE, reached=True)
            reason = unusable.sentence
        except ModelError as error:
            reached = not isinstance(error, _NOT_REACHED)
            failure = Failure(reason=error.code, reached=reached, retry_after=error.retry_after)
            reason = "It was empty or broke off."
        else:
            called(Called(kind=kind, ok=True, seconds=time.monotonic() - began))
            return answer
        called(Called(kind=kind, ok=False, seconds=time.monotonic() - began))
        log.info("structured call %s to %s: %s", kind, name, failure.reason)
        if failure.reason not in _MAY_BE_ASKED_AGAIN:
            break
        # A server that holds the model to a schema may be what kept it from answering, so the second try is free.
        form = strict if _is_json(text, schema) else {}
        asked = _again(messages, text, reason)
    return failure


class _Unusable(Exception):
    def __init__(self, sentence: str) -> None:
        super().__init__(UNUSABLE)
        self.sentence = sentence


def _checked(text: str, schema: dict[str, Any], check: Callable[[Any], T]) -> T:
    """The first reading that passes; raises _Unusable with what is wrong with the likeliest one."""
    reason = ""
    for reading in readings(text, tuple(schema["properties"])):
        try:
            return check(reading)
        except ValueError as error:
            reason = reason or str(error)
    raise _Unusable(reason[:_LONGEST_REASON] or "It was no JSON object with the fields that were asked for.")


def _is_json(text: str, schema: dict[str, Any]) -> bool:
    return next(readings(text, tuple(schema["properties"])), None) is not None


def _again(messages: Sequence[Message], text: str, reason: str) -> list[Message]:
    """The same messages with the refused answer and the reason after them."""
    sentence = f"That answer could not be used. {reason} Answer again with one JSON object and nothing else."
    if text.strip():
        said = {"role": "assistant", "content": text[:_QUOTED_BACK]}
        return [*messages, said, {"role": "user", "content": sentence}]
    # Two messages of one role in a row, or an empty one, are refused by some servers.
    *before, last = messages
    return [*before, {**last, "content": f"{last['content']}\n\n{sentence}"}]
