import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm.pieces import Reasoning
from memory.llm.reasoning import ThinkSplitter


def split(*chunks: str) -> tuple[str, str]:
    """The reasoning and the text of a content that came in these chunks."""
    splitter = ThinkSplitter()
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.end()
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
    return reasoning, "".join(piece.text for piece in pieces if not isinstance(piece, Reasoning))


def test_it_works() -> None:
    assert split("<think>hm</think>Yes.") == ("hm", "Yes.")


@pytest.mark.parametrize(
    ("content", "reasoning", "text"),
    [
        ("Yes.", "", "Yes."),
        ("  \nYes.", "", "  \nYes."),
        ("", "", ""),
        ("  ", "", "  "),
        ("<thinking>hm</thinking>\n\nYes.", "hm", "Yes."),
        ("\n<think>\nhm\n</think>\n\n  Yes.\n", "\nhm\n", "Yes.\n"),
        ("<Think>hm</THINK>Yes.", "hm", "Yes."),
        ("<think>one</think>\n<think>two</think>Yes.", "onetwo", "Yes."),
        ("<think>hm</think>\n\n", "hm", ""),
        ("<think>The user wants", "The user wants", ""),
        ("<think>a </thinking> b</think>Yes.", "a </thinking> b", "Yes."),
        ("<think>a < b </th", "a < b </th", ""),
        ("<thi", "", "<thi"),
        ("<thinner>", "", "<thinner>"),
        ("Use <think> for that.</think>", "", "Use <think> for that.</think>"),
        ("`<think>`", "", "`<think>`"),
        ("```\n<think>x</think>\n```", "", "```\n<think>x</think>\n```"),
        ("<think>a</think>Then <think>b</think>", "a", "Then <think>b</think>"),
        ("<think>\ud83d</think>\x00\udc00", "\ud83d", "\x00\udc00"),
    ],
)
def test_what_is_reasoning_and_what_is_text(content: str, reasoning: str, text: str) -> None:
    assert split(content) == (reasoning, text)
    assert split(*content) == (reasoning, text)


@given(
    content=st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "<", "a", " ", "\n"])),
    cuts=st.lists(st.integers(0, 60)),
)
def test_the_cuts_between_chunks_change_nothing(content: list[str], cuts: list[int]) -> None:
    whole = "".join(content)
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    chunks = [whole[begin:end] for begin, end in itertools.pairwise(edges)]
    assert split(*chunks) == split(whole)


def test_text_is_not_held_back() -> None:
    splitter = ThinkSplitter()
    assert [piece.text for piece in splitter.feed("He")] == ["He"]
    assert [piece.text for piece in splitter.feed("llo <think")] == ["llo <think"]


def test_reasoning_is_not_held_back() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("<think>first") == [Reasoning("first")]
    assert splitter.feed(" then </") == [Reasoning(" then ")]
