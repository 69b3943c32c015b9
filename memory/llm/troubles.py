"""Every trouble a model server can make, told as one of our few errors."""

import json
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai

from memory.llm import errors
from memory.llm.errors import ModelError

RAISED = (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, UnicodeEncodeError, OSError)
LONGEST_WAIT = 300.0  # seconds; a server that asks for more is asked again then
_USED_UP = ("insufficient_quota", "insufficient balance", "insufficient credits")
_OVERFLOW = (
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context size",
    "maximum context length",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length of the messages",
)


def of_status(status: int, headers: Mapping[str, str], body: str, *, now: datetime) -> ModelError:
    """The error for an HTTP status that is not 2xx. `now` is only used for a Retry-After that is a date."""
    payload = _json_object(body)
    detail = _message(payload) or body
    words = _words(payload) if payload else body[:2000].lower()
    kind = _kind(status, words, is_json=bool(payload))
    return kind(detail, status=status, retry_after=retry_after(headers, now=now))


def error_in_answer(answer: dict[str, Any]) -> ModelError | None:
    """The error that stands inside a 200 answer, whole or streamed, or None."""
    error = answer.get("error")
    if not error and answer.get("object") == "error":
        error = answer
    if not error:
        return None
    payload = error if isinstance(error, dict) else {"message": str(error)}
    words = _words(payload)
    status = next((int(payload[key]) for key in ("code", "status", "status_code") if _is_status(payload.get(key))), 0)
    if not status:
        status = 429 if "rate_limit" in words or "rate limit" in words else 500
    return _kind(status, words, is_json=True)(_message(payload))


def of_exception(error: Exception, *, now: datetime) -> Exception:
    """The error for whatever the openai client raised; an exception that is none of its own comes back as it is."""
    if isinstance(error, openai.APIStatusError):
        return of_status(error.status_code, error.response.headers, error.response.text, now=now)
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    match cause:
        case ModelError():
            return cause
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return errors.NotAModelServer("the address of the model server is no http or https address")
        case TimeoutError() | httpx2.TimeoutException() if not isinstance(cause, httpx2.ConnectTimeout):
            return errors.TimedOut()
        case httpx2.ConnectTimeout():
            return errors.Unreachable("connecting took too long")
        case UnicodeEncodeError() | httpx2.LocalProtocolError():
            # The key is all of a request that is neither checked nor encoded before.
            return errors.BadKey("the key holds characters that no key can have")
        case httpx2.ConnectError() | httpx2.ProxyError() | ssl.SSLError():
            return errors.Unreachable(str(cause))
        case httpx2.RemoteProtocolError() if "disconnected" not in str(cause) and "closed" not in str(cause):
            return errors.NotAModelServer("the address does not speak HTTP")
        case httpx2.DecodingError():
            return errors.NotAModelServer("the answer could not be decompressed")
        case httpx2.TransportError() | OSError():
            return errors.Unreachable(str(cause))
        case openai.OpenAIError():
            return errors.ServerFailed()
    return error


def model_names(body: str) -> tuple[str, ...]:
    """The ids in a list of models. Raises NotAModelServer when it is no such list."""
    listed = _json_object(body).get("data")
    if not isinstance(listed, list):
        raise errors.NotAModelServer(body)
    return tuple(item["id"] for item in listed if isinstance(item, dict) and isinstance(item.get("id"), str))


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds to wait as the headers ask: `retry-after-ms`, seconds, or an HTTP date; at most LONGEST_WAIT."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    seconds = _number(milliseconds)
    if seconds is not None:
        seconds /= 1000
    elif value is not None:
        seconds = _number(value)
        if seconds is None:
            seconds = _seconds_until(value, headers.get("date"), now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _kind(status: int, words: str, *, is_json: bool) -> type[ModelError]:
    """Which error an HTTP status is, given the server's words in lower case."""
    if status not in (401, 403, 429) and any(word in words for word in _OVERFLOW):
        return errors.ContextOverflow
    if status == 402 or (status == 429 and any(word in words for word in _USED_UP)):
        return errors.OutOfQuota
    if status in (400, 404) and "model_not_found" in words:
        return errors.NoSuchModel
    if status == 404:
        return errors.NoSuchModel if is_json and "model" in words else errors.NotAModelServer
    by_status: dict[int, type[ModelError]] = {
        401: errors.BadKey,
        403: errors.BadKey,
        405: errors.NotAModelServer,
        408: errors.TimedOut,
        409: errors.ServerFailed,
        413: errors.ContextOverflow,
        425: errors.ServerFailed,
        429: errors.RateLimited,
        501: errors.Refused,
    }
    if status in by_status:
        return by_status[status]
    if status >= 500:
        return errors.ServerFailed
    return errors.Refused if status >= 400 else errors.NotAModelServer


def _json_object(body: str) -> dict[str, Any]:
    """The error object of a body, unwrapped from its `error` key; empty when the body is no JSON object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(value, list) and value:
        value = value[0]  # Google's servers wrap the error in a list
    if not isinstance(value, dict):
        return {}
    error = value.get("error", value)
    return error if isinstance(error, dict) else {"message": str(error)}


def _message(payload: dict[str, Any]) -> str:
    return next((payload[key] for key in ("message", "detail", "msg") if isinstance(payload.get(key), str)), "")


def _words(payload: dict[str, Any]) -> str:
    return " ".join(str(value) for value in payload.values() if isinstance(value, str | int | list | dict)).lower()


def _is_status(value: object) -> bool:
    return isinstance(value, int | str) and str(value).isdecimal() and 400 <= int(value) <= 599


def _number(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else None


def _seconds_until(value: str, server_date: str | None, now: datetime) -> float | None:
    """Against the server's own clock when it tells it, so that a clock that is off does not matter."""
    until, server_now = _http_date(value), _http_date(server_date or "")
    return None if until is None else (until - (server_now or now)).total_seconds()


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
