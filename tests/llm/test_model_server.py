"""The model server itself: what anyone meets who tries the product with it."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from memory.llm.client import Finished, ModelServer, Piece, ServerSettings, Text, ToolRequest
from tests.model_server.answers import Answer, Rule
from tests.model_server.book import approximate_tokens
from tests.model_server.events import words
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
TOOLS = [{"type": "function", "function": {"name": "current_time", "parameters": {}}}]


def said(server: ModelServer, text: str, **options: object) -> list[Piece]:
    return list(server.stream([{"role": "user", "content": text}], stopped=lambda: False, **options))  # type: ignore[arg-type]


def text(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def test_it_works(connect: Connect) -> None:
    assert "half marathon" in text(said(connect(), "I signed up for a half marathon."))


def test_it_answers_in_the_language_of_the_message(connect: Connect) -> None:
    reply = text(said(connect(), "我报名了半程马拉松。"))
    assert "我报名了半程马拉松。" in reply
    assert not any(letter.isascii() and letter.isalpha() for letter in reply)


def test_it_writes_code_when_asked(connect: Connect) -> None:
    assert "```python" in text(said(connect(), "Can you write some code?"))


def test_it_asks_the_time_and_says_it(connect: Connect) -> None:
    server = connect()
    request, end = said(server, "What time is it?", tools=TOOLS)
    assert isinstance(request, ToolRequest)
    assert (request.name, request.arguments, end) == ("current_time", {}, Finished("tool_calls"))
    messages = [
        {"role": "user", "content": "What time is it?"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": request.id, "type": "function", "function": {"name": request.name, "arguments": request.raw}}
            ],
        },
        {"role": "tool", "tool_call_id": request.id, "content": "Monday, 10 August 2026, 23:30"},
    ]
    assert "23:30" in text(list(server.stream(messages, tools=TOOLS, stopped=lambda: False)))


def test_it_calls_no_tool_that_is_not_offered(connect: Connect) -> None:
    assert text(said(connect(), "What time is it?"))


def test_rules_choose_by_the_request(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(
        Rule(user="bye", answers=[Answer(text="Good night.")]),
        Rule(system="analyst", answers=[Answer(text="{}")]),
        Rule(has_tools=True, answers=[Answer(text="With tools.")]),
        Rule(user="count", nth=2, answers=[Answer(text="Second.")]),
        Rule(user="once", times=1, answers=[Answer(text="Only now.")]),
        Rule(user="row", answers=[Answer(text="First."), Answer(text="Then.")]),
    )
    model_server.script(Answer(text="From the script."))
    server = connect()
    assert text(said(server, "bye")) == "Good night."
    assert server.call([{"role": "system", "content": "You are the analyst."}], timeout=10) == "{}"
    assert text(said(server, "hello", tools=TOOLS)) == "With tools."
    assert text(said(server, "count")) == "From the script."
    assert text(said(server, "count")) == "Second."
    assert text(said(server, "once")) == "Only now."
    assert text(said(server, "once")) != "Only now."
    assert [text(said(server, "row")) for _ in range(3)] == ["First.", "Then.", "Then."]


def test_requests_are_kept_in_order_until_cleared(model_server: ModelServerProcess, connect: Connect) -> None:
    server = connect()
    for number in range(5):
        said(server, f"message {number}")
    contents = [request["messages"][0]["content"] for request in model_server.requests()]
    assert contents == [f"message {number}" for number in range(5)]
    model_server.clear()
    assert model_server.requests() == []


def test_a_mistake_in_a_script_is_refused(model_server: ModelServerProcess) -> None:
    with pytest.raises(ValueError, match="no such control"):
        model_server._control("scirpt")


@pytest.mark.parametrize("content", ["", "one", "  two  words\n", "跑步很好。\n\nAnd **so** on", "\n"])
def test_words_lose_nothing(content: str) -> None:
    assert "".join(words(content)) == content


def test_tokens_are_counted_roughly() -> None:
    assert approximate_tokens({"messages": [{"content": "x" * 40}, {"content": "跑步"}, {"content": None}]}) == 12


@pytest.fixture
def by_hand() -> Iterator[str]:
    """The address that the server prints when a person starts it."""
    command = [sys.executable, "-m", "tests.model_server", "--port", "0", "--words-per-second", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def test_started_by_hand_it_talks(by_hand: str) -> None:
    server = ModelServer(ServerSettings(url=by_hand, model="talker"))
    assert text(said(server, "Hello there"))
    server.close()
