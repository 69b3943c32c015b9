"""Dates that nobody said have no place in a mark.

A model that does the sums wrong, or does them from its own day, dates a memory by a day of its own invention. So each
absolute date in what it writes has to be one of these:

- a day of the slice itself, by the slice's own zone;
- a day, or a year, that stands in the conversation;
- when the conversation speaks of days by their distance (`yesterday`, `next Friday`, `上周`), one that is at most 40
  days away; a year next to the slice's likewise.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from memory.folder.clock import local_day
from memory.folder.slices import Slice

RECKONED = timedelta(days=40)
_LONGEST = 1_000_000  # characters of a conversation that are looked through; a date after them counts as not said

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = re.compile(r"(?<!\d)(?<!\d[.,])(?:19|20)\d\d(?!\d|[.,]\d)")
_NUMBERS = re.compile(r"(?<!\d)(?:19|20)\d\d[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?(?!\d)", re.IGNORECASE)
_CHINESE = re.compile(r"(?<!\d)(\d{1,2})\s*月\s*(\d{1,2})\s*[日号號]")

# Days that a person names without the month, or in numbers alone: `the 12th`, `12号`, `8/12`, `12.8.`
_BARE_DAY = re.compile(r"(?<!\d)(\d{1,2})\s?(?:st\b|nd\b|rd\b|th\b|[日号號])", re.IGNORECASE)
_PAIR = re.compile(r"(?<![\d.])(\d{1,2})[/.](\d{1,2})(?!\d)")
_BY_DISTANCE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|weekend|ago|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:last|next|this|coming|past)\s+(?:night|week|month|year|spring|summer|autumn|fall|winter)"
    r"|(?:in|within|for)\s+(?:\w+\s+)?\w+\s+(?:days?|weeks?|months?))\b"
    r"|[昨今明后前][天晚早日]|[上下这本]个?(?:周|星期|礼拜|月)|(?:周|星期|礼拜)[一二三四五六日天末]|[天周月年][前后]|[去今明前后]年|[月年][初底]",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """The dates that a slice gives leave to state."""

    first: date
    last: date
    years: frozenset[int]
    days: frozenset[tuple[int, int]]
    """Month and day."""
    bare_days: frozenset[int]
    by_distance: bool


def said(slice_: Slice) -> Said:
    """What may be dated in the marks of this slice."""
    text = "\n".join(entry.content for entry in slice_.entries)[:_LONGEST]
    pairs = {int(number) for pair in _PAIR.findall(text) for number in pair}
    return Said(
        first=local_day(slice_.start, slice_.timezone),
        last=local_day(slice_.last_at, slice_.timezone),
        years=frozenset(_years(text)),
        days=frozenset(_days(text)),
        bare_days=frozenset(map(int, _BARE_DAY.findall(text))) | pairs,
        by_distance=_BY_DISTANCE.search(text) is not None,
    )


def is_invented(text: str, known: Said) -> bool:
    """Whether the text states a day or a year that the slice gives no leave to state."""
    return not (
        all(_year_is_known(year, known) for year in _years(text))
        and all(_day_is_known(month, day, known) for month, day in _days(text))
    )


def _year_is_known(year: int, known: Said) -> bool:
    slack = 1 if known.by_distance else 0
    return year in known.years or known.first.year - slack <= year <= known.last.year + slack


def _day_is_known(month: int, day: int, known: Said) -> bool:
    slack = RECKONED if known.by_distance or day in known.bare_days else timedelta()
    if (month, day) in known.days:
        return True
    return any(
        known.first - slack <= found <= known.last + slack
        for year in range(known.first.year - 1, known.last.year + 2)
        if (found := _date(year, month, day))
    )


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _years(text: str) -> Iterator[int]:
    return map(int, _YEAR.findall(text))


def _days(text: str) -> Iterator[tuple[int, int]]:
    for month, day in (*_NUMBERS.findall(text), *_CHINESE.findall(text)):
        yield int(month), int(day)
    for day, month in _DAY_FIRST.findall(text):
        yield _MONTHS.index(month[:3].lower()) + 1, int(day)
    for month, day in _MONTH_FIRST.findall(text):
        yield _MONTHS.index(month[:3].lower()) + 1, int(day)
