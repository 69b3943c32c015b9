"""Dates that a question names, in English and Chinese, as windows of local days; and how near a day is to them.

A date never filters: it gives the slices of those days, and of the days around them, a better place. People tell of
a day on that day or soon after, so nearness fades slowly after a window and faster before it.
"""

import calendar
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

DAY_FADE, WEEK_FADE, MONTH_FADE, SEASON_FADE, YEAR_FADE = 3.0, 6.0, 18.0, 30.0, 60.0
"""Past a window of that length, the days in which nearness falls to a third."""

_BEFORE = 0.5
_FARTHEST = 4
"""How fast nearness fades before a window, and after how many fades nothing is left of it."""


@dataclass(frozen=True)
class Window:
    """Local days from `first` to `last`, both in it, and the days in which nearness fades past them."""

    first: date
    last: date
    fade: float

    def nearness(self, day: date) -> float:
        """Return 1 in the window, less the farther the day is from it, 0 far away."""
        if self.first <= day <= self.last:
            return 1.0
        if day > self.last:
            away = (day - self.last).days / self.fade
        else:
            away = (self.first - day).days / (self.fade * _BEFORE)
        return math.exp(-away) if away <= _FARTHEST else 0.0


def nearness(windows: Sequence[Window], day: date) -> float:
    """Return how near the day is to the nearest window; 0 when no date was named."""
    return max((window.nearness(day) for window in windows), default=0.0)


def windows(question: str, today: date) -> tuple[Window, ...]:
    """Return the windows that a question names, in the order of its words; `today` is the person's local day.

    A date without a year is the last such date up to today. A relative date (yesterday, 上周) counts only when the
    question names no day or month outright: beside one it was said in the words of that day.
    """
    text = unicodedata.normalize("NFKC", question)
    found: list[tuple[int, Window]] = []
    for rules in (_ABSOLUTE, _RELATIVE):
        for pattern, read in rules:
            for match in pattern.finditer(text):
                try:
                    found.append((match.start(), read(match, today)))
                except (ValueError, OverflowError, KeyError):
                    continue  # 31 June, or a million years ago: no day
            # What one rule has read is not read again by a coarser one.
            text = pattern.sub(lambda match: "\0" * len(match[0]), text)
        if found:
            break
    return tuple(window for _, window in sorted(found, key=lambda pair: pair[0]))


# How many, which month, which weekday: as written, to a number.

_MONTHS = {
    name: number
    for number in range(1, 13)
    for name in (calendar.month_name[number].lower(), calendar.month_abbr[number].lower())
} | {"sept": 9}
_WEEKDAYS = {calendar.day_name[number].lower(): number for number in range(7)}
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_DIGITS = {digit: number for number, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "元": 1}

_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(_WEEKDAYS)
_COUNT = r"\d{1,3}|" + "|".join(sorted(_COUNTS, key=len, reverse=True))
_SEASON = "spring|summer|autumn|fall|winter"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_HAN_NUMBER = "[一二三四五六七八九十两]{1,3}"
_HAN_YEAR = r"(?P<year>(?:19|20)\d\d|[一二][〇零一二三四五六七八九]{3})\s*年"
_HAN_MONTH = rf"(?P<month>1[0-2]|0?[1-9]|{_HAN_NUMBER})\s*月"
_HAN_DAY = rf"(?P<day>[12]\d|3[01]|0?[1-9]|{_HAN_NUMBER})\s*[日号號]"
_HAN_COUNT = rf"(?P<count>\d{{1,3}}|{_HAN_NUMBER}|几)"


def _month(written: str) -> int:
    return _MONTHS[written.lower()] if written.lower() in _MONTHS else _number(written)


