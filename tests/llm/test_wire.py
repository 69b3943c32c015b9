import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm import wire
from memory.llm.errors import CutOff, NotAModelServer
from memory.llm.wire import Wire


def read(*chunks: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The objects read from a body in these chunks, and whether it was complete."""
    line = Wire()
    objects = [value for chunk in chunks for value in line.feed(chunk)]
    if not line.done:
        objects += line.end()
    return objects, line.complete


def test_it_works() -> None:
    assert read(b'data: {"a": 1}\n\ndata: {"a": 2}\n\ndata: [DONE]\n\n') == ([{"a": 1}, {"a": 2}], True)


BODY = 'event: x\r\nid: 1\r\n: comment\r\ndata: {"a": "ü\u2028\x85跑"}\r\n\r\ndata:{"b":\r\ndata: 2}\r\n\r\n'.encode()


@given(cuts=st.lists(st.integers(1, len(BODY) - 1)), newline=st.sampled_from([b"\r\n", b"\n", b"\r"]))
def test_the_cuts_between_chunks_change_nothing(cuts: list[int], newline: bytes) -> None:
    body = BODY.replace(b"\r\n", newline)
    edges = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    chunks = [body[begin:end] for begin, end in itertools.pairwise(edges)]
    assert read(*chunks) == ([{"a": "ü\u2028\x85跑"}, {"b": 2}], False)


def test_a_last_event_without_its_blank_line_counts() -> None:
    assert read(b'data: {"a": 1}') == ([{"a": 1}], False)


def test_a_whole_document_is_complete() -> None:
    assert read(b'\xef\xbb\xbf {"a"', b": 1}\n") == ([{"a": 1}], True)


def test_bad_utf_8_is_read_with_replacements() -> None:
    assert read(b'data: {"a": "\xff"}\n\n') == ([{"a": "\ufffd"}], False)


def test_surrogates_and_nul_pass_untouched() -> None:
    assert read(b'data: {"a": "\\ud83d\\u0000"}\n\n') == ([{"a": "\ud83d\x00"}], False)


@pytest.mark.parametrize(
    "body",
    [b"<!DOCTYPE html><p>Hello", b"not json", b"data: {not json\n\n", b"data: [1]\n\n", b'"text"', b"d", b"data"],
)
def test_garbage_is_no_model_server(body: bytes) -> None:
    with pytest.raises(NotAModelServer):
        read(body)


def test_garbage_after_a_good_beginning_is_a_broken_answer() -> None:
    with pytest.raises(CutOff):
        read(b'data: {"a": 1}\n\ndata: {"a": \n\n')


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_nothing_at_all_is_a_broken_answer(body: bytes) -> None:
    with pytest.raises(CutOff):
        read(body)


def test_a_line_without_end_is_given_up() -> None:
    line = Wire()
    for _ in range(wire.LONGEST // 2**20):
        assert list(line.feed(b"x" * 2**20)) == []
    with pytest.raises(NotAModelServer):
        list(line.feed(b"x"))
