"""The close form over the wire, and its reading of any answer."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import prompts
from memory.conversation.analyzer import CloseMarks, analyse_close, dates, shown
from memory.conversation.analyzer.close_form import SCHEMA, close_marks
from memory.conversation.analyzer.topics import topics
from memory.folder.marks import SUMMARY_CHARACTERS, floor_summary, is_floor_summary
from memory.llm.client import ModelServer
from memory.llm.structured import Called, Failure
from tests.conversation.folders import ALICE, ALICE_IN_CHINESE, a_slice
from tests.model_server.answers import Answer, Rule, error_body
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]

STRANDS = {"running": ("2026/07/16/0900",), "wedding speech": ("2026/08/01/0900",)}
SLICE = a_slice(
    "2026-08-10-2130",
    ("I want to run a half marathon. #race2026", "Which one?"),
    ("The one in Lisbon, if Bob comes along.", "A fine plan."),
    timezone="Asia/Shanghai",
    tags=("running",),
    open_loops=("Whether Bob comes",),
    decisions=("Run in Lisbon",),
)
FULL = {
    "focus": "Plan: half-marathon (Split: core)",
    "summary": "Lisbon it is, if Bob comes along.",
    "tags": ["running", "Wedding-Speech", "half marathon"],
    "emotional_tone": "positive",
    "open_loops": ["Ask Bob: when?"],
    "decisions": ["Budget: 200", "- keep: yes"],
}
MARKS = CloseMarks(
    focus="Plan: half-marathon (Split: core)",
    summary="Lisbon it is, if Bob comes along.",
    tags=("race2026", "running", "wedding speech", "half marathon"),
    emotional_tone="positive",
    open_loops=("Ask Bob: when?",),
    decisions=("Budget: 200", "- keep: yes"),
)
PARTS: dict[str, Any] = {"known": topics("", STRANDS, {}, limit=1000), "said": dates.said(SLICE), "own_tags": ()}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def analysed(server: ModelServer, **how: Any) -> CloseMarks | Failure:
    return analyse_close(server, **({"slice_": SLICE, "strands": STRANDS, "merges": {}, "person": ALICE} | how))


def sent(model_server: ModelServerProcess) -> tuple[str, str]:
    system, user = model_server.requests()[-1]["messages"]
    return system["content"], user["content"]


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text=json.dumps(FULL)))
    heard: list[Called] = []
    assert analysed(connect(), called=heard.append) == MARKS
    assert [(call.kind, call.ok) for call in heard] == [("close", True)]


@pytest.mark.parametrize(
    "text",
    [
        f"Here you are:\n```json\n{json.dumps(FULL, indent=2)}\n```\nAnything else?",
        f"<think>long</think>{json.dumps(FULL)}",
        "\n".join(f"{name}: {json.dumps(value)}" for name, value in FULL.items()),
        repr(FULL),
    ],
)
def test_however_it_is_written(model_server: ModelServerProcess, connect: Connect, text: str) -> None:
    model_server.script(Answer(text=text))
    assert analysed(connect()) == MARKS
    assert len(model_server.requests()) == 1


def test_what_the_model_is_shown(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text=json.dumps(FULL)))
    analysed(connect())
    system, user = sent(model_server)
    assert "Tuesday 11 August 2026, 05:30" in system  # the slice's own day on its own clock, whenever it is analysed
    assert '<record of="tags">\n- running\n</record>' in system
    assert "- Whether Bob comes" in system
    assert "- Run in Lisbon" in system
    assert "person, 05:30:\n> I want to run a half marathon. #race2026\ncompanion, 05:31:\n> Which one?" in user


def test_it_speaks_the_persons_language(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text=json.dumps(FULL)))
    analysed(connect(), person=ALICE_IN_CHINESE)
    system, user = sent(model_server)
    assert "谈话始于2026年8月11日星期二05:30" in system.replace(" ", "")
    assert user.endswith("请为这次谈话填写表单。只回答那个 JSON 对象。")


def test_of_a_long_slice_the_beginning_and_the_end_are_shown(
    model_server: ModelServerProcess, connect: Connect
) -> None:
    model_server.script(Answer(text=json.dumps(FULL)))
    turns = [(f"turn {number} " + "words " * 400, "reply " * 400) for number in range(40)]
    analysed(connect(context=8192), slice_=a_slice("2026-08-10-2130", *turns))
    system, user = sent(model_server)
    assert "> turn 0 words" in user
    assert "> turn 39 words" in user
    assert "> turn 20 words" not in user
    assert "turns are not shown here" in user
    assert len(system + user) < 8192 * 4


def test_one_endless_message_is_shown_without_its_middle(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text=json.dumps(FULL)))
    analysed(connect(context=8192), slice_=a_slice("2026-08-10-2130", ("first " + "x " * 500_000 + "last", "Well.")))
    _, user = sent(model_server)
    assert "> first" in user
    assert "last\n" in user
    assert len(user) < 8192 * 4


def test_a_short_slice_is_shown_whole() -> None:
    assert "not shown" not in shown.conversation(SLICE, 4000)


def test_nothing_said_is_no_call(model_server: ModelServerProcess, connect: Connect) -> None:
    assert analysed(connect(), slice_=replace(SLICE, entries=())) == Failure(reason="nothing_said", reached=True)
    assert model_server.requests() == []


def test_an_answer_without_a_summary_is_asked_for_once_more(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text='{"focus": "Trip", "summary": null}'), Answer(text=json.dumps(FULL)))
    assert analysed(connect()) == MARKS


def test_what_is_usable_of_a_half_good_answer_is_kept(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text='{"tags": ["running"], "focus": "Trip"}'), Answer(text='{"tags": ["oak"]}'))
    assert analysed(connect()) == CloseMarks(focus="Trip", tags=("race2026", "running"))
    assert len(model_server.requests()) == 2


def test_nothing_usable_is_a_failure(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(answers=[Answer(text='{"focus": null, "summary": "None", "tags": null}')]))
    assert analysed(connect()) == Failure(reason="unusable_answer", reached=True)


def test_a_server_that_is_down_is_a_failure(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(answers=[Answer(status=503, body=error_body("down"))]))
    assert analysed(connect()) == Failure(reason="server_failed", reached=False)
    assert len(model_server.requests()) == 1


def test_each_field_is_checked_alone() -> None:
    answer = {
        "tags": "running, work", "focus": ["a"], "emotional_tone": "ecstatic", "summary": "long words " * 25,
        "closed_by": "hack", "status": "active", "open_loops": 7, "decisions": None,
    }  # fmt: skip
    found = close_marks(answer, **PARTS)
    assert found == CloseMarks(
        tags=("running", "work"), emotional_tone="positive", summary="long words " * 8 + "long words…"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("focus", "Paris in May 2025", None),
        ("summary", "Came back on 3 December", None),
        ("summary", floor_summary(SLICE, language="en"), None),
        ("summary", "12 轮对话 · 跑步", None),
        ("summary", "👨‍👩‍👧‍👦" * 150, "👨‍👩‍👧‍👦" * 14 + "…"),
        ("focus", "<think>The user wants", None),
        ("focus", "yes", "yes"),
        ("tags", [], ()),
        ("tags", [""], None),
        ("decisions", ["Runs in 2019", "Runs"], ("Runs",)),
        ("decisions", ["Runs in 2019"], None),
        ("decisions", [], ()),
    ],
)
def test_fields(field: str, value: Any, expected: object) -> None:
    assert getattr(close_marks({"emotional_tone": "neutral", field: value}, **PARTS), field) == expected


@given(st.dictionaries(st.sampled_from(sorted(SCHEMA["properties"])), anything) | anything)
def test_no_answer_is_too_odd(answer: Any) -> None:
    try:
        marks = close_marks(answer, **PARTS)
    except ValueError:
        return
    assert marks.usable
    assert marks.focus is None or 0 < len(marks.focus) <= 200
    assert marks.summary is None or 0 < len(marks.summary) <= SUMMARY_CHARACTERS
    assert not is_floor_summary(marks.summary or "")
    assert marks.emotional_tone in (None, "positive", "neutral", "negative", "mixed")
    assert len(marks.tags or ()) <= 20
    for text in (marks.focus or "", marks.summary or "", *(marks.open_loops or ()), *(marks.decisions or ())):
        text.encode()
        assert "\n" not in text


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_prompts_example_is_what_is_wanted(language: str) -> None:
    text = prompts.load("analyse_close", language, **dict.fromkeys(prompts.holes("analyse_close", language), ""))
    assert all(f"`{name}`" in text for name in SCHEMA["properties"])
    [example] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    found = close_marks(example, **PARTS)
    assert (found.usable, found.focus, found.summary) == (6, example["focus"], example["summary"])
