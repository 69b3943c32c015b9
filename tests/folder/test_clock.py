from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder.clock import known_zone, local, local_day, parse_stamp, stamp, utc_now, zone

EVENING = datetime(2026, 8, 10, 21, 30, 22, 811_000, tzinfo=UTC)


def test_it_works():
    assert stamp(EVENING) == "2026-08-10T21:30:22.811Z"
    assert parse_stamp("2026-08-10T21:30:22.811Z") == EVENING


@given(
    microseconds=st.integers(-(10**16), 10**17),
    zone_=st.sampled_from([UTC, timezone(timedelta(hours=8)), timezone(timedelta(hours=-5))]),
)
def test_a_stamp_reads_back_as_the_same_millisecond(microseconds, zone_):
    at = (EVENING + timedelta(microseconds=microseconds)).astimezone(zone_)
    assert timedelta(0) <= at - parse_stamp(stamp(at)) < timedelta(milliseconds=1)


def test_now_is_aware_and_in_whole_milliseconds():
    now = utc_now()
    assert now.tzinfo is UTC
    assert parse_stamp(stamp(now)) == now


def test_a_stamp_needs_a_time_zone():
    with pytest.raises(ValueError, match="time zone"):
        stamp(EVENING.replace(tzinfo=None))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-08-10",
        "2026-08-10T21:30:22Z",
        "2026-08-10 21:30:22.811Z",
        "2026-08-10T21:30:22.811+00:00",
        "2026-08-10T21:30:22.811z",
        "2026-08-10T21:30:22.811Z\n",
        "2026-08-10T24:00:00.000Z",
        "2026-08-10T21:60:00.000Z",
        "2026-02-29T21:30:22.811Z",
        "2026-13-01T21:30:22.811Z",
        "0000-01-01T00:00:00.000Z",
        "２０２６-08-10T21:30:22.811Z",
    ],
)
def test_what_is_no_stamp_is_refused(text):
    with pytest.raises(ValueError, match=r"not a timestamp|out of range|must be in"):
        parse_stamp(text)


@pytest.mark.parametrize("name", ["UTC", "Asia/Shanghai", "Asia/Calcutta", "Asia/Kolkata", "US/Pacific", "Etc/GMT+8"])
def test_zones_and_their_older_names_are_known(name):
    assert known_zone(name) == name
    assert zone(name).key == name


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Phobos", "UTC+8", "localtime", "../../etc/passwd", "/etc/localtime", "Asia", "utc", "\0", "x" * 65],
)
def test_what_is_no_zone_is_unknown_and_taken_for_utc(name):
    assert known_zone(name) is None
    assert zone(name).key == "UTC"


def test_local_time_and_day_follow_the_zone():
    assert local(EVENING, "Asia/Shanghai").isoformat() == "2026-08-11T05:30:22.811000+08:00"
    assert local_day(EVENING, "Asia/Shanghai") == date(2026, 8, 11)
    assert local_day(EVENING, "America/New_York") == date(2026, 8, 10)
    assert local_day(EVENING, "Mars/Phobos") == date(2026, 8, 10)
