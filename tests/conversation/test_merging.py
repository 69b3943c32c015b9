"""The merge pass: what the model is shown, and which of its pairs may be merged."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import prompts
from memory.conversation.merging import MOST_KEYS, MOST_PAIRS, propose, sound_pairs
from memory.folder.strands import Merge, follow, record_merges
from memory.llm.client import ModelServer
from memory.llm.structured import Failure
from tests.conversation.folders import utc
from tests.model_server.answers import Answer, Rule
from tests.model_server.fixture import ModelServerProcess

Connect = Callable[..., ModelServer]
AT = utc(2026, 8, 10)
KEYS = (
    "a", "b", "c", "d", "e", "run", "running", "runner", "ruin", "rune", "跑步", "alice chen", "sarah kim",
    "taxes 2025", "taxes 2026", "half marathon", "half maraton", "machine learning", "ml",
)  # fmt: skip
SHOWN = {key: key for key in KEYS}


def merged(to: str, *, undone: bool = False) -> tuple[Merge, ...]:
    return (Merge(to=to, at=AT, by="model", undone=undone),)


def pairs(*proposed: tuple[str, str], merges: Any = None, shown: Any = SHOWN) -> list[tuple[str, str]]:
    answer = {"merges": [{"from": from_key, "to": to_key} for from_key, to_key in proposed]}
    return list(sound_pairs(answer, shown=shown, merges=merges or {}))


def test_it_works(model_server: ModelServerProcess, connect: Connect) -> None:
    answer = {"merges": [{"from": "跑步", "to": "running"}, {"from": "no such key", "to": "running"}]}
    model_server.script(Answer(text=json.dumps(answer)))
    strands = {"running": ("2026/07/16/0900", "2026/08/01/0900"), "跑步": ("2026/08/02/0900",)}
    assert propose(connect(), strands=strands, merges={}) == (("跑步", "running"),)
    [request] = model_server.requests()
    assert '<record of="keys">\n- 跑步 (1)\n- running (2)\n</record>' in request["messages"][1]["content"]


def test_no_pair_is_an_answer_too(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text='{"merges": []}'))
    assert propose(connect(), strands={"running": ("2026/07/16/0900",)}, merges={}) == ()
    assert len(model_server.requests()) == 1


def test_garbage_is_a_failure(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.rules(Rule(answers=[Answer(text="Merging is hard.")]))
    failure = propose(connect(), strands={"running": ("2026/07/16/0900",)}, merges={})
    assert failure == Failure(reason="unusable_answer", reached=True)
    assert len(model_server.requests()) == 2


@pytest.mark.parametrize(
    "text",
    [
        '[{"from": "跑步", "to": "running"}]',
        '{"merges": [["跑步", "running"]]}',
        '{"merges": {"跑步": "running"}}',
        "merges:\n- 跑步 → running",
        "merges:\n  - from: 跑步\n    to: running",
        '```json\n{"merges": [{"from": "跑步 (1)", "to": "Running (2)"},]}\n```',
    ],
)
def test_however_it_is_written(model_server: ModelServerProcess, connect: Connect, text: str) -> None:
    model_server.script(Answer(text=text))
    strands = {"running": ("2026/07/16/0900", "2026/08/01/0900"), "跑步": ("2026/08/02/0900",)}
    assert propose(connect(), strands=strands, merges={}) == (("跑步", "running"),)


def test_the_400_most_recent_keys_are_shown(model_server: ModelServerProcess, connect: Connect) -> None:
    model_server.script(Answer(text='{"merges": []}'))
    strands = {f"key {number:04}": (f"2026/01/01/{number:04}",) for number in range(2000)}
    propose(connect(), strands=strands, merges={})
    lines = [
        line for line in model_server.requests()[0]["messages"][1]["content"].splitlines() if line.startswith("- ")
    ]
    assert len(lines) == MOST_KEYS
    assert lines[0] == "- key 1999 (1)"


@pytest.mark.parametrize(
    ("proposed", "kept"),
    [
        ([("a", "a")], []),
        ([("a", "zzz"), ("zzz", "a")], []),
        ([("a", "b"), ("b", "a")], [("a", "b")]),
        ([("a", "b"), ("b", "c")], [("a", "b")]),
        ([("b", "c"), ("a", "b")], [("b", "c")]),
        ([("a", "b"), ("a", "c")], [("a", "b")]),
        ([("a", "b"), ("a", "b")], [("a", "b")]),
        ([("a", "e"), ("b", "e"), ("c", "e"), ("d", "e")], [("a", "e"), ("b", "e"), ("c", "e")]),
        ([("taxes 2025", "taxes 2026")], []),
        ([("alice chen", "sarah kim")], []),
        ([("half maraton", "half marathon")], [("half maraton", "half marathon")]),
        ([("ml", "machine learning")], [("ml", "machine learning")]),
        ([("跑步", "running")], [("跑步", "running")]),
    ],
)
def test_which_pairs_are_sound(proposed: list[tuple[str, str]], kept: list[tuple[str, str]]) -> None:
    assert pairs(*proposed) == kept


def test_the_first_thirty_are_taken() -> None:
    keys = {key: key for number in range(100) for key in (f"from {number}", f"to {number}")}
    proposed = [(f"from {number}", f"to {number}") for number in range(100)]
    assert pairs(*proposed, shown=keys) == proposed[:MOST_PAIRS]


def test_an_undone_pair_never_comes_back() -> None:
    merges = {"a": merged("b", undone=True)}
    assert pairs(("a", "b"), ("b", "a"), merges=merges) == []
    assert pairs(("a", "c"), ("b", "c"), merges=merges) == [("a", "c")]


def test_nothing_snowballs_from_pass_to_pass() -> None:
    assert pairs(("b", "c"), merges={"old": merged("b")}) == []
    full = {f"old {number}": merged("b") for number in range(7)}
    assert pairs(("a", "b"), ("c", "b"), merges=full) == [("a", "b")]


@pytest.mark.parametrize("answer", [None, [], {}, {"merges": None}, {"merges": "a → b"}])
def test_what_is_no_list_is_sent_back(answer: Any) -> None:
    with pytest.raises(ValueError, match="from"):
        sound_pairs(answer, shown=SHOWN, merges={})


key = st.sampled_from(KEYS) | st.text(max_size=3)
pair = st.fixed_dictionaries({"from": key, "to": key}) | st.tuples(key, key).map(list) | st.text() | st.none()
histories = st.dictionaries(
    st.sampled_from(KEYS[:6]), st.builds(merged, st.sampled_from(KEYS[:6]), undone=st.booleans()), max_size=4
)


@given(st.lists(pair, max_size=60), histories)
def test_no_answer_can_do_harm(proposed: list[Any], merges: dict[str, tuple[Merge, ...]]) -> None:
    found = sound_pairs({"merges": proposed}, shown=SHOWN, merges=merges)
    assert len(found) <= MOST_PAIRS
    froms, tos = {one for one, _ in found}, {other for _, other in found}
    assert len(froms) == len(found)
    assert not froms & tos
    assert froms | tos <= set(KEYS)
    recorded = record_merges(merges, found, at=AT, by="model")
    assert all(follow(one, recorded) == follow(other, recorded) for one, other in found)
    assert all(
        follow(key, recorded) != follow(merge.to, recorded) or follow(key, merges) == follow(merge.to, merges)
        for key, records in merges.items()
        for merge in records
        if merge.undone
    )


def test_the_prompts_examples_are_what_is_wanted() -> None:
    text = prompts.load("merge_strands", "en")
    examples = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    named = {text: text for example in examples for one in example["merges"] for text in one.values()}
    assert [len(sound_pairs(example, shown=named, merges={})) for example in examples] == [2, 0]
