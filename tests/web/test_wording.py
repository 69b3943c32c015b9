"""Codes and instants as people read them."""

from datetime import UTC, datetime

import pytest
from django.utils import translation
from freezegun import freeze_time

from memory import wording
from memory.conversation.events import Step
from memory.folder.closing import CLOSED_BY
from memory.llm import errors
from memory.templatetags import moments, words

NOW = datetime(2026, 8, 10, 19, 30, tzinfo=UTC)


def every_failure(kind: type[errors.ModelError]) -> set[str]:
    return {kind.code}.union(*(every_failure(below) for below in kind.__subclasses__()))


def test_it_works():
    assert wording.closed_by("time_cap", 1) == "1 minute is up"
    assert wording.closed_by("time_cap", 30) == "30 minutes are up"
    assert wording.closed_by("time_cap") == "its time was up"


@pytest.mark.parametrize("code", sorted(every_failure(errors.ModelError) - {errors.ModelError.code}))
def test_every_failure_of_a_model_has_words_of_its_own(code):
    assert wording.failure(code) != wording.failure("internal")


def test_an_unknown_failure_is_the_servers_own():
    assert wording.failure("internal") == wording.failure("never heard of")
    assert "try again" in wording.failure("internal")


@pytest.mark.parametrize("code", [*CLOSED_BY, "time_silence"])
def test_every_reason_to_close_has_words(code):
    assert wording.closed_by(code) != code


def test_words_that_others_wrote_are_shown_as_written():
    assert wording.closed_by("moon_phase") == "moon_phase"
    assert wording.tone(("calm", "wistful")) == "calm, wistful"
    assert wording.tone_class("calm") == ""
    assert wording.tone_class("mixed") == "mixed"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (datetime(2026, 8, 10, 5, 45, tzinfo=UTC), "This morning, 07:45"),
        (datetime(2026, 8, 10, 1, 0, tzinfo=UTC), "Last night, 03:00"),
        (datetime(2026, 8, 10, 12, 0, tzinfo=UTC), "This afternoon, 14:00"),
        (datetime(2026, 8, 10, 18, 0, tzinfo=UTC), "This evening, 20:00"),
        (datetime(2026, 8, 9, 21, 30, tzinfo=UTC), "Yesterday, 23:30"),
        (datetime(2026, 8, 9, 22, 30, tzinfo=UTC), "Last night, 00:30"),
        (datetime(2026, 7, 16, 19, 30, tzinfo=UTC), "Thursday, 16 July, 21:30"),
        (datetime(2025, 7, 16, 19, 30, tzinfo=UTC), "Wednesday, 16 July 2025, 21:30"),
    ],
)
def test_when_something_was(at, said):
    with freeze_time(NOW), translation.override("en"):
        assert moments.ago(at, "Europe/Berlin") == said


def test_instants_are_read_in_the_zone_they_are_given():
    with freeze_time(NOW), translation.override("en"):
        assert moments.clock(NOW, "Asia/Shanghai") == "03:30"
        assert moments.day(NOW, "Asia/Shanghai") == "Tuesday, 11 August"
        assert moments.short_day(NOW, "UTC") == "10 Mon"
        assert moments.month(NOW, "UTC") == "August"
        assert moments.full(NOW, "Europe/Berlin") == "Monday, 10 August 2026, 21:30:00 (Europe/Berlin)"


@pytest.mark.parametrize(
    "detail",
    ["not JSON", "{}", '[{"path": "2026/08/10/0745"}]', '[{"path": "../../x", "turn_id": "t1"}]', "[1]", '["x"]'],
)
def test_a_recall_that_cannot_be_read_is_shown_as_any_other_step(detail):
    assert words.hits(Step(0, "recall", "ok", "question", detail)) in (None, [])


def test_only_a_recall_that_went_well_has_hits():
    assert words.hits(Step(0, "recall", "running", "question", "[]")) is None
    assert words.hits(Step(0, "read_slice", "ok", "", "[]")) is None
    assert words.hits(Step(0, "recall", "ok", "question", "[]")) == []
