"""Dates as a person means them: by the calendar of their own zone, never by counting twenty-four hours.

A day runs from one local midnight to the next, so the day after a clock change is still one day later. Weeks begin on
Monday. Wording exists in English and Simplified Chinese; every function that words something takes `language`.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from memory.folder import clock

_WEEKDAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh-hans": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
}
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """What the relative words meant at one moment; a week is its Monday and its Sunday."""

    today: date
    yesterday: date
    this_week: tuple[date, date]
    last_week: tuple[date, date]


def anchors(at: datetime, zone_name: str) -> Anchors:
    """The dates around the instant `at` on the calendar of that zone (unknown zones count as UTC)."""
    today = clock.local_day(at, zone_name)
    monday = today - timedelta(days=today.weekday())
    return Anchors(
        today=today,
        yesterday=today - timedelta(days=1),
        this_week=(monday, monday + timedelta(days=6)),
        last_week=(monday - timedelta(days=7), monday - timedelta(days=1)),
    )


def days_between(earlier: datetime, later: datetime, zone_name: str) -> int:
    """How many local midnights lie between two instants; negative when `later` comes first."""
    return (clock.local_day(later, zone_name) - clock.local_day(earlier, zone_name)).days


def days_ago(days: int, language: str) -> str:
    """'today', 'yesterday', '25 days ago'; a day that is still to come, from a clock that ran ahead, is 'today'."""
    if language == "zh-hans":
        return "今天" if days <= 0 else "昨天" if days == 1 else f"{days}天前"
    return "today" if days <= 0 else "yesterday" if days == 1 else f"{days} days ago"


def time_between(earlier: datetime, later: datetime, zone_name: str, language: str) -> str:
    """A length of time in its largest unit: '12 minutes', '5 hours'; from 24 hours on in local days."""
    seconds = max(0, int((later - earlier).total_seconds()))
    if seconds < 60:
        return "不到1分钟" if language == "zh-hans" else "less than a minute"
    if seconds < 3600:
        return _count(seconds // 60, "minute", "分钟", language)
    if seconds < 86400:
        return _count(seconds // 3600, "hour", "小时", language)
    return _count(max(1, days_between(earlier, later, zone_name)), "day", "天", language)


def full_day(day: date, language: str) -> str:
    """'Monday 10 August 2026' or '2026年8月10日星期一'."""
    weekday = _WEEKDAYS[language][day.weekday()]
    if language == "zh-hans":
        return f"{day.year}年{day.month}月{day.day}日{weekday}"
    return f"{weekday} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def short_day(day: date, today: date, language: str) -> str:
    """'16 Jul' or '7月16日', with the year when it is another than today's."""
    if language == "zh-hans":
        return f"{day.year}年{day.month}月{day.day}日" if day.year != today.year else f"{day.month}月{day.day}日"
    return f"{day.day} {_MONTHS[day.month - 1][:3]}" + (f" {day.year}" if day.year != today.year else "")


def days_from_to(days: tuple[date, date], language: str) -> str:
    """'Monday 10 August 2026 to Sunday 16 August 2026', likewise in Chinese."""
    between = "至" if language == "zh-hans" else " to "
    return between.join(full_day(day, language) for day in days)


def full_time(at: datetime, zone_name: str, language: str) -> str:
    """'Monday 10 August 2026, 21:30': day and minute on the wall clock of that zone."""
    local = clock.local(at, zone_name)
    return f"{full_day(local.date(), language)}{' ' if language == 'zh-hans' else ', '}{local:%H:%M}"


def zone_words(at: datetime, zone_name: str) -> str:
    """The zone with its offset at that instant, 'Asia/Shanghai, UTC+08:00'; 'UTC' alone for that and unknown ones."""
    known = clock.known_zone(zone_name) or "UTC"
    offset = clock.local(at, known).strftime("%z")
    return "UTC" if known == "UTC" else f"{known}, UTC{offset[:3]}:{offset[3:5]}"


def hours_between(earlier: datetime, later: datetime) -> float:
    """Elapsed hours, whatever the clocks on the wall did meanwhile."""
    return (later.astimezone(UTC) - earlier.astimezone(UTC)).total_seconds() / 3600


def _count(number: int, english: str, chinese: str, language: str) -> str:
    if language == "zh-hans":
        return f"{number}{chinese}" if chinese != "小时" else f"{number}个小时"
    return f"{number} {english}{'' if number == 1 else 's'}"
