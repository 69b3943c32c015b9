"""The object a model meant, whatever it wrote around it or did to its form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm.extract import readings
from memory.llm.lenient import Unreadable, parse

NAMES = ("focus", "summary", "tags")
TRIP = {"focus": "Trip", "tags": ["lisbon"]}
JSON = json.dumps(TRIP)

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*NAMES, "x"]) | st.text(), inner),
    max_leaves=12,
)


def first(text: str) -> object:
    return next(readings(text, NAMES), None)


def test_it_works() -> None:
    assert first(JSON) == TRIP


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{JSON}\n```",
        f"~~~\n{JSON}\n~~~",
        f"```json\n{JSON}",
        f"Here are the marks you asked for:\n\n```\n{JSON}\n```\n\nI hope this helps!",
        f"Sure! {JSON}",
        f"{JSON}\nLet me know if you {{need}} more.",
        f"\ufeff  {JSON}\n\n",
        f"<think>Maybe {{'focus': 'Work'}}? No.</think>\n{JSON}",
        f"The person wants a trip.</think>{JSON}",
        f"<Reasoning>\nlong\n</Reasoning>{JSON}",
        f"[THINK]hm[/THINK]{JSON}",
        '{"focus": "Trip", "tags": ["lisbon",],}',
        "{'focus': 'Trip', 'tags': ['lisbon']}",
        "{'focus': 'Trip', 'tags': ('lisbon',), 'summary': None}",
        "{focus: 'Trip', tags: [lisbon]}",
        "{“focus”: “Trip”, “tags”: [“lisbon”]}",
        '{"focus": "Trip"\n "tags": ["lisbon"]}',
        '{"focus": "Trip", // where to\n "tags": [ /* one */ "lisbon"]}',
        '{"Focus": "Trip", "TAGS": ["lisbon"]}',
        f'{{"answer": {JSON}}}',
        f"[{JSON}]",
        json.dumps(JSON),
        '{"focus": "Trip"}\n{"tags": ["lisbon"]}',
        '{"focus": "Trip", "tags": ["lisbon"], "summary": "We went to',
        '{"focus": "Trip", "tags": ["lisbon", "por',
        "focus: Trip\ntags:\n  - lisbon\n",
        "focus: Trip\ntags: [lisbon]",
        "---\nfocus: 'Trip'\ntags:\n- lisbon\n---",
        "```yaml\nfocus: Trip\ntags:\n  - lisbon\n```",
        "**Focus:** Trip\n**Tags:**\n- lisbon\n\nThat is all I found.",
        '{"type": "object", "properties": {"focus": {"type": "string"}}}\n' + JSON,
    ],
)
def test_the_object_is_found(text: str) -> None:
    found = first(text)
    assert isinstance(found, dict)
    assert {name: list(value) if name == "tags" else value for name, value in found.items() if value} == TRIP


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "I'm sorry, but I can't help with that.",
        "<think>The user wants",
        f"<think>I could say {JSON} or",
        "Focus: it is hard to say what this was about.",
        "{{{{{{{{",
        "[" * 100_000,
        '{"focus"' * 50_000,
        '"' * 200_000,
        "<!doctype html><title>502</title>",
    ],
)
def test_nothing_is_made_up(text: str) -> None:
    assert first(text) is None


def test_of_two_objects_the_later_is_likelier() -> None:
    assert list(readings('{"focus": "Draft"} then {"focus": "Trip"}', NAMES)) == [{"focus": "Trip"}, {"focus": "Draft"}]


def test_a_colon_in_a_line_of_yaml_belongs_to_the_text() -> None:
    text = "focus: Tire specs (cold): Front 36\nsummary: |\n  first line\n  second: line\ntags: null"
    assert first(text) == {
        "focus": "Tire specs (cold): Front 36", "summary": "first line second: line", "tags": None
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{"focus": "\ud83c\udf78 bar"}', "🍸 bar"),
        (r"{'focus': '\ud83c\udf78 bar',}", "🍸 bar"),
        (r"{'focus': 'half \ud83c',}", "half \ufffd"),
        (r'{"focus": "std::vector<int> v{1, 2}; \"x\\n\" }",}', r'std::vector<int> v{1, 2}; "x\n" }'),
        (r'{"focus": "C:\Users\d",}', r"C:\Users\d"),
        ('{"focus": "he said "hi" to me",}', 'he said "hi" to me'),
        ("{'focus': 'Alice's trip',}", "Alice's trip"),
        ('{"focus": "line one\nline two",}', "line one\nline two"),
    ],
)
def test_the_words_come_through(text: str, expected: str) -> None:
    assert first(text) == {"focus": expected}


def test_only_the_names_asked_for_are_read() -> None:
    assert first('{"focus": "Trip", "status": "active", "closed_by": "hack"}') == {"focus": "Trip"}


def test_a_bare_list_is_the_only_field_there_is() -> None:
    pairs = [{"from": "a", "to": "b"}]
    assert list(readings(json.dumps(pairs), ("merges",))) == [{"merges": pairs}]


@given(any_json, st.sampled_from(["", "Here: ", "```\n"]), st.sampled_from(["", "\n```", " Done."]))
def test_whatever_is_read_has_a_name_we_asked_for(value: object, before: str, after: str) -> None:
    for reading in readings(f"{before}{json.dumps(value)}{after}", NAMES):
        assert reading
        assert reading.keys() <= set(NAMES)


@given(st.text(alphabet="{}[]()\"'`:,\\ \nfocustags/*#-<>u0d8"))
def test_no_text_is_too_broken(text: str) -> None:
    list(readings(text, NAMES))


@given(any_json.filter(lambda value: isinstance(value, dict | list)))
def test_proper_json_reads_as_it_is(value: object) -> None:
    text = json.dumps(value, allow_nan=False, default=str) if _finite(value) else "[]"
    assert parse(text)[0] == json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def test_what_goes_too_deep_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="deep"):
        parse("[" * 50 + "]" * 50)


def _finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True
