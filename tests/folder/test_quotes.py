"""Whether words were said: what a quotation may differ in, and what is not the speaker's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder.quotes import fold, occurs, own_words, says_enough


def test_it_works():
    assert occurs("I’ve moved\nto “Berlin”.", 'Well, I\'ve moved to "Berlin" now')
    assert not occurs("I moved to Berlin", "I have not moved to Berlin")


@pytest.mark.parametrize("quote", ["", " ", "“”", "...", "\u200b"])
def test_nothing_stands_nowhere(quote):
    assert not occurs(quote, "anything ... at all")


@given(st.text(), st.text(), st.text())
def test_what_was_said_is_found(before, quote, after):
    text = f"{before} {quote} {after}"
    assert occurs(quote, text) or not fold(quote).strip(" \"'.,;:!?…。、")


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("quote", "text", "enough"),
    [
        ("Yes!", "yes", True),
        ("yes", "yes, I moved", False),
        ("moved", "yes, I moved", True),
        ("搬家", "我搬家了", True),
        ("我", "我搬家了", False),
    ],
)
def test_a_quotation_says_something_or_all(quote, text, enough):
    assert says_enough(quote, text) is enough


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("mine\n> yours\n  > yours too\nmine again", "mine\nmine again"),
        ("mine\n```\nyours\n```\nmine", "mine\nmine"),
        ("mine\n~~~ text\nyours\n```\nyours\n~~~~\nmine", "mine\nmine"),
        ("mine\n```\nyours to the end", "mine"),
        ("1 > 0 and `code` is mine", "1 > 0 and `code` is mine"),
    ],
)
def test_quoted_lines_are_not_the_speakers_own(text, own):
    assert own_words(text) == own