def _number(written: str) -> int:
    """A number in digits, English words or Chinese up to ninety-nine; 几, a few, is three."""
    text = " ".join(written.lower().split())
    if text.isdecimal():
        return int(text)
    if text in _COUNTS or text == "几":
        return _COUNTS.get(text, 3)
    tens, ten, ones = text.partition("十")
    if not ten:
        return int("".join(str(_DIGITS[digit]) for digit in text))
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)


# Windows of a known length.


def _one_day(day: date) -> Window:
    return Window(day, day, DAY_FADE)


def _week(monday: date) -> Window:
    return Window(monday, monday + timedelta(days=6), WEEK_FADE)


def _whole_month(year: int, month: int) -> Window:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return Window(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]), MONTH_FADE)


def _season(year: int, month: int) -> Window:
    """Three months from the season's first; the winter of a year begins in its December."""
    return Window(date(year, month, 1), _whole_month(year, month + 2).last, SEASON_FADE)


def _whole_year(year: int) -> Window:
    return Window(date(year, 1, 1), date(year, 12, 31), YEAR_FADE)


def _monday(today: date) -> date:
    return today - timedelta(days=today.weekday())


def _last_such(today: date, make: Callable[[int], Window]) -> Window:
    """The window as it was last: this year's if it has begun, else that of a year before (29 February: of four)."""
    for year in range(today.year, today.year - 9, -1):
        try:
            window = make(year)
        except ValueError:
            continue
        if window.first <= today:
            return window
    raise ValueError("no such day in any year")


# What the patterns found, read.

_Read = Callable[[re.Match[str], date], Window]


def _full_date(match: re.Match[str], _: date) -> Window:
    return _one_day(date(_number(match["year"]), _month(match["month"]), _number(match["day"])))


def _month_and_day(match: re.Match[str], today: date) -> Window:
    month, day = _month(match["month"]), _number(match["day"])
    return _last_such(today, lambda year: _one_day(date(year, month, day)))


def _month_of_year(match: re.Match[str], _: date) -> Window:
    return _whole_month(_number(match["year"]), _month(match["month"]))


def _month_alone(match: re.Match[str], today: date) -> Window:
    month = _month(match["month"])
    return _last_such(today, lambda year: _whole_month(year, month))


def _season_of_year(match: re.Match[str], _: date) -> Window:
    return _season(_number(match["year"]), _SEASONS[match["season"].lower()])


def _year_alone(match: re.Match[str], _: date) -> Window:
    return _whole_year(_number(match["year"]))


def _years_back(match: re.Match[str]) -> int:
    return {"last": 1, "this": 0, "去": 1, "前": 2, "今": 0}[match["which"].lower()]


def _month_of_last_year(match: re.Match[str], today: date) -> Window:
    """去年五月 is in the year before; last May is the last May that is over."""
    month = _month(match["month"])
    if match["which"].lower() == "last":
        return _last_such(today.replace(day=1) - timedelta(days=1), lambda year: _whole_month(year, month))
    return _whole_month(today.year - _years_back(match), month)


def _day_of_last_year(match: re.Match[str], today: date) -> Window:
    return _one_day(date(today.year - _years_back(match), _month(match["month"]), _number(match["day"])))


def _season_back(match: re.Match[str], today: date) -> Window:
    """Last summer is the last one that is over; this summer, or the summer, the last that has begun."""
    month = _SEASONS[match["season"].lower()]
    if match["which"].lower() in ("去", "前", "今"):
        return _season(today.year - _years_back(match), month)
    window = _last_such(today, lambda year: _season(year, month))
    if match["which"].lower() == "last" and window.last >= today:
        return _season(window.first.year - 1, month)
    return window


def _days_back(back: int) -> _Read:
    return lambda _, today: _one_day(today - timedelta(days=back))


def _weeks_back(back: int) -> _Read:
    return lambda _, today: _week(_monday(today) - timedelta(days=7 * back))


def _months_back(back: int) -> _Read:
    return lambda _, today: _whole_month(today.year, today.month - back)


def _calendar_years_back(match: re.Match[str], today: date) -> Window:
    return _whole_year(today.year - _years_back(match))


