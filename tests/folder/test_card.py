"""The user card: reading whatever a person made of it, and saying what is wrong with its shape."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.folder.card import (
    ENTRY_CHARACTERS,
    PROBLEMS,
    SECTIONS,
    Card,
    CardEntry,
    Receipt,
    empty_card,
    parse_card,
    problems,
    render_entry,
)
from memory.folder.errors import Damaged

GOLDEN = Path(__file__).parents[1] / "golden"
UPDATED = "2026-08-10T22:04:11.200Z"
FRONT = f"---\nupdated: '{UPDATED}'\n---\n"


def card_with(*lines: str) -> str:
    return f"{FRONT}# Previously on Alice\n\n" + "\n".join(lines) + "\n"


def test_it_works():
    card = parse_card((GOLDEN / "card.md").read_bytes())
    assert (card.updated, card.slice) == (datetime(2026, 8, 10, 22, 4, 11, 200000, tzinfo=UTC), "2026-08-10-2130")
    assert card.title == "Previously on Alice"
    assert [section.name for section in card.sections] == list(SECTIONS)
    horizon = card.section("Horizon")
    assert horizon is not None
    assert horizon.entries == (
        CardEntry(
            text="Race day — by 2026-10-12",
            receipts=(Receipt("2026/08/10/2130", "mVhV2g"), Receipt("2026/07/01/0915", "Ab12cQ")),
            line=17,
            last_line=17,
        ),
    )
    assert problems((GOLDEN / "card.md").read_text(encoding="utf-8")) == []


def test_the_empty_card_has_headings_only():
    text = empty_card("Alice", UPDATED)
    assert text.startswith(f"{FRONT}# Previously on Alice\n\n## Identity\n")
    assert text.endswith("\n## How to be with them\n")
    card = parse_card(text)
    assert [(section.name, section.entries) for section in card.sections] == [(name, ()) for name in SECTIONS]
    assert card.slice == ""
    assert problems(text) == []


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("", "Previously"),
        ("小明", "Previously on 小明"),
        ("Alice\n## Now\n- rich", "Previously on Alice ## Now - rich"),
        ("\u202eecilA", "Previously on ecilA"),
        ("x" * 300, "Previously on " + "x" * 100),
    ],
)
def test_no_name_breaks_the_empty_card(name, title):
    card = parse_card(empty_card(name, UPDATED))
    assert card.title == title
    assert [section.entries for section in card.sections] == [()] * len(SECTIONS)


@pytest.mark.parametrize(
    ("line", "text", "receipts"),
    [
        ("- Name: Alice", "Name: Alice", ()),
        ("* Name: Alice  ", "Name: Alice", ()),
        ("- Ran — [2026/08/10/2130#mVhV2g]", "Ran", (("2026/08/10/2130", "mVhV2g"),)),
        ("- Ran [2026/08/10/2130#mVhV2g]", "Ran", (("2026/08/10/2130", "mVhV2g"),)),
        (
            "- Ran – [2026/08/10/2130#a], [2026/08/11/0700#b]",
            "Ran",
            (("2026/08/10/2130", "a"), ("2026/08/11/0700", "b")),
        ),
        ("- Said [2026/08/10/2130#a] twice", "Said [2026/08/10/2130#a] twice", ()),
        ("- Ran — [2026/13/10/2130#a]", "Ran — [2026/13/10/2130#a]", ()),
        ("- Ran — [../../etc#a]", "Ran — [../../etc#a]", ()),
        ("- [2026/08/10/2130#a]", "", (("2026/08/10/2130", "a"),)),
    ],
)
def test_receipts_come_off_the_end_of_an_entry(line, text, receipts):
    (section,) = parse_card(card_with("## Past", line)).sections
    (entry,) = section.entries
    assert (entry.text, entry.receipts) == (text, tuple(Receipt(*receipt) for receipt in receipts))


WORDS = st.text(st.sampled_from("ab —中[]#-,;"), max_size=20).map(lambda text: text.strip(" —–,;-"))
TURN_IDS = st.text(st.sampled_from("aZ09_-"), min_size=1, max_size=16)
RECEIPTS = st.lists(st.builds(Receipt, st.just("2026/08/10/2130"), TURN_IDS), max_size=4)


@given(WORDS, RECEIPTS)
@example("[2026/08/10/2130#x] and", [])
def test_a_rendered_entry_reads_as_it_was(words, receipts):
    (section,) = parse_card(card_with("## Past", render_entry(words, receipts))).sections
    (entry,) = section.entries
    assert (entry.text, entry.receipts) == (" ".join(words.split()), tuple(receipts))


def test_what_a_person_writes_by_hand_is_kept():
    text = card_with(
        "A word of my own",
        "## Hobbies ##",
        "Chess",
        "- Long walks",
        "  by the sea",
        "  - Lisbon",
        "",
        "## Now",
        "- Busy",
    )
    loose, hobbies, now = parse_card(text).sections
    assert (loose.name, [entry.text for entry in loose.entries]) == ("", ["A word of my own"])
    assert hobbies.name == "Hobbies"
    assert [(entry.text, entry.line, entry.last_line, entry.item) for entry in hobbies.entries] == [
        ("Chess", 8, 8, False),
        ("Long walks by the sea", 9, 10, True),
        ("Lisbon", 11, 11, True),
    ]
    assert (now.name, now.line) == ("Now", 13)


def test_a_card_may_lack_front_matter_and_have_other_line_ends():
    plain = parse_card("# Previously on Alice\n\n## Past\n- Ran\n")
    assert (plain.updated, plain.slice, plain.title) == (None, "", "Previously on Alice")
    text = (GOLDEN / "card.md").read_text(encoding="utf-8")
    assert parse_card("\ufeff" + text.replace("\n", "\r\n")) == parse_card(text)


@pytest.mark.parametrize(
    "data", [b"\xff", b"---\nupdated: 'never closed\n---\n", b"---\n- a list\n---\n", b"---\na: *b\n---\n"]
)
def test_a_card_that_cannot_be_read_is_damaged(data):
    with pytest.raises(Damaged) as caught:
        parse_card(data)
    assert caught.value.path == "memory/previously.md"


@given(st.one_of(st.binary(), st.text(st.sampled_from("-#[]: \n\r'\"\ufeffupdatedslice20260810T&*!{"), max_size=120)))
@example("---\n" + "[" * 10_000 + "\n---\n")
@example("\ud83d")
@example("---\n\ud83d\n---\n")
def test_any_bytes_are_a_card_or_damaged(data):
    try:
        outcome: object = parse_card(data)
    except Damaged as damage:
        outcome = damage.why
    assert outcome
    assert isinstance(outcome, Card | str)


@given(st.text(st.sampled_from("-#[]: \n\r'upd20/"), max_size=120))
def test_problems_of_any_text_have_a_code_and_a_line(text):
    for problem in problems(text):
        code, _, line = problem.partition(":")
        assert code in PROBLEMS
        assert 1 <= int(line) <= text.count("\n") + 1


PROBLEM_CASES = [
    ("# Previously on Alice\n", ["no-front-matter:1"]),
    ("---\nupdated: 'x\n---\n# Previously on Alice\n", ["bad-front-matter:1"]),
    ("---\nupdated: today\nslice: ..\n---\n# Previously on Alice\n", ["bad-slice:1", "bad-updated:1"]),
    (FRONT + "\n## Past\n", ["no-title:1"]),
    (card_with("Hello"), ["outside-section:6"]),
    (card_with("## Past", "", "## Pets", "## Past"), ["unknown-section:8", "section-twice:9"]),
    (card_with("## Past", "Hello", "-"), ["not-an-entry:7", "empty-entry:8"]),
    (card_with("## Past", "- " + "x" * 300, "- " + "x" * 301), ["entry-too-long:8"]),
    (card_with("## Now", *["- Busy"] * 9), ["too-many-entries:14"]),
    (card_with("## Now", "- Ran — [2026/13/10/2130#a]", "- Ran [2026-8-1#x]"), ["bad-receipt:7", "bad-receipt:8"]),
]


@pytest.mark.parametrize(("text", "expected"), PROBLEM_CASES)
def test_problems(text, expected):
    assert problems(text) == expected


def test_every_code_has_a_case():
    found = {problem.partition(":")[0] for _, expected in PROBLEM_CASES for problem in expected}
    assert found == set(PROBLEMS)


def test_receipts_do_not_count_towards_the_length_of_an_entry():
    receipts = [Receipt("2026/08/10/2130", "mVhV2g")] * 5
    assert problems(card_with("## Past", render_entry("x" * ENTRY_CHARACTERS, receipts))) == []
