"""Floor marks and floor tags: what code gives a slice that no model has described."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from memory.folder.marks import (
    LANGUAGES,
    cut,
    floor_focus,
    floor_summary,
    floor_tags,
    hashtags,
    is_floor_summary,
    named_strands,
    plain_line,
)
from memory.folder.slices import Slice
from memory.folder.turns import Entry

START = datetime(2026, 8, 10, 21, 30, 22, 811000, tzinfo=UTC)
FAMILY = "👨‍👩‍👧‍👦"


def alices_slice(*said: str, tags: tuple[str, ...] = (), timezone: str = "UTC") -> Slice:
    entries = tuple(
        Entry(turn_id=f"turn{number:02}", at=START + timedelta(minutes=number), role="user", content=text)
        for number, text in enumerate(said)
    )
    return Slice(
        slice_id="2026-08-10-2130", status="active", start=START, timezone=timezone, tags=tags, entries=entries
    )


def test_it_works():
    slice_ = alices_slice("\n  Training plan for the race\nmore", "and sleep?", tags=("running", "sleep"))
    assert floor_focus(slice_, language="en") == "Training plan for the race (running, sleep)"
    assert floor_summary(slice_, language="en") == "2 turns · running, sleep"
    assert floor_focus(slice_, language="zh-hans") == "Training plan for the race（running、sleep）"
    assert floor_summary(slice_, language="zh-hans") == "2 轮对话 · running、sleep"


def test_focus_shows_three_tags_at_most():
    focus = floor_focus(alices_slice("Hello", tags=("one", "two", "three", "four")), language="en")
    assert focus == "Hello (one, two, three)"


@pytest.mark.parametrize("text", ["2026-05-26", "yes", "---", "Plan: half-marathon (Split: core)"])
def test_focus_is_the_line_itself_whatever_it_looks_like(text):
    assert floor_focus(alices_slice(text), language="en") == text


@pytest.mark.parametrize(
    ("timezone", "language", "focus"),
    [
        ("UTC", "en", "Conversation of 10 August 2026"),
        ("Asia/Shanghai", "en", "Conversation of 11 August 2026"),
        ("Asia/Shanghai", "zh-hans", "2026年8月11日的对话"),
    ],
)
@pytest.mark.parametrize("said", [(), ("\n \u200b\n\t",)], ids=["nothing said", "blank"])
def test_focus_without_a_line_names_the_local_day(said, timezone, language, focus):
    assert floor_focus(alices_slice(*said, timezone=timezone), language=language) == focus


def test_focus_comes_from_the_person_not_from_the_agent():
    greeting = Entry(turn_id="turn00", at=START, role="agent", content="Welcome back")
    slice_ = Slice(slice_id="2026-08-10-2130", status="active", start=START, entries=(greeting,))
    assert floor_focus(slice_, language="en") == "Conversation of 10 August 2026"


def test_long_chinese_line_is_cut_at_60_characters():
    line = "今天去公园跑步" * 20
    assert floor_focus(alices_slice(line), language="zh-hans") == line[:60] + "…"


def test_long_english_line_is_cut_between_words():
    line = "I would like to plan the half marathon in Lisbon together with my sister this autumn"
    assert (
        floor_focus(alices_slice(line), language="en") == "I would like to plan the half marathon in Lisbon together…"
    )


def test_focus_is_cut_at_whole_graphemes():
    focus = floor_focus(alices_slice(FAMILY * 150), language="en")
    assert focus == FAMILY * 8 + "…"


@given(st.text(), st.lists(st.text(), max_size=25), st.sampled_from(LANGUAGES))
def test_floor_marks_are_single_lines_without_control_characters(text, tags, language):
    slice_ = alices_slice(text, tags=tuple(tags))
    for mark in (floor_focus(slice_, language=language), floor_summary(slice_, language=language)):
        assert mark
        assert mark == plain_line(mark)
        assert len(mark.splitlines()) == 1


@given(st.lists(st.text(min_size=1), max_size=25), st.integers(0, 120), st.sampled_from(LANGUAGES))
def test_floor_summary_is_known_and_at_most_100_characters(tags, count, language):
    summary = floor_summary(alices_slice(*["hello"] * count, tags=tuple(tags)), language=language)
    assert len(summary) <= 100
    assert is_floor_summary(summary)


def test_one_turn_is_singular_in_english():
    assert floor_summary(alices_slice("hello"), language="en") == "1 turn"
    assert floor_summary(alices_slice("hello"), language="zh-hans") == "1 轮对话"


@pytest.mark.parametrize(
    "summary",
    [
        "",
        "None",
        "12 turns of talk about running",
        "1 turns",
        "Alice took 12 turns · running",
        "12 turns, running",
        "012 turns",
        "共 12 轮对话",
        "12轮对话讨论了跑步计划",
        "Planned the half marathon · settled on Lisbon",
        "12 turns\n· running",
    ],
)
def test_what_a_model_writes_is_no_floor_summary(summary):
    assert not is_floor_summary(summary)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("shorter", 5, "shor…"),
        ("two words", 8, "two…"),
        ("今天去跑步", 4, "今天去…"),
        ("e\u0301" * 10, 8, "e\u0301" * 3 + "…"),
        (FAMILY * 3, 8, FAMILY + "…"),
        (FAMILY * 3, 7, "…"),
        ("🇵🇹🇩🇪🇫🇷", 5, "🇵🇹🇩🇪…"),
    ],
)
def test_cut(text, limit, expected):
    assert cut(text, limit) == expected


@given(st.text(st.sampled_from("ab 中é\u0301\u200d👨👩🏽🇵🇹한क्षि\ufe0f"), max_size=60), st.integers(1, 40))
def test_cut_keeps_whole_graphemes_within_the_limit(text, limit):
    shown = cut(text, limit)
    assert len(shown) <= limit
    if shown != text:
        kept = shown.removesuffix("…")
        boundaries = [""]
        for grapheme in iter_graphemes(text):
            boundaries.append(boundaries[-1] + grapheme)
        assert kept in {boundary.rstrip() for boundary in boundaries}


def test_a_line_of_a_megabyte_is_cut_like_any_other():
    assert floor_focus(alices_slice("é" * 1_000_000), language="en") == "é" * 60 + "…"


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#running today", ("running",)),
        ("today\n#Half-Marathon and #sleep_log", ("half-marathon", "sleep_log")),
        ("今天，#跑步 很好。#睡眠", ("跑步", "睡眠")),
        ("＃跑步# 完成", ("跑步",)),
        ("#हिन्दी", ("हिन्दी",)),
        ("#1st and #2026 and #2026-08-10", ("1st",)),
        ("#running #RUNNING #ｒunning", ("running",)),
        ("# Heading\n## Sub\n##sub\n#", ()),
        ("C# and issue#12x and (#aside) and &#x27;", ()),
        ("see https://example.org/a #real and https://example.org/#anchor", ("real",)),
        ("`#code` then #tag", ("tag",)),
        ("`code`#glued", ()),
        ("```css\n#main { }\n```\n#after", ("after",)),
        ("~~~\n#inside\n```\n#inside too\n~~~~\n#after", ("after",)),
        ("```\n#never closed", ()),
        ("- [x] done\n- [?] maybe\n[24:33.098 - 24:41.260] hello", ()),
        ("#" + "x" * 400, ()),
    ],
)
def test_hashtags(text, tags):
    assert hashtags(text) == tags


@pytest.mark.parametrize(
    ("text", "keys", "named"),
    [
        ("I went Running.", ["running"], ("running",)),
        ("I outran the running-shoes", ["ran", "running"], ("running",)),
        ("today I ran", ["ran"], ("ran",)),
        ("the half\n  marathon", ["half marathon"], ("half marathon",)),
        ("I wrote C++ and c", ["c++", "c"], ("c++", "c")),
        ("поход в ГОРЫ", ["горы", "гор"], ("горы",)),
        ("cafe\u0301 time", ["caf\u00e9", "cafe"], ("caf\u00e9",)),
        ("今天去跑步了", ["跑步", "步", "跑步机"], ("跑步",)),
        ("用iPhone拍照", ["iphone", "phone"], ("iphone",)),
        ("ＡＰＥＸ today", ["apex"], ("apex",)),
        ("오늘 달리기를 했다", ["달리기"], ("달리기",)),
        ("ไปวิ่งมาแล้ว", ["วิ่ง"], ("วิ่ง",)),
        ("```\nrunning\n```", ["running"], ()),
        ("https://running.example/", ["running"], ()),
        ("sleep, then running", ["running", "sleep", ""], ("sleep", "running")),
    ],
)
def test_strands_named_in_the_text(text, keys, named):
    assert named_strands(text, keys) == named


def test_floor_tags_are_hashtags_then_named_strands_at_most_20():
    assert floor_tags("sleep and #running", ["running", "sleep"]) == ("running", "sleep")
    keys = [f"word{number}" for number in range(50)]
    assert floor_tags(" ".join(keys), keys) == tuple(keys[:20])


@settings(max_examples=50)
@given(
    st.text(st.sampled_from("# `~\n[](:/wx1跑步।\u200dＡ＃，"), max_size=80), st.lists(st.text(max_size=4), max_size=5)
)
def test_floor_tags_of_any_text(text, keys):
    for tag in floor_tags(text, keys):
        assert tag in keys or any(character.isalpha() for character in tag)


def test_strands_are_named_among_thousands():
    words = [f"topic{number}" for number in range(2000)]
    chinese = [chr(0x4E00 + number) + "步" for number in range(2000)]
    text = "I spoke of topic7 and 且步 once. " + "The weather was fine. " * 50 + "天气很好" * 500
    assert named_strands(text, (*words, *chinese)) == ("topic7", "且步")
