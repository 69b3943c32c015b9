"""Answers that go wrong, over HTTP: each trouble is one of the few errors, after the text that came."""

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from memory.llm import errors
from memory.llm.client import ModelServer, Piece, Reasoning, Text
from memory.llm.errors import ModelError
from tests.llm.conftest import KEY
from tests.model_server.answers import Answer, error_body
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
HELLO = [{"role": "user", "content": "Hello, it is Alice, with a secret."}]
HTML = "<!DOCTYPE html><html><h1>502 Bad Gateway</h1></html>"


def failure(server: ModelServer) -> tuple[str, ModelError]:
    """The text that came, and what went wrong then."""
    pieces: list[Piece] = []
    try:
        for piece in server.stream(HELLO, stopped=lambda: False):
            pieces.append(piece)
    except ModelError as error:
        return "".join(piece.text for piece in pieces if isinstance(piece, Text | Reasoning)), error
    raise AssertionError(f"nothing went wrong: {pieces}")


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(status=429, headers={"Retry-After": "7"}, body=error_body("slow down")))
    text, error = failure(connect())
    assert isinstance(error, errors.RateLimited)
    assert (text, error.code, error.passing, error.retry_after) == ("", "rate_limited", True, 7.0)


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        (Answer(status=401, body=error_body("Incorrect API key")), "", errors.BadKey),
        (Answer(status=403, body=HTML), "", errors.BadKey),
        (Answer(status=404, body=error_body("The model `talker` does not exist")), "", errors.NoSuchModel),
        (Answer(status=404, body=HTML), "", errors.NotAModelServer),
        (Answer(status=400, body=error_body("bad", code="context_length_exceeded")), "", errors.ContextOverflow),
        (Answer(status=400, body=error_body("bad messages")), "", errors.Refused),
        (Answer(status=413, body=HTML), "", errors.ContextOverflow),
        (Answer(status=500, body=error_body("boom")), "", errors.ServerFailed),
        (Answer(status=502, body=HTML), "", errors.ServerFailed),
        (Answer(status=302, body="", headers={"Location": "http://127.0.0.1:9/"}), "", errors.NotAModelServer),
        (Answer(body=HTML), "", errors.NotAModelServer),
        (Answer(body="Hello, I am a web page."), "", errors.NotAModelServer),
        (Answer(body=""), "", errors.CutOff),
        (Answer(body={"hello": "world"}), "", errors.NotAModelServer),
        (Answer(body=["hello"]), "", errors.NotAModelServer),
        (Answer(body=error_body("boom")), "", errors.ServerFailed),
        (Answer(body=HTML, headers={"Content-Encoding": "gzip"}), "", errors.NotAModelServer),
        (Answer(chunks=["Hel", "lo"], lines=["{not json"]), "Hello", errors.CutOff),
        (Answer(chunks=["Hel", "lo"], lines=[json.dumps(error_body("boom"))]), "Hello", errors.ServerFailed),
        (
            Answer(chunks=["Hello"], lines=[json.dumps({"error": {"message": "slow", "code": 429}})]),
            "Hello",
            errors.RateLimited,
        ),
        (Answer(choices=False), "", errors.EmptyAnswer),
        (Answer(choices=False, whole=True), "", errors.EmptyAnswer),
        (Answer(text=""), "", errors.EmptyAnswer),
        (Answer(text="", whole=True), "", errors.EmptyAnswer),
        (Answer(chunks=[" ", "\n"]), " \n", errors.EmptyAnswer),
        (Answer(reasoning="hm"), "hm", errors.EmptyAnswer),
        (Answer(chunks=["<think>The user wants"], finish_reason="length"), "The user wants", errors.EmptyAnswer),
        (Answer(text="I can", finish_reason="content_filter"), "I can", errors.Filtered),
        (Answer(text="", finish_reason="content_filter", whole=True), "", errors.Filtered),
        (Answer(chunks=["Hel", "lo"], cut_after=2), "Hello", errors.CutOff),
        (Answer(chunks=["Hel", "lo"], cut_after=0), "", errors.CutOff),
        (Answer(chunks=["Hel", "lo"], finish_reason=None, done=False), "Hello", errors.CutOff),
        (Answer(chunks=["Hello <", "thi"], cut_after=2), "Hello <thi", errors.CutOff),
        (Answer(chunks=["<thi"], cut_after=1), "<thi", errors.CutOff),
        (Answer(text="Hello", whole=True, cut_after=0), "", errors.CutOff),
        (Answer(tool_calls=[{"name": "recall", "arguments": {"a": 1}}], cut_after=2), "", errors.CutOff),
    ],
)
def test_what_went_wrong(
    model_server: ModelServerProcess, connect: Connect, answer: Answer, text: str, expected: type[ModelError]
) -> None:
    model_server.script(answer)
    came, error = failure(connect())
    assert (came, type(error)) == (text, expected)
    assert len(model_server.requests()) == 1


