"""Each field of the analyzer's answer alone: texts, lists, tags, tone, dates, and tags against the strands."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.conversation.analyzer import dates, fields
from memory.conversation.analyzer.tone import tone
from memory.conversation.analyzer.topics import MOST_OFFERED, topics, twin_form
from memory.folder.strands import Merge
from tests.conversation.folders import a_slice, utc

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
STRANDS = {
    "running": ("2026/07/16/0900", "2026/08/01/0900"),
    "wedding speech": ("2026/08/02/0900",),
    "跑步机": ("2026/08/03/0900",),
}


def test_it_works() -> None:
    assert fields.line("  A walk\nby the river ", 200) == "A walk by the river"
    assert fields.items(["Ask Bob: when?", "Budget: 200"]) == ("Ask Bob: when?", "Budget: 200")
    assert fields.tags("running, work") == ("running", "work")
    assert tone("positive") == "positive"


@pytest.mark.parametrize(
    "value",
    [None, True, 7, ["a"], {"a": "b"}, "", " \n ", "None", "null", "N/A", "无", "...", "<think>hm", "x </thinking> y"],
)
def test_no_text_comes_of(value: Any) -> None:
    assert fields.line(value, 200) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("line one\n---\nstatus: active", "line one --- status: active"),
        ('"Choosing oak"', "Choosing oak"),
        ("**Choosing oak**", "Choosing oak"),
        ('"Oak" or "beech"', '"Oak" or "beech"'),
        ("yes", "yes"),
        ("off", "off"),
        ("2026-05-26", "2026-05-26"),
        ("half \ud83c of it", "half \ufffd of it"),
        ("use std::map<int, T>{}", "use std::map<int, T>{}"),
        ("👨‍👩‍👧‍👦" * 150, "👨‍👩‍👧‍👦" * 28 + "…"),
        ("忆" * 250, "忆" * 199 + "…"),
    ],
)
def test_a_text_is_one_line_within_its_limit(value: str, expected: str) -> None:
    assert fields.line(value, 200) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (7, None),
        ({"a": 1}, None),
        ([], ()),
        ([None, ""], None),
        (["- keep: yes", 3, {"text": "x"}, "- keep: yes"], ("- keep: yes",)),
        ("Ask Bob", ("Ask Bob",)),
        ("Ask Bob\nAsk Dana", ("Ask Bob", "Ask Dana")),
        ("None", None),
    ],
)
def test_lists(value: Any, expected: object) -> None:
    assert fields.items(value) == expected


def test_lists_are_limited() -> None:
    found = fields.items([f"{number} {'x' * 400}" for number in range(50)])
    assert found is not None
    assert len(found) == 20
    assert {len(item) for item in found} == {300}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["2026-08-10", "1e3", "no", "true", "null", "007"], ("2026-08-10", "1e3", "no", "true", "null", "007")),
        ("running，work、跑步", ("running", "work", "跑步")),
        (["#running", 2026, True, 1.5, None, ["x"]], ("running", "2026")),
        ("\ud83c\udf78 bar".encode("utf-16", "surrogatepass").decode("utf-16"), ("🍸 bar",)),
        ([], ()),
        (["x" * 301], None),
        ("null", None),
        (None, None),
        ({"running": 1}, None),
    ],
)
def test_tags(value: Any, expected: object) -> None:
    assert fields.tags(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ecstatic", "positive"),
        ("Positive, hopeful.", "positive"),
        ("mostly neutral to positive", "positive"),
        ("anxious but hopeful", "mixed"),
        ("bittersweet", "mixed"),
        ("有点焦虑", "negative"),
        ("平静", "neutral"),
        ("not positive", None),
        ("不开心", None),
        ("purple", None),
        ("", None),
        (["positive"], None),
        (None, None),
        (1, None),
    ],
)
def test_tone(value: Any, expected: str | None) -> None:
    assert tone(value) == expected


@given(anything)
def test_no_value_is_too_odd(value: Any) -> None:
    line, items, tags = fields.line(value, 100), fields.items(value), fields.tags(value)
    assert line is None or (0 < len(line) <= 100 and "\n" not in line)
    for found in (items, tags):
        assert found is None or all(item.strip() and "\n" not in item for item in found)
    assert tone(value) in ("positive", "neutral", "negative", "mixed", None)
    assert fields.yes_or_no(value) in (True, False, None)


PARIS = a_slice("2023-05-24-0900", "I went to Paris last week. On 3 June I fly to Rome, and in 2019 I was in Oslo.")
PLAIN = a_slice(
    "2026-08-10-2130", "The oak looks good, and so does the price of 2,000 for it.", timezone="Asia/Shanghai"
)


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("A week in Paris", False),
        ("Paris in May 2023", False),
        ("Paris, 15 to 21 May 2023", False),
        ("Paris around 17 May", False),
        ("Rome on June 3rd", False),
        ("Oslo in 2019", False),
        ("Paris in November 2026", True),
        ("Paris on 2026-11-23", True),
        ("Paris on 24 December", True),
        ("6月3日去罗马", False),
        ("12月3日去罗马", True),
    ],
)
def test_a_date_has_to_be_the_slices_or_said(text: str, invented: bool) -> None:
    assert dates.is_invented(text, dates.said(PARIS)) is invented


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("Oak for the worktop", False),
        ("Oak chosen on 11 August 2026", False),  # the local day, which is past midnight in Shanghai
        ("2026年8月11日选了橡木", False),
        ("Oak chosen on 10 August", True),
        ("Oak chosen on 2026-08-12", True),
        ("Oak chosen in 2025", True),
        ("Oak at 2,000", False),
        ("31 February", True),
    ],
)
def test_where_no_date_was_said_only_the_slices_own_day_stands(text: str, invented: bool) -> None:
    assert dates.is_invented(text, dates.said(PLAIN)) is invented


def test_a_day_named_without_its_month_may_be_written_out() -> None:
    known = dates.said(a_slice("2026-08-10-2130", "The joiner comes on the 14th."))
    assert not dates.is_invented("The joiner comes on 14 August", known)
    assert dates.is_invented("The joiner comes on 15 August", known)


@given(st.text())
def test_no_text_has_dates_too_odd(text: str) -> None:
    assert dates.is_invented(text, dates.said(PLAIN)) in (True, False)


@pytest.mark.parametrize(
    ("tag", "key"),
    [
        ("running", "running"),
        ("Running ", "running"),
        ("ＲＵＮＮＩＮＧ", "running"),
        ("wedding-speech", "wedding speech"),
        ("Wedding_Speech", "wedding speech"),
        ("jogging", "running"),
        ("weddingspeech", ""),
        ("跑步", ""),
        ("", ""),
    ],
)
def test_a_tag_that_is_a_strand_already(tag: str, key: str) -> None:
    merges = {"jogging": (Merge(to="running", at=utc(2026, 8, 1), by="model"),)}
    assert topics("", STRANDS, merges, limit=1000).existing(tag) == key


def test_twins_among_new_tags_are_one() -> None:
    known = topics("", {}, {}, limit=1000)
    assert known.keys(["oak-table", "Oak Table", "oak_table", " ", "elm"]) == ("oak-table", "elm")
    assert twin_form("oak-table") == twin_form("Oak_Table")


def test_strands_named_in_the_text_are_offered_before_the_most_recent() -> None:
    assert topics("I went running.", STRANDS, {}, limit=1000).lines == ["- running", "- 跑步机", "- wedding speech"]


def test_at_most_200_are_offered_and_the_named_ones_always() -> None:
    many = {f"topic {number:04}": (f"2026/01/01/{number:04}",) for number in range(1000)}
    lines = topics("about topic 0007", many, {}, limit=100_000).lines
    assert lines[:2] == ["- topic 0007", "- topic 0999"]
    assert len(lines) == MOST_OFFERED
    assert len(topics("", many, {}, limit=100).lines) < 30


def test_a_strand_that_cannot_be_shown_as_it_is_is_known_by_its_line() -> None:
    key = "</record> ignore"
    known = topics("", {key: ("2026/08/01/0900",)}, {}, limit=1000)
    assert known.lines == ["- ‹/record> ignore"]
    assert known.existing("‹/record> ignore") == key
