"""The tokeniser: what a text's words are, in any script."""

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder.search import tokens
from memory.folder.search.tokens import character_tokens, terms, terms_and_characters

TEXTS = (
    st.text()
    | st.text(alphabet="abS' ’_-2今天的了龙กัดด้ीनはがｶﾞ가각Aé\u0301ß①ﷺ\t")
    | st.text(st.characters(codec="ascii"))
)


def test_it_works():
    assert terms("Alice was running; she ran to Bob's café.") == ["alic", "run", "ran", "bob", "café"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("今天玩成语接龙游戏", "成语接龙"),
        ("今天玩成语接龙游戏", "接龙"),
        ("しりとりをしよう", "しりとり"),
        ("끝말잇기 하자", "끝말잇기"),
        ("поход в горы", "горы"),
        ("สวัสดีครับ", "สวัสดี"),
        ("नमस्ते दुनिया", "नमस्ते"),
        ("καλημέρα κόσμε", "ΚΌΣΜΕ"),
        ("步2重跑gen-itgc后", "itgc"),
        ("步2重跑gen-itgc后", "gen-itgc"),
        ("我用Python写代码", "python"),
        ("Straße", "STRASSE"),
    ],
)
def test_the_tokens_of_a_part_are_among_those_of_the_whole(text, part):
    assert terms(part)
    assert set(terms(part)) <= set(terms(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("ＡＰＥＸ　２０２６", "apex 2026"),
        ("ｶﾞｷﾞｸﾞ", "ガギグ"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
        ("Alice’s", "alice"),
        ("don't", ""),
        ("HORSES", "horse"),
    ],
)
def test_forms_of_one_word_are_one_token(one, other):
    assert terms(one) == terms(other)


@pytest.mark.parametrize("one", ["education", "吧台", "Bar", "สดี"])
def test_accents_and_variants_stay_apart(one):
    other = {"education": "éducation", "吧台": "吧檯", "Bar": "Bär", "สดี": "สดา"}[one]
    assert terms(one) != terms(other)


def test_a_combining_mark_stays_with_its_letter():
    assert terms("नमस्ते") == ["नमस्ते"]
    assert terms("สดี") == ["สดี"]
    assert all(unicodedata.category(term[0])[0] != "M" for term in terms("สวัสดีครับ"))


def test_function_words_and_pairs_of_function_characters_are_no_tokens():
    assert terms("What is it that you have?") == []
    assert terms("我们的") == []
    assert terms("我的猫") == ["的猫"]


def test_a_long_run_is_known_by_its_beginning():
    assert terms("k" * 100_000) == ["k" * tokens.LONGEST_WORD]


def test_characters_are_found_one_by_one():
    assert terms_and_characters("今天 with Bob สดี")[1] == {"今", "天", "ส", "ดี"}
    assert [(one.term, one.begin, one.finish) for one in character_tokens("a 今天")] == [("今", 2, 3), ("天", 3, 4)]


@given(TEXTS)
def test_places_say_what_the_tokens_are(text):
    placed = list(tokens.tokens(text))
    assert [token.term for token in placed] == terms(text)
    assert all(0 <= token.begin < token.finish <= len(text) for token in placed)
    # The words of a place are those of the token, unless it stands for a longer run.
    assert all(token.term in terms(text[token.begin : token.finish]) for token in placed)


@given(TEXTS)
def test_a_token_has_nothing_that_could_end_it_or_be_taken_for_syntax(text):
    found, characters = terms_and_characters(text)
    for term in (*found, *characters):
        assert term
        assert not re.search(r"[\s\"'*():^{}+\0-]", term)


@given(TEXTS)
def test_tokens_do_not_depend_on_how_a_text_is_composed(text):
    assert set(terms(unicodedata.normalize("NFC", text))) == set(terms(unicodedata.normalize("NFD", text)))


def test_threads_may_share_it():
    words = [f"{stem}{ending}" for stem in ("walk", "climb", "paint", "cook") for ending in ("ing", "ed", "s", "er")]
    alone = [terms(word) for word in words]
    tokens._word_term.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(terms, words * 50))
    assert together == alone * 50
