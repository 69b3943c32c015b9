"""Answers that go well, over HTTP."""

import json
import threading
from collections.abc import Callable

import pytest

from memory.llm.client import Finished, ModelServer, Piece, Reasoning, Text, ToolRequest
from tests.model_server.answers import Answer
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
HELLO = [{"role": "system", "content": "You are kind."}, {"role": "user", "content": "Hello, it is Alice."}]


def answer(server: ModelServer) -> list[Piece]:
    return list(server.stream(HELLO, stopped=lambda: False))


def text(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def reasoning(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Hello ", "Alice."]))
    assert answer(connect()) == [Text("Hello "), Text("Alice."), Finished("stop")]


def test_the_request_is_exactly_what_was_given(model_server: ModelServerProcess, connect: Connect) -> None:
    answer(connect())
    assert model_server.requests() == [{"model": "talker", "messages": HELLO, "stream": True}]


def test_a_request_with_everything(model_server: ModelServerProcess, connect: Connect) -> None:
    tool = {"type": "function", "function": {"name": "recall", "parameters": {}}}
    list(connect().stream(HELLO, tools=[tool], effort="high", model="other", stopped=lambda: False))
    assert model_server.requests() == [
        {"model": "other", "messages": HELLO, "stream": True, "tools": [tool], "reasoning_effort": "high"}
    ]


@pytest.mark.parametrize("end", ["", "/", "//", "/chat/completions", "/chat/completions/"])
def test_the_address_may_end_in_several_ways(model_server: ModelServerProcess, connect: Connect, end: str) -> None:
    assert answer(connect(url=f" {model_server.url}{end}"))[-1] == Finished("stop")


def test_without_a_key_a_placeholder_is_sent(model_server: ModelServerProcess, connect: Connect) -> None:
    answer(connect(key=""))
    assert model_server.calls()[0]["headers"]["authorization"] == "Bearer none"


@pytest.mark.parametrize("reasoning_as", ["reasoning_content", "reasoning", "think", "thinking"])
@pytest.mark.parametrize("whole", [False, True])
def test_reasoning_comes_apart(
    model_server: ModelServerProcess, connect: Connect, reasoning_as: str, whole: bool
) -> None:
    model_server.script(Answer(text="Yes, do.", reasoning="Is it wise? It is.", reasoning_as=reasoning_as, whole=whole))
    pieces = answer(connect())
    assert (reasoning(pieces), text(pieces), pieces[-1]) == ("Is it wise? It is.", "Yes, do.", Finished("stop"))


def test_reasoning_sent_under_both_names_counts_once(model_server: ModelServerProcess, connect: Connect) -> None:
    delta = {"reasoning": "hm", "reasoning_content": "hm", "content": "Yes."}
    model_server.script(Answer(lines=[json.dumps({"choices": [{"delta": delta}]})]))
    assert answer(connect()) == [Reasoning("hm"), Text("Yes."), Finished("stop")]


def test_content_in_typed_parts(model_server: ModelServerProcess, connect: Connect) -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Yes."},
        {"type": "image_url", "image_url": {}},
        None,
    ]
    model_server.script(Answer(lines=[json.dumps({"choices": [{"delta": {"content": parts}}]})]))
    assert answer(connect()) == [Reasoning("hm"), Text("Yes."), Finished("stop")]


def test_tool_calls_come_whole_and_before_the_end(model_server: ModelServerProcess, connect: Connect) -> None:
    calls = [
        {"id": "a", "name": "recall", "arguments": {"question": "the worktop, 预算?"}},
        {"id": "b", "name": "current_time"},
    ]
    model_server.script(Answer(text="Let me look.", tool_calls=calls, fragment=1))
    pieces = answer(connect())
    assert text(pieces) == "Let me look."
    assert pieces[-3:] == [
        ToolRequest(
            id="a",
            name="recall",
            arguments={"question": "the worktop, 预算?"},
            raw='{"question": "the worktop, 预算?"}',
        ),
        ToolRequest(id="b", name="current_time", arguments={}, raw=""),
        Finished("tool_calls"),
    ]


@pytest.mark.parametrize("finish_reason", ["stop", "tool_calls", "function_call", None])
def test_tool_calls_whatever_the_finish_reason(
    model_server: ModelServerProcess, connect: Connect, finish_reason: str | None
) -> None:
    model_server.script(
        Answer(tool_calls=[{"id": None, "name": "recall", "arguments": "{broken"}], finish_reason=finish_reason)
    )
    request, end = answer(connect())
    assert isinstance(request, ToolRequest)
    assert request.id
    assert (request.arguments, request.raw, end) == (None, "{broken", Finished("tool_calls"))


@pytest.mark.parametrize(
    "words",
    [
        '<tool_call>{"name": "recall", "arguments": {}}</tool_call>',
        'functions.recall({"question": "x"})',
        "[TOOL_CALLS]",
    ],
)
def test_text_that_looks_like_a_tool_call_is_text(
    model_server: ModelServerProcess, connect: Connect, words: str
) -> None:
    model_server.script(Answer(text=words))
    pieces = answer(connect())
    assert text(pieces) == words
    assert not any(isinstance(piece, ToolRequest) for piece in pieces)


def test_a_whole_answer_although_a_stream_was_asked_for(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(
        Answer(text="Hello.", tool_calls=[{"id": "a", "name": "recall", "arguments": "{}"}], whole=True)
    )
    assert answer(connect()) == [
        Text("Hello."),
        ToolRequest(id="a", name="recall", arguments={}, raw="{}"),
        Finished("tool_calls"),
    ]


def test_a_whole_message_after_its_deltas_is_not_said_twice(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(
        Answer(text="Hello.", lines=[json.dumps({"choices": [{"message": {"content": "Hello."}}], "usage": {}})])
    )
    assert text(answer(connect())) == "Hello."


def test_nulls_empty_deltas_comments_and_the_token_count_do_no_harm(
    model_server: ModelServerProcess, connect: Connect
) -> None:
    nulls = {"role": "assistant", "content": None, "tool_calls": None, "reasoning": None, "refusal": None}
    model_server.script(
        Answer(
            lines=[
                ": keep-alive",
                json.dumps({"choices": [{"delta": nulls, "finish_reason": None}], "usage": None}),
                json.dumps({"choices": [{"delta": {}, "finish_reason": ""}]}),
                json.dumps({"choices": [{"delta": {"content": "Yes."}}]}),
                json.dumps({"choices": [None]}),
                json.dumps({"choices": [{"delta": None}]}),
                json.dumps({"choices": [], "usage": {"total_tokens": 3}}),
                json.dumps({"usage": {"total_tokens": 3}}),
            ]
        )
    )
    assert answer(connect()) == [Text("Yes."), Finished("stop")]


def test_length_is_told_after_the_text(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Once upon"], finish_reason="length"))
    assert answer(connect()) == [Text("Once upon"), Finished("length")]


@pytest.mark.parametrize(("done", "finish_reason"), [(True, None), (False, "stop")])
def test_one_sign_of_the_end_is_enough(
    model_server: ModelServerProcess, connect: Connect, done: bool, finish_reason: str | None
) -> None:
    model_server.script(Answer(chunks=["Yes."], done=done, finish_reason=finish_reason))
    assert answer(connect()) == [Text("Yes."), Finished("stop")]


def test_a_break_after_the_finish_reason_is_no_loss(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["Yes."], cut_after=2))
    assert answer(connect()) == [Text("Yes."), Finished("stop")]


def test_a_server_silent_after_the_finish_reason_is_not_waited_for(
    model_server: ModelServerProcess, connect: Connect
) -> None:
    model_server.script(Answer(chunks=["Yes."], hang_after=2))
    assert answer(connect(between=0.3)) == [Text("Yes."), Finished("stop")]


def test_surrogates_and_nul_pass_untouched(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(chunks=["a\ud83d", "\udc00\x00b"]))
    assert text(answer(connect())) == "a\ud83d\udc00\x00b"


def test_a_lone_surrogate_in_a_request_is_replaced(model_server: ModelServerProcess, connect: Connect) -> None:
    message = {"role": "tool", "tool_call_id": "a", "content": "x\ud83dy 跑步 🙂"}
    list(connect().stream([message], stopped=lambda: False))
    assert model_server.requests()[0]["messages"] == [{**message, "content": "x\ufffdy 跑步 🙂"}]


def test_the_connection_serves_the_next_request(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect()
    for number in range(30):
        model_server.script(Answer(text=f"Answer {number}"))
        assert text(answer(server)) == f"Answer {number}"


def test_64_answers_at_once(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect()
    model_server.script(*[Answer(text="one two three", hang_after=1)] * 64)
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(text(answer(server)))) for _ in range(64)]
    for thread in threads:
        thread.start()
    assert model_server.wait_for(waiting=64)
    model_server.release()
    for thread in threads:
        thread.join()
    assert answers == ["one two three"] * 64
