"""What a question finds, and in which order."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.folder.errors import BadId
from memory.folder.search import SearchIndex, candidates
from memory.folder.search.candidates import _telling
from memory.folder.search.database import Totals
from memory.folder.search.scoring import Asked, Candidate, scored
from memory.folder.search.snippets import LENGTH, snippet
from memory.folder.slices import Slice
from tests.folder.searched import a_slice, alice_at, commit, found, ids

RUN = a_slice("2026-07-01-0915", "I ran a half marathon", "Well done!", "My knees hurt", "Rest for two days.")
CAKE = a_slice("2026-07-03-1200", "How do I bake a walnut cake?", "With walnuts and patience.", "Thanks")
WORKTOP = a_slice("2026-07-20-1800", "The worktop costs 900 euros", "That is over the budget of 700.")


def index_of(place, *slices: Slice) -> SearchIndex:
    folder, index = alice_at(place)
    commit(folder, *slices)
    index.catch_up(folder)
    return index


@pytest.fixture
def kitchen(tmp_path) -> SearchIndex:
    return index_of(tmp_path, RUN, CAKE, WORKTOP)


def test_it_works(kitchen):
    hit = found(kitchen, "what did walnuts cost in the cake?")[0]
    assert hit.slice_id == CAKE.slice_id
    best = hit.turns[0]
    assert (best.turn_id, best.role, best.at) == ("t0", "user", CAKE.start)
    assert best.snippet.text == "How do I bake a walnut cake?"
    assert [best.snippet.text[begin:finish] for begin, finish in best.snippet.matches] == ["walnut", "cake"]


def test_turns_are_found_one_by_one(kitchen):
    hits = found(kitchen, "walnut", unit="turn", limit=2)
    assert [(hit.slice_id, len(hit.turns)) for hit in hits] == [(CAKE.slice_id, 1)] * 2
    assert {hit.turns[0].role for hit in hits} == {"user", "agent"}
    assert all(hit.score == hit.turns[0].score for hit in hits)


def test_marks_are_found_but_not_a_count_of_turns(tmp_path):
    marked = a_slice(
        "2026-07-05-1000",
        "Hello",
        focus="Moving house",
        summary="Boxes and vans",
        tags=("lisbon",),
        open_loops=("which keys?",),
        decisions=("rent a van",),
    )
    floor = a_slice("2026-07-06-1000", "Hello", focus="Hello", summary="12 turns · kites")
    index = index_of(tmp_path, marked, floor)
    for word in ("house", "boxes", "Lisbon", "keys", "rent"):
        assert ids(index, word) == [marked.slice_id]
    assert ids(index, "turns") == []
    assert found(index, "house")[0].turns == ()


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("今天玩成语接龙游戏", ("成语接龙", "接龙", "龙", "戏", "今")),
        ("しりとりをしよう", ("しりとり", "り", "う")),
        ("끝말잇기 하자", ("끝말잇기", "기")),
        ("поход в горы завтра", ("горы", "ПОХОД")),
        ("สวัสดีครับ", ("สวัสดี", "ดี")),
        ("नमस्ते दुनिया", ("नमस्ते",)),
        ("步2重跑gen-itgc后", ("itgc", "gen-itgc", "重跑")),
        ("caf\u00e9", ("cafe\u0301", "CAF\u00c9")),
        ("cafe\u0301", ("caf\u00e9",)),
        ("ＡＰＥＸ", ("apex",)),
    ],
)
def test_any_script_is_found_by_its_parts(tmp_path, text, queries):
    spoken = a_slice("2026-07-05-1000", "Hello", text)
    index = index_of(tmp_path, spoken, RUN, a_slice("2026-07-06-1000", "别的话", "其他"))
    for query in queries:
        hit = found(index, query)[0]
        assert hit.slice_id == spoken.slice_id, query
        assert ids(index, query) == [spoken.slice_id], query
        assert hit.turns[0].role == "agent", query
        assert hit.turns[0].snippet.matches, query


def test_characters_that_are_not_all_there_find_nothing(tmp_path):
    assert ids(index_of(tmp_path, a_slice("2026-07-05-1000", "今天玩成语接龙游戏")), "虎") == []


def test_the_last_word_of_a_long_message_is_found(tmp_path):
    long = "word and another word. " * 2000 + "zanzibar"
    index = index_of(tmp_path, RUN, a_slice("2026-07-05-1000", long))
    shown = found(index, "Zanzibar")[0].turns[0].snippet
    assert shown.text.startswith("…")
    assert [shown.text[begin:finish] for begin, finish in shown.matches] == ["zanzibar"]


@pytest.mark.parametrize(
    "query",
    ['"', "'", "marathon OR", "NEAR(half marathon)", "title:", "-marathon", "half^2", "mara*", "(", "\0", "{x}"],
)
def test_a_question_is_words_and_never_syntax(kitchen, query):
    expected = [RUN.slice_id] if "marathon" in query or "half" in query else []
    assert ids(kitchen, query) == expected


def test_any_text_may_be_asked(tmp_path_factory):
    index = index_of(tmp_path_factory.mktemp("any"), RUN, a_slice("2026-07-05-1000", "今天玩成语接龙游戏"))

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.text() | st.text(alphabet="\"'*():^-AND OR龙\0\ud800"))
    def ask(query: str) -> None:
        for unit in ("slice", "turn"):
            assert len(found(index, query, unit=unit)) <= 10

    ask()


@pytest.mark.parametrize("query", ["", "   ", "what is it?", "!?", "xylophone"])
def test_nothing_is_found_for_nothing(kitchen, query):
    assert ids(kitchen, query) == []


def test_a_day_named_comes_first_and_filters_nothing(tmp_path):
    days = [a_slice(f"2026-07-{day:02}-1000", "We talked about the garden") for day in (1, 8, 15, 22)]
    index = index_of(tmp_path, *days)
    assert ids(index, "the garden on 15 July")[0] == days[2].slice_id
    assert ids(index, "the garden, yesterday", now=datetime(2026, 7, 9, 9, 0, tzinfo=UTC))[0] == days[1].slice_id
    assert len(ids(index, "the garden on 15 July")) == 4


def test_a_day_is_found_without_any_other_word(kitchen):
    assert ids(kitchen, "What did we talk about on 3 July 2026?")[0] == CAKE.slice_id
    assert found(kitchen, "3 July 2026", unit="turn", limit=1)[0].slice_id == CAKE.slice_id


def test_a_slice_is_of_its_own_local_day(tmp_path):
    """A quarter past midnight in Tokyo is the day before in UTC."""
    late = a_slice("2026-07-14-1515", "Midnight talk", timezone="Asia/Tokyo")
    index = index_of(tmp_path, late)
    assert ids(index, "talk", since=date(2026, 7, 15), until=date(2026, 7, 15)) == [late.slice_id]
    assert ids(index, "talk", until=date(2026, 7, 14)) == []


def test_yesterday_is_the_persons(tmp_path):
    early, late = (a_slice(f"2026-07-{day}-1000", "The garden") for day in (13, 14))
    index = index_of(tmp_path, early, late)
    asked_at = datetime(2026, 7, 15, 2, 0, tzinfo=UTC)
    assert ids(index, "garden yesterday", now=asked_at, timezone="UTC")[0] == late.slice_id
    assert ids(index, "garden yesterday", now=asked_at, timezone="America/Los_Angeles")[0] == early.slice_id


def test_only_what_may_be_found_is_found(tmp_path):
    days = [a_slice(f"2026-07-{day:02}-1000", "We talked about the garden") for day in (1, 8, 15, 22)]
    index = index_of(tmp_path, *days)
    every = [day.slice_id for day in days]
    assert sorted(ids(index, "garden", paths=[days[0].path, days[3].path])) == [every[0], every[3]]
    assert ids(index, "garden", paths=[]) == []
    assert sorted(ids(index, "garden", since=date(2026, 7, 8), until=date(2026, 7, 15))) == every[1:3]
    assert sorted(ids(index, "garden", exclude=[every[0], every[2]])) == [every[1], every[3]]
    assert ids(index, "garden on 8 July", paths=[days[0].path], exclude=[every[1]]) == [every[0]]
    assert ids(index, "8 July", until=date(2026, 7, 5)) == []
    with pytest.raises(BadId):
        ids(index, "garden", paths=["2026/07/01/1000/../.."])


def test_the_persons_name_stands_for_what_they_said(tmp_path):
    talk = a_slice("2026-07-05-1000", "The garden needs rain", "Alice, what grows in the garden?")
    index = index_of(tmp_path, talk, RUN)
    asked = "What did Alice say of the garden?"
    assert found(index, asked, unit="turn")[0].turns[0].role == "agent"
    assert found(index, asked, unit="turn", person="Alice")[0].turns[0].role == "user"
    assert ids(index, asked, person="Alice")[0] == talk.slice_id


def test_a_second_scorer_has_its_say(kitchen):
    def knees(refs):
        assert {ref.slice_id for ref in refs} == {CAKE.slice_id}
        return [1.0 if (ref.turn_id, ref.role) == ("t1", "user") else 0.0 for ref in refs]

    assert found(kitchen, "walnut", unit="turn")[0].turns[0].turn_id == "t0"
    without = {(hit.turns[0].turn_id, hit.turns[0].role): hit.score for hit in found(kitchen, "walnut", unit="turn")}
    with_it = {
        (hit.turns[0].turn_id, hit.turns[0].role): hit.score
        for hit in found(kitchen, "walnut", unit="turn", second=knees)
    }
    assert with_it["t1", "user"] == pytest.approx(without["t1", "user"] + 0.5)


def test_an_answer_gains_from_what_it_answers():
    """Neither entry has the word; the one after it is worth more than the one before."""
    candidate = Candidate(minute=1, length=5, title=" ", body=" hm \n kite \n yes ", roles="aua", nearness=0)
    totals = Totals(slices=1, slice_tokens=3, entries=3, entry_tokens=3, person_entries=1)
    before, own, after = scored([candidate], [Asked("kite", 1, 1)], totals)[0].entries
    assert own > after > before > 0


def test_a_token_beside_itself_counts_each_time():
    totals = Totals(slices=2, slice_tokens=6, entries=2, entry_tokens=6, person_entries=2)
    once = Candidate(minute=1, length=3, title=" ", body=" ha ho hi ", roles="u", nearness=0)
    often = Candidate(minute=2, length=3, title=" ", body=" ha ha ha ", roles="u", nearness=0)
    apart = Candidate(minute=3, length=5, title=" ", body=" ha x ha x ha ", roles="u", nearness=0)
    scores = {one.minute: one.score for one in scored([once, often, apart], [Asked("ha", 3, 3)], totals)}
    assert scores[2] > scores[3] > scores[1]


def test_common_words_bring_candidates_only_where_there_are_too_few():
    totals = Totals(slices=20_000)
    rare, common, commoner = (Asked(term, n, n) for term, n in (("a", 9), ("b", 5000), ("c", 6000)))
    assert _telling([rare, common, commoner], totals) == (["a"], ["b"])
    assert _telling([common, commoner], totals) == ([], ["b", "c"])
    assert _telling([rare, Asked("d", 1600, 1600), common], totals) == (["a", "d"], [])
    assert _telling([Asked("d", 800, 800)], Totals(slices=900)) == (["d"], [])
    assert _telling([rare, Asked("alic", 20_000, 9, is_name=True)], totals) == (["a"], ["alic"])
    assert len(_telling([Asked(f"t{n}", n, n) for n in range(40)], totals)[0]) == 10


def test_common_words_alone_find_the_best_of_the_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(candidates, "COMMON_SLICES", 2)
    monkeypatch.setattr(candidates, "NEWEST", 4)
    days = [a_slice(f"2026-07-{day:02}-1000", "The garden, as ever and always") for day in range(1, 8)]
    index = index_of(tmp_path, *days, replace(RUN, entries=()), a_slice("2026-07-09-1000", "Garden", "garden"))
    assert ids(index, "garden") == ["2026-07-09-1000", "2026-07-07-1000", "2026-07-06-1000", "2026-07-05-1000"]
    assert ids(index, "garden", until=date(2026, 7, 2)) == ["2026-07-02-1000", "2026-07-01-1000"]


def test_a_snippet_shows_where_most_words_stand_together():
    text = "A walnut here. " + "Nothing at all. " * 40 + "Then a walnut cake with cream. " + "Nothing more. " * 40
    shown = snippet(text, {"walnut", "cake", "cream"})
    assert len(shown.text) <= LENGTH + 2
    assert (shown.text[0], shown.text[-1]) == ("…", "…")
    assert [shown.text[begin:finish] for begin, finish in shown.matches] == ["walnut", "cake", "cream"]


@pytest.mark.parametrize("sign", ["ดี", "👨‍👩‍👧", "e\u0301"])
def test_a_snippet_parts_no_mark_from_its_character(sign):
    for shift in range(len(sign)):
        text = "x" * shift + sign * 200 + "walnut" + "x" * shift + sign * 200
        shown = snippet(text, {"walnut"}).text.strip("…")
        signs = shown.replace("walnut", "").replace("x", "")
        assert signs == sign * (len(signs) // len(sign)), shift


def test_neighbouring_pairs_are_marked_as_one():
    assert snippet("今天玩成语接龙游戏", {"成语", "语接", "接龙"}).matches == ((3, 7),)


@settings(deadline=None)
@given(
    st.text(alphabet="ab 今天龙é\u0301👨‍👩", max_size=900),
    st.sets(st.sampled_from(["a", "b", "ab", "今天", "天龙", "é"])),
)
def test_a_snippet_is_part_of_the_text_and_its_matches_lie_in_it(text, asked):
    shown = snippet(text, asked)
    assert shown.text.removeprefix("…").removesuffix("…") in text
    ends = [0, *(end for match in shown.matches for end in match), len(shown.text)]
    assert ends == sorted(ends)
