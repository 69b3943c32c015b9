import json
from datetime import UTC, datetime

import httpx2
import pytest

from memory.llm import errors
from memory.llm.errors import ModelError
from memory.llm.troubles import LONGEST_WAIT, error_in_answer, of_exception, of_status, retry_after

NOW = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)


def kind(status: int, body: str) -> type[ModelError]:
    return type(of_status(status, {}, body, now=NOW))


def test_it_works() -> None:
    error = of_status(429, {"retry-after": "5"}, '{"error": {"message": "slow down"}}', now=NOW)
    assert isinstance(error, errors.RateLimited)
    assert (error.status, error.retry_after, error.detail, error.passing) == (429, 5.0, "slow down", True)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, errors.NotAModelServer),
        (400, errors.Refused),
        (401, errors.BadKey),
        (402, errors.OutOfQuota),
        (403, errors.BadKey),
        (404, errors.NotAModelServer),
        (405, errors.NotAModelServer),
        (408, errors.TimedOut),
        (409, errors.ServerFailed),
        (413, errors.ContextOverflow),
        (422, errors.Refused),
        (429, errors.RateLimited),
        (500, errors.ServerFailed),
        (501, errors.Refused),
        (502, errors.ServerFailed),
        (503, errors.ServerFailed),
        (529, errors.ServerFailed),
    ],
)
@pytest.mark.parametrize("body", ["", "<html>Bad</html>", "{}", "[]", "null", '{"error": null}', '{"error": "bad"}'])
def test_statuses(status: int, expected: type[ModelError], body: str) -> None:
    assert kind(status, body) is expected


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000."),
        (400, "the request exceeds the available context size, try increasing it"),
        (422, "input is too long for requested model"),
        (500, "context size exceeded"),
    ],
)
def test_a_context_overflow_is_known_by_its_words(status: int, message: str) -> None:
    assert kind(status, json.dumps({"error": {"message": message}})) is errors.ContextOverflow
    assert kind(status, json.dumps({"detail": message})) is errors.ContextOverflow
    assert kind(status, message) is errors.ContextOverflow


@pytest.mark.parametrize(("key", "word"), [("code", "context_length_exceeded"), ("type", "exceed_context_size_error")])
def test_a_context_overflow_is_known_by_its_code(key: str, word: str) -> None:
    assert kind(400, json.dumps({"error": {"message": "no", key: word}})) is errors.ContextOverflow


def test_a_missing_model_is_not_a_missing_page() -> None:
    assert kind(404, '{"error": {"message": "The model `x` does not exist"}}') is errors.NoSuchModel
    assert kind(400, '{"error": {"message": "no", "code": "model_not_found"}}') is errors.NoSuchModel
    assert kind(404, '{"detail": "Not Found"}') is errors.NotAModelServer
    assert kind(404, "<html>no such model of page</html>") is errors.NotAModelServer


def test_waiting_does_not_help_an_empty_account() -> None:
    error = of_status(429, {}, '{"error": {"message": "no", "code": "insufficient_quota"}}', now=NOW)
    assert isinstance(error, errors.OutOfQuota)
    assert not error.passing


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "999999"}, LONGEST_WAIT),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Mon, 10 Aug 2026 21:30:20 GMT"}, 20.0),
        ({"retry-after": "Mon, 10 Aug 2026 21:29:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 10 Aug 2026 21:30:20 GMT", "date": "Mon, 10 Aug 2026 21:30:15 GMT"}, 5.0),
        ({"retry-after": "Mon, 10 Aug 2030 21:30:20 GMT"}, LONGEST_WAIT),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"error": "boom"}, errors.ServerFailed),
        ({"error": {"message": "boom"}}, errors.ServerFailed),
        ({"error": {"message": "slow", "code": 429}}, errors.RateLimited),
        ({"error": {"message": "slow", "code": "rate_limit_exceeded"}}, errors.RateLimited),
        ({"error": {"message": "no", "code": "401"}}, errors.BadKey),
        ({"error": {"message": "prompt is too long", "code": None}}, errors.ContextOverflow),
        ({"object": "error", "message": "bad", "code": 400}, errors.Refused),
        ({"error": ["x"]}, errors.ServerFailed),
        ({"error": {"message": "boom", "code": True}}, errors.ServerFailed),
    ],
)
def test_errors_inside_an_answer(answer: dict[str, object], expected: type[ModelError]) -> None:
    assert type(error_in_answer(answer)) is expected


@pytest.mark.parametrize("answer", [{}, {"error": None}, {"error": {}}, {"choices": []}])
def test_an_answer_without_an_error(answer: dict[str, object]) -> None:
    assert error_in_answer(answer) is None


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, ModelError)]
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert len({kind.sentence for kind in kinds}) == len(kinds)


def test_the_servers_words_are_not_in_what_is_logged() -> None:
    error = of_status(400, {}, '{"error": {"message": "cannot parse: Alice said hello"}}', now=NOW)
    assert "Alice" in error.detail
    assert "Alice" not in f"{error} {error!r}"


def test_a_bug_is_not_taken_for_trouble() -> None:
    bug = KeyError("choices")
    assert of_exception(bug, now=NOW) is bug
    assert isinstance(of_exception(httpx2.ReadError("gone"), now=NOW), errors.Unreachable)
