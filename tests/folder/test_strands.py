"""Strands: how tags are normalised, woven, pruned and merged, and the two files that hold them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder.strands import (
    Merge,
    Tagged,
    compute,
    follow,
    key_for,
    normalise,
    parse_merges,
    parse_strands,
    record_merges,
    render_merges,
    render_strands,
    undo_merge,
    weave,
)

GOLDEN = Path(__file__).parents[1] / "golden"
NOW = datetime(2026, 8, 10, 21, 43, 0, 500000, tzinfo=UTC)


def path_at(start: datetime) -> str:
    return start.strftime("%Y/%m/%d/%H%M")


def tagged(days_ago: float, *tags: str, active: bool = False) -> Tagged:
    start = NOW - timedelta(days=days_ago)
    return Tagged(path=path_at(start), start=start, active=active, tags=tags)


def merged(*pairs: tuple[str, str]) -> dict[str, tuple[Merge, ...]]:
    return record_merges({}, pairs, at=NOW, by="model")


def targets(merges: dict[str, tuple[Merge, ...]]) -> dict[str, list[tuple[str, bool]]]:
    return {key: [(one.to, one.undone) for one in found] for key, found in merges.items()}


def test_it_works():
    merges = merged(("jogging", "running"))
    slices = [tagged(3, "Running"), tagged(2, "jogging", "sleep"), tagged(400, "chess")]
    assert compute(slices, merges, NOW) == {
        "running": (slices[0].path, slices[1].path),
        "sleep": (slices[1].path,),
    }


@pytest.mark.parametrize(
    ("tag", "key"),
    [
        ("  Half \t Marathon\n", "half marathon"),
        ("ＡＰＥＸ", "apex"),
        ("apex ", "apex"),
        ("half\u3000marathon", "half marathon"),
        ("cafe\u0301", "caf\u00e9"),
        ("Éducation", "Éducation"),
        ("吧檯", "吧檯"),
        ("ﾗﾝﾆﾝｸﾞ", "ﾗﾝﾆﾝｸﾞ"),
        ("H\u0331", "\u1e96"),
        ("wedding-speech", "wedding-speech"),
        ("wedding_speech", "wedding_speech"),
        ("2026-08-10", "2026-08-10"),
        ("no", "no"),
        ("🍸 Bar", "🍸 bar"),
        ("", ""),
        (" \u3000\n", ""),
    ],
)
def test_normalise(tag, key):
    assert normalise(tag) == key


@given(st.text())
def test_normalising_twice_changes_nothing(tag):
    assert normalise(normalise(tag)) == normalise(tag)


def test_accents_plurals_and_chinese_variants_stay_apart():
    tags = ("education", "éducation", "educations", "吧台", "吧檯")
    assert set(compute([tagged(1, *tags)], {}, NOW)) == set(tags)


def test_what_looks_like_another_type_is_a_key_like_any_other():
    tags = ("2026-08-10", "1e3", "no", "true", "null", "007")
    assert parse_strands(render_strands(compute([tagged(1, *tags)], {}, NOW))).keys() == set(tags)


def test_a_key_written_by_hand_is_found_by_its_normalised_form():
    assert key_for("ＲＵＮＮＩＮＧ", {}, {"Running": ()}) == "Running"
    assert key_for("running", {}, {"running": (), "Running": ()}) == "running"
    assert key_for(" \n", {}, {"running": ()}) == ""


def test_weave_only_adds_and_says_when_it_gained_nothing():
    first, second = tagged(2).path, tagged(1).path
    strands = weave({}, ["Sleep", "running", " running "], second, {})
    assert list(strands.items()) == [("running", (second,)), ("sleep", (second,))]
    assert weave(strands, ["SLEEP", ""], second, {}) is strands
    assert list(weave(strands, ["sleep"], first, {}).items()) == [("sleep", (first, second)), ("running", (second,))]
    assert strands["sleep"] == (second,)


def test_two_slices_alike_are_one_strand_with_two_paths():
    assert compute([tagged(1, "tea"), tagged(2, "tea")], {}, NOW) == {"tea": (tagged(2).path, tagged(1).path)}


@pytest.mark.parametrize(
    ("days", "active", "survives"), [(14, False, True), (14.001, False, False), (14.001, True, True)]
)
def test_a_lone_slice_keeps_its_strand_for_14_days(days, active, survives):
    assert ("chess" in compute([tagged(days, "chess", active=active)], {}, NOW)) is survives


def test_nothing_is_pruned_before_a_slice_has_closed():
    assert compute([tagged(400, "chess")], {}, None) == {"chess": (tagged(400).path,)}


def test_a_strand_that_comes_back_brings_its_earlier_slices():
    old, new = tagged(400, "chess"), tagged(0, "chess", active=True)
    assert compute([old], {}, NOW) == {}
    assert compute([old, new], {}, NOW) == {"chess": (old.path, new.path)}


def test_keys_stand_by_first_path_then_name():
    slices = [tagged(1, "b", "a"), tagged(2, "c", "b")]
    assert list(compute(slices, {}, NOW)) == ["b", "c", "a"]


TAGS = st.sampled_from(["running", "Running", "jogging", "ＲＵＮ", "run", "sleep", "睡眠", "chess", " "])
KEYS = st.sampled_from(["running", "jogging", "run", "sleep", "睡眠", "chess"])


@st.composite
def histories(draw):
    days = draw(st.lists(st.integers(0, 60), max_size=12, unique=True))
    return [
        tagged(day, *draw(st.lists(TAGS, max_size=4)), active=day == min(days) and draw(st.booleans())) for day in days
    ]


@given(histories(), st.lists(st.tuples(KEYS, KEYS), max_size=4), st.randoms(use_true_random=False))
def test_weaving_step_by_step_is_computing_the_whole(history, pairs, random):
    """What weaving a history one tag at a time gives, a close computes from the tags alone, in whatever order."""
    merges = merged(*pairs)
    woven = {}
    for slice_ in history:
        for tag in slice_.tags:
            woven = weave(woven, [tag], slice_.path, merges)
    shuffled = random.sample(history, len(history))
    assert list(woven.items()) == list(compute(shuffled, merges, None).items())

    fresh = {slice_.path for slice_ in history if slice_.active or slice_.start >= NOW - timedelta(days=14)}
    pruned = {key: paths for key, paths in woven.items() if len(paths) > 1 or fresh & set(paths)}
    assert list(pruned.items()) == list(compute(shuffled, merges, NOW).items())


@given(histories(), st.lists(st.tuples(KEYS, KEYS), max_size=6))
def test_merges_lose_no_path_and_undoing_them_all_brings_everything_back(history, pairs):
    merges = merged(*pairs)
    plain, joined = compute(history, {}, None), compute(history, merges, None)
    assert {path for paths in joined.values() for path in paths} == {path for paths in plain.values() for path in paths}
    assert not set(joined) & set(merges)
    for key in merges:
        merges = undo_merge(merges, key)
    assert compute(history, merges, None) == plain


def test_merges_are_followed_however_far():
    merges = merged(("a", "b"), ("b", "c"), ("c", "d"))
    assert [follow(key, merges) for key in "abcd"] == ["d"] * 4


@pytest.mark.parametrize("key", ["a", "b", "c"])
def test_a_cycle_written_by_hand_ends_at_its_first_key(key):
    by_hand = {one: (Merge(to=to, at=NOW, by="hand"),) for one, to in (("a", "c"), ("c", "b"), ("b", "c"))}
    assert follow(key, by_hand) == "b"


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("a", "a"), ("A", "ａ")], {}),
        ([("", "a"), ("a", " ")], {}),
        ([("a", "b"), ("a", "b")], {"a": [("b", False)]}),
        ([("a", "b"), ("a", "c")], {"a": [("b", False)]}),
        ([("a", "b"), ("b", "a")], {"a": [("b", False)]}),
        ([("a", "b"), ("b", "c"), ("c", "a")], {"a": [("b", False)], "b": [("c", False)]}),
        ([("Jogging", "Running ")], {"jogging": [("running", False)]}),
    ],
)
def test_pairs_that_say_nothing_new_or_close_a_cycle_are_dropped(pairs, expected):
    assert targets(merged(*pairs)) == expected


@given(st.lists(st.tuples(KEYS, KEYS), max_size=12), st.lists(KEYS, max_size=4))
def test_recorded_merges_end_somewhere_and_stand_once(pairs, undone):
    merges = merged(*pairs)
    for key in undone:
        merges = undo_merge(merges, key)
    merges = record_merges(merges, pairs, at=NOW, by="model")
    for key, found in merges.items():
        assert sum(not one.undone for one in found) <= 1
        assert follow(key, merges) not in {one.to for one in found if one.undone}
        assert follow(follow(key, merges), merges) == follow(key, merges)


def test_an_undone_merge_never_comes_back():
    merges = undo_merge(merged(("alice chen", "sarah kim")), "alice chen")
    assert follow("alice chen", merges) == "alice chen"
    assert record_merges(merges, [("Alice Chen", "Sarah Kim")], at=NOW, by="model") == merges
    assert record_merges(merges, [("sarah kim", "alice chen")], at=NOW, by="model") == merges
    roundabout = record_merges(merges, [("alice chen", "friends"), ("friends", "sarah kim")], at=NOW, by="model")
    assert targets(roundabout) == {"alice chen": [("sarah kim", True), ("friends", False)]}


def test_undoing_marks_only_what_stands():
    merges = undo_merge(merged(("a", "b"), ("c", "b")), "a")
    assert targets(merges) == {"a": [("b", True)], "c": [("b", False)]}
    assert undo_merge(merges, "a") == merges
    assert undo_merge(merges, "nobody") == merges


def test_the_index_as_a_file():
    slices = [tagged(1, "running", "睡眠"), tagged(3, "running", 'say "hi"')]
    text = render_strands(compute(slices, {}, NOW))
    assert text == (GOLDEN / "strands.json").read_text(encoding="utf-8")
    assert parse_strands(text) == compute(slices, {}, NOW)


PATHS = st.sets(st.integers(0, 400), min_size=1, max_size=3).map(
    lambda days: tuple(sorted(path_at(NOW - timedelta(days=day)) for day in days))
)


@given(st.dictionaries(st.text(min_size=1), PATHS, max_size=4))
def test_the_index_is_written_as_any_json_writer_would(strands):
    text = render_strands(strands)
    assert text == json.dumps(strands, ensure_ascii=False, indent=2) + "\n"
    assert parse_strands(text) == strands


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"running": [',
        "[]",
        '{"running": []}',
        '{"running": "2026/08/10/2130"}',
        '{"running": ["../../etc/passwd"]}',
        '{"running": ["2026/08/10/2130\\n2026/08/10/2131"]}',
        '{"running": [20260810]}',
        '{"": ["2026/08/10/2130"]}',
        '{"\\ud83d": ["2026/08/10/2130"]}',
        "[" * 100_000,
    ],
)
def test_a_corrupt_index_is_an_error_never_an_empty_one(text):
    with pytest.raises(ValueError):  # noqa: PT011 - json's own errors and ours have no wording in common
        parse_strands(text)


def test_an_index_put_in_disorder_by_hand_reads_in_order():
    text = '{"b": ["2026/08/11/0900", "2026/08/10/0900", "2026/08/11/0900"], "a": ["2026/08/10/0900"]}'
    assert list(parse_strands(text).items()) == [
        ("a", ("2026/08/10/0900",)),
        ("b", ("2026/08/10/0900", "2026/08/11/0900")),
    ]


def test_merges_as_a_file():
    merges = undo_merge(merged(("jogging", "running"), ("跑步", "running")), "jogging")
    merges = record_merges(merges, [("jogging", "sport")], at=NOW + timedelta(days=1), by="model")
    text = render_merges(merges)
    assert text == (GOLDEN / "strand-merges.json").read_text(encoding="utf-8")
    assert parse_merges(text) == merges
    assert render_merges({}) == "{}\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"a": {}}',
        '{"a": [{"to": "b"}]}',
        '{"a": [{"to": "", "at": "2026-08-10T21:43:00.500Z", "by": "model", "undone": false}]}',
        '{"a": [{"to": "b", "at": "yesterday", "by": "model", "undone": false}]}',
        '{"a": [{"to": "b", "at": "2026-08-10T21:43:00.500Z", "by": "model", "undone": "no"}]}',
        '{"a": [{"to": "b", "at": "2026-08-10T21:43:00.500Z", "by": "model", "undone": false, "note": "mine"}]}',
        "[" * 100_000,
    ],
)
def test_corrupt_merges_are_an_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - json's own errors and ours have no wording in common
        parse_merges(text)
