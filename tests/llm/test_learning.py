"""Servers that refuse tools or an effort are asked without, and not asked twice."""

import threading
from collections.abc import Callable

import pytest

from memory.llm.client import Finished, ModelServer, Piece, Text, ToolsNotOffered
from memory.llm.errors import ModelError, Refused, ServerFailed
from tests.model_server.answers import Answer, Rule, error_body
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
HELLO = [{"role": "user", "content": "Hello, it is Alice."}]
TOOLS = [{"type": "function", "function": {"name": "recall", "parameters": {}}}]
NO_TOOLS = Rule(has_tools=True, answers=[Answer(status=400, body=error_body("talker does not support tools"))])
NO_EFFORT = Answer(status=400, body=error_body("Unrecognized request argument supplied: reasoning_effort"))


def answer(server: ModelServer, effort: str | None = None) -> list[Piece]:
    return list(server.stream(HELLO, tools=TOOLS, effort=effort, stopped=lambda: False))


def offered(model_server: ModelServerProcess) -> list[bool]:
    return ["tools" in request for request in model_server.requests()]


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(NO_TOOLS)
    model_server.script(Answer(text="Hello."), Answer(text="Again."))
    server = connect()
    assert server.supports_tools
    assert answer(server) == [ToolsNotOffered(), Text("Hello."), Finished("stop")]
    assert not server.supports_tools
    assert answer(server) == [ToolsNotOffered(), Text("Again."), Finished("stop")]
    assert offered(model_server) == [True, False, False]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice'),
        (404, "No endpoints found that support tool use"),
        (422, "Extra inputs are not permitted: tools"),
        (422, "functions are not supported"),
        (500, "tools param requires --jinja flag"),
        (501, "Tool calling is not implemented"),
    ],
)
def test_refusals_of_tools(model_server: ModelServerProcess, connect: Connect, status: int, message: str) -> None:
    model_server.rules(Rule(has_tools=True, answers=[Answer(status=status, body=error_body(message))]))
    server = connect()
    assert answer(server)[0] == ToolsNotOffered()
    assert not server.supports_tools


def test_a_refusal_that_only_mentions_tools_teaches_nothing(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(answers=[Answer(status=400, body=error_body("a tool message needs a tool call"))]))
    server = connect()
    with pytest.raises(Refused):
        answer(server)
    assert offered(model_server) == [True, False]
    assert server.supports_tools


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Answer(status=500, body=error_body("failed to parse a tool call")), ServerFailed),
        (Answer(status=400, body=error_body("messages must not be empty")), Refused),
    ],
)
def test_other_troubles_are_not_tried_without_tools(
    model_server: ModelServerProcess, connect: Connect, refusal: Answer, expected: type[ModelError]
) -> None:
    model_server.script(refusal)
    with pytest.raises(expected):
        answer(connect())
    assert offered(model_server) == [True]


def test_with_tools_off_they_are_never_offered(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect(tools="off")
    assert not server.supports_tools
    assert answer(server)[0] == ToolsNotOffered()
    assert offered(model_server) == [False]


def test_with_tools_on_a_refusal_is_an_error(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(NO_TOOLS)
    server = connect(tools="on")
    with pytest.raises(Refused):
        answer(server)
    assert offered(model_server) == [True]
    assert server.supports_tools


def test_without_tools_given_nothing_is_said_about_them(model_server: ModelServerProcess, connect: Connect) -> None:
    pieces = list(connect(tools="off").stream(HELLO, stopped=lambda: False))
    assert ToolsNotOffered() not in pieces


def test_each_model_is_learned_for_itself(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(status=400, body=error_body("no tools")))
    server = connect()
    list(server.stream(HELLO, tools=TOOLS, model="small", stopped=lambda: False))
    assert server.supports_tools
    answer(server)
    assert offered(model_server) == [True, False, True]


@pytest.mark.parametrize(
    "message",
    [
        "Unrecognized request argument supplied: reasoning_effort",
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
        "Unknown parameter",
        "Function tools with reasoning_effort are not supported",
    ],
)
def test_an_effort_that_is_refused_is_left_out_but_the_tools_stay(
    model_server: ModelServerProcess, connect: Connect, message: str
) -> None:
    model_server.script(Answer(status=400, body=error_body(message)), Answer(text="Hello."), Answer(text="Again."))
    server = connect()
    assert answer(server, effort="high") == [Text("Hello."), Finished("stop")]
    assert answer(server, effort="high") == [Text("Again."), Finished("stop")]
    requests = model_server.requests()
    assert ["reasoning_effort" in request for request in requests] == [True, False, False]
    assert offered(model_server) == [True, True, True]
    assert server.supports_tools


def test_both_may_be_refused(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(has_tools=True, nth=1, answers=[NO_EFFORT]), NO_TOOLS)
    model_server.script(Answer(text="Hello."))
    assert answer(connect(), effort="high") == [ToolsNotOffered(), Text("Hello."), Finished("stop")]
    assert [sorted(request) for request in model_server.requests()] == [
        ["messages", "model", "reasoning_effort", "stream", "tools"],
        ["messages", "model", "stream", "tools"],
        ["messages", "model", "stream"],
    ]


def test_answers_at_once_all_learn_the_same(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(NO_TOOLS)
    server = connect()
    answers: list[list[Piece]] = []
    threads = [threading.Thread(target=lambda: answers.append(answer(server))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pieces[0] for pieces in answers] == [ToolsNotOffered()] * 16
    assert not server.supports_tools