def _weekend(match: re.Match[str], today: date) -> Window:
    saturday = _monday(today) + timedelta(days=5)
    if saturday > today or (match["which"].lower() in ("last", "上") and saturday + timedelta(days=1) >= today):
        saturday -= timedelta(days=7)
    return Window(saturday, saturday + timedelta(days=1), DAY_FADE)


def _weekday(match: re.Match[str], today: date) -> Window:
    """The last such day before today, said with `last` or without."""
    back = (today.weekday() - _WEEKDAYS[match["weekday"].lower()] - 1) % 7 + 1
    return _one_day(today - timedelta(days=back))


def _han_weekday(match: re.Match[str], today: date) -> Window:
    """上周三 is in the week before; 周三 alone is the last one up to today."""
    number = "一二三四五六日天".index(match["weekday"]) % 7 if match["weekday"] != "天" else 6
    if match["weeks"]:
        return _one_day(_monday(today) + timedelta(days=number - 7 * len(match["weeks"])))
    return _one_day(today - timedelta(days=(today.weekday() - number) % 7))


def _ago(match: re.Match[str], today: date) -> Window:
    return _back(_number(match["count"]), match["unit"].lower(), today)


def _back(count: int, unit: str, today: date) -> Window:
    if unit in ("day", "天", "日"):
        return _one_day(today - timedelta(days=count))
    if unit in ("week", "周", "星期", "礼拜"):
        day = today - timedelta(days=7 * count)
        return Window(day - timedelta(days=3), day + timedelta(days=3), WEEK_FADE)
    if unit in ("month", "月"):
        return _whole_month(today.year, today.month - count)
    return _whole_year(today.year - count)


def _last_few(match: re.Match[str], today: date) -> Window:
    """前几天, the past three weeks: from then up to today."""
    return Window(_back(_number(match["count"]), match["unit"].lower(), today).first, today, WEEK_FADE)


def _rules(*rules: tuple[str, _Read], ignore_case: bool = True) -> list[tuple[re.Pattern[str], _Read]]:
    return [(re.compile(pattern, re.IGNORECASE if ignore_case else 0), read) for pattern, read in rules]


# Months that are also words (may, march) count alone only with a capital and a word of time before them.
_PLAIN_MONTH = "|".join(name for name in _MONTH.split("|") if name not in ("may", "march", "mar", "jan", "dec", "sep"))

_ABSOLUTE = [
    *_rules(
        (r"(?<!\d)(?P<year>(?:19|20)\d\d)([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?!\d)", _full_date),
        (rf"{_HAN_YEAR}\s*{_HAN_MONTH}\s*{_HAN_DAY}", _full_date),
        (rf"(?P<which>[去前今])年\s*{_HAN_MONTH}\s*{_HAN_DAY}", _day_of_last_year),
        (rf"\b{_DAY}\s*(?:of\s+)?(?P<month>{_MONTH})\b\.?,?\s*(?:of\s+)?{_YEAR}\b", _full_date),
        (rf"\b(?P<month>{_MONTH})\b\.?\s*(?:the\s+)?{_DAY}\s*(?:,|of)?\s*{_YEAR}\b", _full_date),
        (rf"{_HAN_YEAR}\s*{_HAN_MONTH}", _month_of_year),
        (rf"(?P<which>[去前今])年\s*{_HAN_MONTH}", _month_of_last_year),
        (rf"{_HAN_MONTH}\s*{_HAN_DAY}", _month_and_day),
        (rf"\b{_DAY}\s*(?:of\s+)?(?P<month>{_MONTH})\b", _month_and_day),
        (rf"\b(?P<month>{_MONTH})\b\.?\s*(?:the\s+)?{_DAY}\b(?!:)", _month_and_day),
        (rf"\b(?P<month>{_MONTH})\b\.?,?\s*(?:of\s+)?{_YEAR}\b", _month_of_year),
        (rf"(?<!\d){_YEAR}-(?P<month>0[1-9]|1[0-2])(?!\d)", _month_of_year),
        (rf"\b(?P<which>last|this)\s+(?P<month>{_MONTH})\b", _month_of_last_year),
        (rf"\b(?P<season>{_SEASON})\s*,?\s*(?:of\s+)?{_YEAR}\b", _season_of_year),
        (rf"{_HAN_YEAR}\s*(?:的)?(?P<season>[春夏秋冬])", _season_of_year),
        (rf"{_HAN_MONTH}(?:份|里|中|初|底|末)?", _month_alone),
        (rf"\b(?P<month>{_PLAIN_MONTH})\b", _month_alone),
    ),
    *_rules(
        (r"\b(?:[Ii]n|[Ss]ince|[Dd]uring|[Oo]f|[Ll]ate|[Ee]arly|[Mm]id|[Bb]y|[Uu]ntil)[\s-]+(?P<month>May|March)\b",
         _month_alone),
        ignore_case=False,
    ),
    *_rules(
        (_HAN_YEAR, _year_alone),
        (rf"(?<![\w.,$€£¥-]){_YEAR}(?![\w%-]|[.,]\d)", _year_alone),
    ),
]  # fmt: skip

