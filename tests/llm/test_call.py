"""Plain calls, and the look whether the server is there."""

import socket
from collections.abc import Callable

import pytest

from memory.llm import errors
from memory.llm.client import ModelServer
from memory.llm.errors import ModelError
from tests.model_server.answers import Answer, Rule, error_body
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
ASK = [{"role": "user", "content": "What was it about?"}]


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text='{"focus": "Trip"}'))
    assert connect().call(ASK, timeout=10) == '{"focus": "Trip"}'
    assert model_server.requests() == [{"model": "talker", "messages": ASK}]


@pytest.mark.parametrize("reasoning_as", ["reasoning_content", "think"])
def test_reasoning_is_left_out(model_server: ModelServerProcess, connect: Connect, reasoning_as: str) -> None:
    model_server.script(Answer(text="Trip", reasoning="long", reasoning_as=reasoning_as))
    assert connect().call(ASK, timeout=10) == "Trip"


def test_another_model(model_server: ModelServerProcess, connect: Connect) -> None:
    connect().call(ASK, timeout=10, model="analyst")
    assert model_server.requests()[0]["model"] == "analyst"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(text=""), errors.EmptyAnswer),
        (Answer(text="<think>The user wants", finish_reason="length"), errors.EmptyAnswer),
        (Answer(tool_calls=[{"name": "recall"}]), errors.EmptyAnswer),
        (Answer(choices=False), errors.EmptyAnswer),
        (Answer(text="I can", finish_reason="content_filter"), errors.Filtered),
        (Answer(status=429, body=error_body("slow")), errors.RateLimited),
        (Answer(status=503, body="<html>"), errors.ServerFailed),
        (Answer(body="<html>"), errors.NotAModelServer),
        (Answer(text="Trip", cut_after=0), errors.CutOff),
    ],
)
def test_the_same_errors(
    model_server: ModelServerProcess, connect: Connect, answer: Answer, expected: type[ModelError]
) -> None:
    model_server.script(answer)
    with pytest.raises(expected):
        connect().call(ASK, timeout=10)


@pytest.mark.parametrize("hang_after", [-1, 0])
def test_its_own_timeout(model_server: ModelServerProcess, connect: Connect, hang_after: int) -> None:
    model_server.script(Answer(text="Trip", hang_after=hang_after))
    server = connect()
    server.ping()
    with pytest.raises(errors.TimedOut):
        server.call(ASK, timeout=1.0)
    assert model_server.wait_for(hung_up=1)


def test_ping_names_the_models(model_server: ModelServerProcess, connect: Connect) -> None:
    assert connect().ping() == ("talker",)
    assert model_server.requests() == []


@pytest.mark.parametrize("body", ["<html>Not Found</html>", error_body("no such path"), {"hello": "world"}])
def test_ping_without_a_list_of_models_asks_for_a_word(
    model_server: ModelServerProcess, connect: Connect, body: object
) -> None:
    model_server.rules(Rule(path="/models", answers=[Answer(status=404, body=body)]))
    assert connect().ping() == ()
    assert len(model_server.requests()) == 1


def test_ping_finds_another_service_at_the_address(model_server: ModelServerProcess, connect: Connect) -> None:
    with pytest.raises(errors.NotAModelServer):
        connect(url=model_server.url + "/elsewhere").ping()
    with pytest.raises(errors.NotAModelServer):
        connect(url=model_server.url.removesuffix("/v1")).ping()


def test_ping_with_a_bad_key(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(path="/models", answers=[Answer(status=401, body=error_body("no"))]))
    with pytest.raises(errors.BadKey):
        connect().ping()


def test_ping_times_out(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(path="/models", answers=[Answer(hang_after=-1)]))
    with pytest.raises(errors.TimedOut):
        connect().ping(timeout=0.2)


def test_ping_where_nobody_listens(connect: Connect) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(errors.Unreachable):
            connect(url=f"http://127.0.0.1:{bound.getsockname()[1]}/v1").ping()


def test_after_close_it_can_be_used_again(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect()
    assert server.ping()
    server.close()
    assert server.ping()
