from typing import Any

import pytest

from memory.llm.toolcalls import ToolCalls


def collected(*chunks: object) -> list[tuple[str, str, dict[str, Any] | None, str]]:
    calls = ToolCalls()
    for chunk in chunks:
        calls.feed(chunk)
    return [(call.id, call.name, call.arguments, call.raw) for call in calls.requests()]


def fragment(arguments: Any = None, **rest: Any) -> list[dict[str, Any]]:
    function = {"arguments": arguments, "name": rest.pop("name", None)}
    return [{**rest, "function": function}]


def test_it_works() -> None:
    assert collected(
        fragment("", index=0, id="a", name="recall"),
        fragment('{"question":', index=0),
        fragment(' "worktop"}', index=0),
    ) == [("a", "recall", {"question": "worktop"}, '{"question": "worktop"}')]


def test_several_calls_with_their_fragments_mixed() -> None:
    assert collected(
        fragment("{", index=0, id="a", name="recall"),
        fragment("{", index=1, id="b", name="read_slice"),
        fragment('"x": 1}', index=1),
        fragment("}", index=0),
    ) == [("a", "recall", {}, "{}"), ("b", "read_slice", {"x": 1}, '{"x": 1}')]


def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    names = [
        name
        for _, name, _, _ in collected(
            fragment("{}", index=0, id="a", name="recall"), fragment("{}", index=0, id="b", name="read_card")
        )
    ]
    assert names == ["recall", "read_card"]


def test_calls_without_numbers() -> None:
    assert collected(
        fragment("{}", id="a", name="recall"), fragment('{"x"', id="b", name="read_card"), fragment(": 1}")
    ) == [("a", "recall", {}, "{}"), ("b", "read_card", {"x": 1}, '{"x": 1}')]


def test_the_name_and_id_repeated_in_each_fragment_are_one_call() -> None:
    assert collected(
        fragment('{"x"', index=0, id="a", name="recall"), fragment(": 1}", index=0, id="a", name="recall")
    ) == [("a", "recall", {"x": 1}, '{"x": 1}')]


def test_missing_and_doubled_ids_are_made_good() -> None:
    calls = collected(
        fragment("{}", index=0, name="recall"),
        fragment("{}", index=1, id="", name="recall"),
        fragment("{}", index=2, id="a", name="recall"),
        fragment("{}", index=3, id="a", name="recall"),
    )
    ids = [call[0] for call in calls]
    assert all(ids)
    assert len(set(ids)) == 4
    assert ids[2] == "a"


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        ("  ", {}),
        ("null", {}),
        ('{"a": "\\ud83d"}', {"a": "\ud83d"}),
        ("{'a': 1}", None),
        ('{"a": 1', None),
        ("[1]", None),
        ('"text"', None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_a_dict_or_none_and_the_raw_text_is_kept(raw: str, arguments: dict[str, Any] | None) -> None:
    assert collected(fragment(raw, index=0, id="a", name="recall")) == [("a", "recall", arguments, raw)]


def test_arguments_that_come_as_an_object() -> None:
    assert collected(fragment({"q": "跑步"}, index=0, id="a", name="recall")) == [
        ("a", "recall", {"q": "跑步"}, '{"q": "跑步"}')
    ]


@pytest.mark.parametrize("garbage", [None, "x", 7, {}, [None], ["x"], [{}], [{"function": None}], [{"function": "x"}]])
def test_what_is_no_tool_call_is_passed_over(garbage: object) -> None:
    assert collected(garbage) == []