_RELATIVE = _rules(
    (r"\bday\s+before\s+yesterday\b|(?<!大)前天|前日", _days_back(2)),
    (r"大前天", _days_back(3)),
    (r"\byesterday\b|\blast\s+night\b|昨[天日晚夜]", _days_back(1)),
    (r"\b(?:today|tonight|this\s+(?:morning|afternoon|evening))\b|今[天日晚早]", _days_back(0)),
    (r"\b(?P<which>last|this|past)\s+weekend\b", _weekend),
    (r"(?P<which>上|这|本)(?:个)?周末", _weekend),
    (r"(?P<weeks>上{1,3})(?:个)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _han_weekday),
    (r"(?P<weeks>)(?:这|本)?(?:个)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _han_weekday),
    (r"\bweek\s+before\s+last\b|上上(?:个)?(?:周|星期|礼拜)", _weeks_back(2)),
    (r"\blast\s+week\b|上(?:个|一)?(?:周|星期|礼拜)", _weeks_back(1)),
    (r"\bthis\s+week\b|(?:这|本)(?:个|一)?(?:周|星期|礼拜)", _weeks_back(0)),
    (r"\bmonth\s+before\s+last\b|上上(?:个)?月", _months_back(2)),
    (r"\blast\s+month\b|上(?:个|一个)?月", _months_back(1)),
    (r"\bthis\s+month\b|(?:这|本)(?:个)?月", _months_back(0)),
    (rf"\b(?P<which>last|this|the)\s+(?P<season>{_SEASON})\b", _season_back),
    (r"(?P<which>[去前今])年(?:的)?(?P<season>[春夏秋冬])", _season_back),
    (r"\b(?P<which>last|this)\s+year\b", _calendar_years_back),
    (r"(?P<which>[去前今])年", _calendar_years_back),
    (rf"\b(?P<count>{_COUNT})\s+(?P<unit>day|week|month|year)s?\s+(?:ago|back|earlier)\b", _ago),
    (rf"{_HAN_COUNT}\s*(?:个)?(?P<unit>天|日|周|星期|礼拜|月|年)(?:之|以)?前", _ago),
    (rf"\b(?:last|past)\s+(?P<count>{_COUNT})\s+(?P<unit>day|week|month|year)s?\b", _last_few),
    (rf"(?:前|过去|最近|这){_HAN_COUNT}\s*(?:个)?(?P<unit>天|日|周|星期|礼拜|月|年)", _last_few),
    (rf"\b(?:on|last|this|past)\s+(?P<weekday>{_WEEKDAY})\b", _weekday),
)
