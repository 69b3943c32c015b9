"""Dates that questions name, in English and Chinese, seen from Wednesday, 12 August 2026."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder.search.dates import Window, nearness, windows

TODAY = date(2026, 8, 12)


def named(question: str) -> list[str]:
    return [
        str(window.first) if window.first == window.last else f"{window.first}..{window.last}"
        for window in windows(question, TODAY)
    ]


def test_it_works():
    assert named("What did I paint on 14 August?") == ["2025-08-14"]
    assert named("我5月2号去了哪里？") == ["2026-05-02"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("on 2023-05-24", "2023-05-24"),
        ("on 24/5 or 2023/5/4", "2023-05-04"),
        ("on 24 May 2023", "2023-05-24"),
        ("on the 24th of May, 2023", "2023-05-24"),
        ("on May 24th, 2023", "2023-05-24"),
        ("on December 1,2023", "2023-12-01"),
        ("on Aug 15th", "2025-08-15"),
        ("on Sept. 3", "2025-09-03"),
        ("on the twelfth, August 12", "2026-08-12"),
        ("on 29 February", "2024-02-29"),
        ("in May 2023", "2023-05-01..2023-05-31"),
        ("in May", "2026-05-01..2026-05-31"),
        ("in September", "2025-09-01..2025-09-30"),
        ("last May", "2026-05-01..2026-05-31"),
        ("last August", "2025-08-01..2025-08-31"),
        ("this August", "2026-08-01..2026-08-31"),
        ("in 2023?", "2023-01-01..2023-12-31"),
        ("summer 2021", "2021-06-01..2021-08-31"),
        ("in the winter of 2022", "2022-12-01..2023-02-28"),
        ("last summer", "2025-06-01..2025-08-31"),
        ("last spring", "2026-03-01..2026-05-31"),
        ("today", "2026-08-12"),
        ("yesterday", "2026-08-11"),
        ("the day before yesterday", "2026-08-10"),
        ("last week", "2026-08-03..2026-08-09"),
        ("this week", "2026-08-10..2026-08-16"),
        ("last weekend", "2026-08-08..2026-08-09"),
        ("last month", "2026-07-01..2026-07-31"),
        ("last year", "2025-01-01..2025-12-31"),
        ("on Monday", "2026-08-10"),
        ("last Wednesday", "2026-08-05"),
        ("three days ago", "2026-08-09"),
        ("two weeks ago", "2026-07-26..2026-08-01"),
        ("a month ago", "2026-07-01..2026-07-31"),
        ("in the past few days", "2026-08-09..2026-08-12"),
        ("2023年5月24日", "2023-05-24"),
        ("二〇二三年五月二十四号", "2023-05-24"),
        ("去年五月", "2025-05-01..2025-05-31"),
        ("去年5月2日", "2025-05-02"),
        ("前年十二月", "2024-12-01..2024-12-31"),
        ("3月份", "2026-03-01..2026-03-31"),
        ("２０２３年", "2023-01-01..2023-12-31"),
        ("去年夏天", "2025-06-01..2025-08-31"),
        ("今天", "2026-08-12"),
        ("昨天", "2026-08-11"),
        ("前天", "2026-08-10"),
        ("大前天", "2026-08-09"),
        ("上周", "2026-08-03..2026-08-09"),
        ("上上周", "2026-07-27..2026-08-02"),
        ("上周三", "2026-08-05"),
        ("周一", "2026-08-10"),
        ("上个星期天", "2026-08-09"),
        ("上个月", "2026-07-01..2026-07-31"),
        ("三天前", "2026-08-09"),
        ("两周前", "2026-07-26..2026-08-01"),
        ("前几天", "2026-08-09..2026-08-12"),
        ("去年", "2025-01-01..2025-12-31"),
    ],
)
def test_a_date_is_read(question, expected):
    assert named(question) == [expected]


@pytest.mark.parametrize(
    "question",
    [
        "I may march on",
        "on 31 June",
        "on 2023-13-40",
        "for $2023",
        "call 5552023",
        "at 10.2023%",
        "第2天",
        "三周年",
        "十十月",
        "the last straw",
        "99999999 years ago",
        "",
    ],
)
def test_what_is_no_date_is_not_read(question):
    assert named(question) == []


def test_several_dates_are_windows_each():
    assert named("between 11 August 2023 and 15 August 2023") == ["2023-08-11", "2023-08-15"]


def test_beside_a_date_relative_words_are_that_days_own():
    assert named("What did Bob finish last Friday, as he said on 23 January 2022?") == ["2022-01-23"]


def test_nearness_fades_slowly_after_a_window_and_faster_before_it():
    day = windows("on 14 August 2025", TODAY)[0]
    month = windows("in May 2026", TODAY)[0]
    assert day.nearness(day.first) == 1
    assert day.nearness(day.first + timedelta(days=3)) == pytest.approx(0.368, abs=0.001)
    assert month.nearness(month.last + timedelta(days=18)) == pytest.approx(0.368, abs=0.001)
    assert day.nearness(day.first - timedelta(days=1)) < day.nearness(day.first + timedelta(days=1))
    assert day.nearness(day.first + timedelta(days=30)) == 0


def test_the_nearest_window_counts_and_without_one_nothing_is_near():
    first, second = Window(TODAY, TODAY, 3), Window(date(2020, 1, 1), date(2020, 1, 1), 3)
    assert nearness([first, second], date(2020, 1, 1)) == 1
    assert nearness([], TODAY) == 0


@given(
    st.text() | st.text(alphabet="0123456789 -/.年月日号上去前今天周一二三十〇个last may agotw"),
    st.dates(),
)
def test_any_text_on_any_day_is_read_without_an_error(text, today):
    assert all(window.first <= window.last for window in windows(text, today))
