"""A structured call over the wire: what is asked for, what is made of the answer, and what becomes of trouble."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.llm.client import ModelServer
from memory.llm.structured import UNUSABLE, Called, Failure, ask
from tests.model_server.answers import Answer, Rule, error_body
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
HELLO = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "What does Alice want?"}]
SCHEMA = {
    "type": "object",
    "properties": {"focus": {"type": "string"}},
    "required": ["focus"],
    "additionalProperties": False,
}
TRIP = '{"focus": "Trip"}'


def focus(answer: Any) -> str:
    if not isinstance(answer["focus"], str):
        raise ValueError("The focus has to be a text.")
    return answer["focus"]


def asked(server: ModelServer, **how: Any) -> str | Failure:
    return ask(server, HELLO, schema=SCHEMA, check=focus, kind="test", **how)


def forms(model_server: ModelServerProcess) -> list[str]:
    return [request.get("response_format", {}).get("type", "") for request in model_server.requests()]


def refusing(*forms: str, status: int = 400, message: str = "") -> Callable[[ModelServerProcess], None]:
    """The server refuses so many requests, in these words, and then answers."""

    def script(model_server: ModelServerProcess) -> None:
        answers = [Answer(status=status, body=error_body(message or f"{form} is not supported")) for form in forms]
        model_server.script(*answers, Answer(text=TRIP), Answer(text=TRIP))

    return script


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text=TRIP))
    heard: list[Called] = []
    assert asked(connect(), called=heard.append) == "Trip"
    [request] = model_server.requests()
    assert request["messages"] == HELLO
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "test", "schema": SCHEMA, "strict": True},
    }
    [call] = heard
    assert (call.kind, call.ok) == ("test", True)
    assert 0 <= call.seconds < 60


@pytest.mark.parametrize(
    ("refusal", "tried"),
    [
        (refusing(), ["json_schema", "json_schema"]),
        (refusing("response_format"), ["json_schema", "json_object", "json_object"]),
        (refusing("json_schema", "json_object"), ["json_schema", "json_object", "", ""]),
        (
            refusing("a", "b", status=422, message="Extra inputs are not permitted"),
            ["json_schema", "json_object", "", ""],
        ),
        (
            refusing("a", status=404, message="No endpoints found that can handle the requested parameters."),
            ["json_schema", "json_object", "json_object"],
        ),
        (refusing("a", status=500, message="failed to parse grammar"), ["json_schema", "json_object", "json_object"]),
    ],
)
def test_the_form_that_a_server_takes_is_learned_once(
    model_server: ModelServerProcess,
    connect: Connect,
    refusal: Callable[[ModelServerProcess], None],
    tried: list[str],
) -> None:
    refusal(model_server)
    server = connect()
    assert asked(server) == "Trip"
    assert asked(server) == "Trip"
    assert forms(model_server) == tried


def test_each_model_learns_for_itself(model_server: ModelServerProcess, connect: Connect) -> None:
    refusing("json_schema", "json_object")(model_server)
    server = connect(analyst="small")
    assert asked(server) == "Trip"
    assert asked(server, use="main") == "Trip"
    assert [request["model"] for request in model_server.requests()] == ["small", "small", "small", "talker"]
    assert forms(model_server) == ["json_schema", "json_object", "", "json_schema"]


def test_a_refusal_about_something_else_is_not_tried_again(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(status=400, body=error_body("messages must not be empty")))
    assert asked(connect()) == Failure(reason="refused", reached=True)
    assert len(model_server.requests()) == 1


def test_an_answer_that_does_not_pass_is_asked_for_once_more_with_the_reason(
    model_server: ModelServerProcess, connect: Connect
) -> None:
    model_server.script(Answer(text='{"focus": ["a"]}'), Answer(text=TRIP))
    heard: list[Called] = []
    assert asked(connect(), called=heard.append) == "Trip"
    assert [call.ok for call in heard] == [False, True]
    again = model_server.requests()[1]["messages"]
    assert again[:3] == [*HELLO, {"role": "assistant", "content": '{"focus": ["a"]}'}]
    assert "The focus has to be a text." in again[3]["content"]
    assert forms(model_server) == ["json_schema", "json_schema"]


def test_what_is_no_json_is_asked_for_freely(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text="I would rather not."), Answer(text=f"Very well: {TRIP}"))
    assert asked(connect()) == "Trip"
    assert forms(model_server) == ["json_schema", ""]


@pytest.mark.parametrize(
    "empty",
    [
        Answer(),
        Answer(text="<think>The person wants", finish_reason="length"),
        Answer(reasoning="hm", reasoning_as="reasoning_content"),
        Answer(cut_after=1, text=TRIP),
    ],
)
def test_an_answer_without_words_is_asked_for_once_more(
    model_server: ModelServerProcess, connect: Connect, empty: Answer
) -> None:
    model_server.script(empty, Answer(text=TRIP))
    assert asked(connect()) == "Trip"
    again = model_server.requests()[1]["messages"]
    assert [message["role"] for message in again] == ["system", "user"]
    assert again[1]["content"].startswith(HELLO[1]["content"])


def test_twice_is_all(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(answers=[Answer(text="No.")]))
    heard: list[Called] = []
    assert asked(connect(), called=heard.append) == Failure(reason=UNUSABLE, reached=True)
    assert len(model_server.requests()) == 2
    assert [call.ok for call in heard] == [False, False]


@pytest.mark.parametrize(
    ("trouble", "reason", "reached"),
    [
        (Answer(status=503, body=error_body("down")), "server_failed", False),
        (Answer(status=429, body=error_body("slow down"), headers={"Retry-After": "5"}), "rate_limited", False),
        (Answer(status=401, body=error_body("bad key")), "bad_key", False),
        (Answer(status=200, body="<!doctype html><title>502</title>"), "not_a_model_server", False),
        (Answer(status=400, body=error_body("maximum context length is 10 tokens")), "context_overflow", True),
        (Answer(text="I", finish_reason="content_filter"), "filtered", True),
    ],
)
def test_trouble_is_data(
    model_server: ModelServerProcess, connect: Connect, trouble: Answer, reason: str, reached: bool
) -> None:
    model_server.rules(Rule(answers=[trouble]))
    failure = asked(connect())
    assert isinstance(failure, Failure)
    assert (failure.reason, failure.reached) == (reason, reached)
    assert failure.retry_after == (5.0 if reason == "rate_limited" else None)
    assert len(model_server.requests()) == 1


def test_a_silent_server_is_not_reached(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(answers=[Answer(hang_after=-1)]))
    assert asked(connect(), timeout=0.3) == Failure(reason="timed_out", reached=False)
    assert len(model_server.requests()) == 1


def test_a_server_that_is_not_there_is_not_reached(connect: Connect) -> None:
    assert asked(connect(url="http://127.0.0.1:9/v1")) == Failure(reason="unreachable", reached=False)


def test_of_two_objects_the_one_that_passes_is_taken(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text=f'{TRIP} or rather {{"focus": null}}'))
    assert asked(connect()) == "Trip"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.recursive(st.none() | st.text(), st.lists, max_leaves=3).map(json.dumps))
def test_whatever_a_model_says_is_no_exception(model_server: ModelServerProcess, connect: Connect, text: str) -> None:
    model_server.clear()
    model_server.rules(Rule(answers=[Answer(text=text)]))
    answer = asked(connect())
    assert isinstance(answer, str | Failure)
    assert len(model_server.requests()) <= 2