def test_a_request_larger_than_the_context(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.context(5)
    assert isinstance(failure(connect())[1], errors.ContextOverflow)


def test_nobody_listens(connect: Connect) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        _, error = failure(connect(url=f"http://127.0.0.1:{bound.getsockname()[1]}/v1"))
    assert isinstance(error, errors.Unreachable)


def test_an_unknown_host(connect: Connect) -> None:
    assert isinstance(failure(connect(url="http://model.invalid/v1", first=5.0))[1], errors.Unreachable)


@contextlib.contextmanager
def server_that_sends(reply: bytes) -> Iterator[str]:
    """The host and port of a server that sends these bytes to whoever speaks first, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_tls_to_a_server_without(connect: Connect) -> None:
    with server_that_sends(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        _, error = failure(connect(url=f"https://{address}/v1"))
    assert (type(error), "SSL" in error.detail) == (errors.Unreachable, True)


def test_a_server_that_closes_without_an_answer(connect: Connect) -> None:
    with server_that_sends(b"") as address:
        assert isinstance(failure(connect(url=f"http://{address}/v1"))[1], errors.Unreachable)


def test_a_server_that_does_not_speak_http(connect: Connect) -> None:
    with server_that_sends(b"220 mail.example ESMTP\r\n\r\n") as address:
        assert isinstance(failure(connect(url=f"http://{address}/v1"))[1], errors.NotAModelServer)


@pytest.mark.parametrize("url", ["127.0.0.1:1/v1", "ftp://127.0.0.1/v1", "http://[::1/v1", "", "http://"])
def test_an_address_that_is_none(connect: Connect, url: str) -> None:
    assert isinstance(failure(connect(url=url))[1], errors.NotAModelServer)


@pytest.fixture
def full_backlog() -> Iterator[int]:
    """A port where connecting takes for ever: its queue of connections is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]
        for client in waiting:
            client.close()


def test_connecting_takes_too_long(connect: Connect, full_backlog: int) -> None:
    _, error = failure(connect(url=f"http://127.0.0.1:{full_backlog}/v1", connect=0.2))
    assert (type(error), error.detail) == (errors.Unreachable, "connecting took too long")


@pytest.mark.parametrize("hang_after", [-1, 0])
def test_silence_before_the_first_chunk(model_server: ModelServerProcess, connect: Connect, hang_after: int) -> None:
    model_server.script(Answer(chunks=["Hello"], hang_after=hang_after))
    server = connect(first=1.0)
    server.ping()  # connected, so that the second is spent on the silence
    text, error = failure(server)
    assert (text, type(error)) == ("", errors.TimedOut)
    assert model_server.wait_for(hung_up=1)


def test_naming_the_role_is_not_yet_an_answer(model_server: ModelServerProcess, connect: Connect) -> None:
    role = json.dumps({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    model_server.script(Answer(lines=[role], finish_reason=None, hang_after=1))
    assert isinstance(failure(connect(first=0.3))[1], errors.TimedOut)


def test_between_counts_from_the_first_thing_the_model_produced(
    model_server: ModelServerProcess, connect: Connect
) -> None:
    role = json.dumps({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    model_server.script(Answer(lines=[role, role], finish_reason="length", between=0.1))
    assert isinstance(failure(connect(between=0.01))[1], errors.EmptyAnswer)


def test_silence_between_two_chunks(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Hello", " Alice"], hang_after=1))
    text, error = failure(connect(between=0.2))
    assert (text, type(error)) == ("Hello", errors.TimedOut)
    assert model_server.wait_for(hung_up=1)


def test_an_answer_without_end(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text="on and " * 1000, words_per_second=100))
    server = connect(whole=1.0)
    server.ping()
    assert isinstance(failure(server)[1], errors.TimedOut)
    assert model_server.wait_for(hung_up=1)


def test_neither_key_nor_conversation_is_logged(
    model_server: ModelServerProcess, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model_server.script(Answer(status=401, body=error_body(f"Incorrect API key: {KEY}")))
    _, error = failure(connect())
    logging.getLogger("test").error("failed", exc_info=error)
    model_server.script(Answer(status=500, body=error_body("cannot answer: Hello, it is Alice, with a secret.")))
    _, error = failure(connect())
    logging.getLogger("test").error("failed", exc_info=error)
    assert "failed" in caplog.text
    assert KEY not in caplog.text
    assert "secret" not in caplog.text
    assert KEY not in repr(connect().settings)


def test_the_key_is_not_in_the_servers_words(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(status=401, body=error_body(f"Incorrect API key: {KEY}")))
    assert KEY not in failure(connect())[1].detail
    model_server.script(Answer(status=400, body=error_body("x" * 190 + KEY)))
    assert KEY[:4] not in failure(connect())[1].detail
    model_server.script(Answer(body="x" * 190 + KEY))
    assert KEY[:4] not in failure(connect())[1].detail


@pytest.mark.parametrize("key", ["ключ", "sk-1\nX-Header: 1", "\ud83d"])
def test_a_key_that_cannot_be_sent(model_server: ModelServerProcess, connect: Connect, key: str) -> None:
    assert isinstance(failure(connect(key=key))[1], errors.BadKey)
    with pytest.raises(errors.BadKey):
        connect(key=key).ping()
    assert model_server.calls() == []
