"""An answer that nobody wants any longer ends at once, here and at the server."""

import threading
from collections.abc import Callable

import pytest

from memory.llm.client import ModelServer, Piece, Text
from tests.model_server.answers import Answer
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
HELLO = [{"role": "user", "content": "Hello, it is Alice."}]


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Hello", " Alice"], hang_after=1))
    answer = connect().stream(HELLO, stopped=lambda: bool(model_server.calls()) and model_server.wait_for(waiting=1))
    assert list(answer) == [Text("Hello")]
    assert model_server.wait_for(hung_up=1)


@pytest.mark.parametrize("hang_after", [-1, 0, 1])
def test_stopped_while_the_model_is_silent(model_server: ModelServerProcess, connect: Connect, hang_after: int) -> None:
    """Before the headers, before the first chunk, between two chunks."""
    model_server.script(Answer(chunks=["Hello", " Alice"], hang_after=hang_after))
    stop = threading.Event()
    pieces: list[Piece] = []
    reader = threading.Thread(target=lambda: pieces.extend(connect().stream(HELLO, stopped=stop.is_set)))
    reader.start()
    assert model_server.wait_for(waiting=1)
    stop.set()
    reader.join(timeout=10)
    assert not reader.is_alive()
    assert pieces == [Text("Hello")] * hang_after if hang_after > 0 else pieces == []
    assert model_server.wait_for(hung_up=1)


def test_stopped_in_the_flow_of_words(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text="on and " * 10_000, words_per_second=1000))
    came: list[Piece] = []
    for piece in connect().stream(HELLO, stopped=lambda: bool(came)):
        came.append(piece)
    assert 0 < len(came) < 10_000
    assert model_server.wait_for(hung_up=1)


def test_stopped_before_it_began_asks_nothing(model_server: ModelServerProcess, connect: Connect) -> None:
    assert list(connect().stream(HELLO, stopped=lambda: True)) == []
    assert model_server.calls() == []


def test_not_iterated_asks_nothing(model_server: ModelServerProcess, connect: Connect) -> None:
    connect().stream(HELLO, stopped=lambda: False).close()
    assert model_server.calls() == []


def test_closing_the_iterator(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Hello", " Alice"], hang_after=1))
    answer = connect().stream(HELLO, stopped=lambda: False)
    assert next(answer) == Text("Hello")
    answer.close()
    assert model_server.wait_for(hung_up=1)


def test_a_trouble_of_the_reader_closes_too(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Hello", " Alice"], hang_after=1))

    def broken() -> bool:
        if model_server.calls() and model_server.wait_for(waiting=1):
            raise OSError("disk full")
        return False

    answer = connect().stream(HELLO, stopped=broken)
    with pytest.raises(OSError, match="disk full"):
        list(answer)
    assert model_server.wait_for(hung_up=1)


def test_a_stopped_answer_leaves_the_others_alone(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect()
    model_server.script(*[Answer(chunks=["Hello", " Alice"], hang_after=1)] * 2)
    first = server.stream(HELLO, stopped=lambda: False)
    second = server.stream(HELLO, stopped=lambda: False)
    assert [next(first), next(second)] == [Text("Hello")] * 2
    first.close()
    assert model_server.wait_for(hung_up=1)
    model_server.release()
    assert next(second) == Text(" Alice")


def test_stopped_answers_leave_no_thread_behind(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect()
    list(server.stream(HELLO, stopped=lambda: False))
    before = threading.active_count()
    model_server.script(*[Answer(chunks=["Hello", " Alice"], hang_after=1)] * 20)
    answers = [server.stream(HELLO, stopped=lambda: False) for _ in range(20)]
    for answer in answers:
        next(answer)
        answer.close()
    assert model_server.wait_for(hung_up=20)
    assert threading.active_count() == before
