from contextlib import suppress

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from memory.folder.errors import FrontMatterError
from memory.folder.frontmatter import MAX_BYTES, Header, one_line, parse, quote, render, split

# Any text but halves of characters, which no file can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# Texts made of what YAML gives a meaning to.
TRICKY = st.text("aynoe019 .:-+_~#'\"\\&*!|>%@`[]{},?=</\t\r\n\0\x7f\x85\xa0\u2028\u2029\ufeff🍸半")
SINGLE_WORDS = r"""
    y Y n no No NO yes on Off off true True FALSE null Null ~ None
    1e3 12:30 21:30 1:2:3 2026-08-10 2026-08-10T21:30:22.811Z 007 0o7 0x1F 0b1 1_000 +1 -1 .5 1. 1.5 .inf -.INF .NaN
    . .. = << - -- --- ... -a ? : a: a:b a#b #a [ ] {} [] , &a *a !a !!str | ' 'a' " "a" %a @a `a` it's a\ \n
    2026-08-10-2130 2026/08/10/2130 Asia/Shanghai Etc/GMT+8 🍸
"""
PHRASES = ["", " ", "  ", " a", "a ", "\ta", "a\t", "\xa0a", "a\u3000", "2026-08-10 21:30:22", "- a", "? a", ": a"]
PHRASES += ["a: b", "a #b", ", a", "> a", "半马 : 和", "🍸 bar", "a,b [c] {d}", "---\nstatus: active", "\x85", "a\x85b"]
PHRASES += ["\u2028", "a\u2029", "\ufeff", "\0", "\x7f", "\x9f"]
WORDS = [*SINGLE_WORDS.split(), *PHRASES]


def independent_readings(source):
    """What a YAML 1.1 and a YAML 1.2 parser make of front matter."""
    return yaml.safe_load(source), YAML(typ="safe", pure=True).load(source)


def test_it_works():
    source, body = split("---\nfocus: Half marathon\ntags:\n- running\n---\n\nbody\n")
    assert parse(source) == Header({"focus": "Half marathon", "tags": ("running",)}, ())
    assert body == "\nbody\n"
    assert render({"focus": "Half marathon", "tags": ("running",)}) == "---\n" + source + "---\n"


@pytest.mark.parametrize("text", WORDS)
def test_every_parser_reads_the_very_string(text):
    source = render({"key": text, "list": (text, text)}).removesuffix("---\n")
    string = one_line(text)
    expected = {"key": string, "list": [string, string]} if text else {"list": ["", ""]}
    assert independent_readings(source) == (expected, expected)
    assert parse(source.removeprefix("---\n")).fields["list"] == (string, string)


@given(text=st.one_of(TEXT, TRICKY), items=st.lists(st.one_of(TEXT, TRICKY, st.sampled_from(WORDS)), max_size=4))
@example(text="x" * 2000, items=["y" * 2000])
@example(text="word " * 500, items=["a" * 1000 + ": " + "b" * 1000])
def test_every_parser_reads_any_string(text, items):
    source = render({"key": text, "list": tuple(items)})
    expected = {"list": [one_line(item) for item in items]}
    if text:
        expected["key"] = one_line(text)
    # A document ends where the closing line begins the next one.
    header, rest = split(source)
    assert rest == ""
    assert independent_readings(header) == (expected, expected)
    assert parse(header).fields == {key: tuple(value) if key == "list" else value for key, value in expected.items()}
    assert len(header.split("\n")) == 1 + len(expected) + len(items)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Half marathon and growing up", "Half marathon and growing up"),
        ("Ines's race, 21 km (or 10?)", "Ines's race, 21 km (or 10?)"),
        ("半程马拉松", "半程马拉松"),
        ("2026-08-10-2130", "2026-08-10-2130"),
        ("2026/08/10/2130", "2026/08/10/2130"),
        ("2026-08-10T21:30:22.811Z", "'2026-08-10T21:30:22.811Z'"),
        ("Budget: 200", "'Budget: 200'"),
        ("- it's", "'- it''s'"),
        ("🍸 bar", "'🍸 bar'"),
        ("no", "'no'"),
        ("", "''"),
        ("line one\r\nline two\rline three\n", "'line one line two line three '"),
        ('a\tb "c" \\', '"a\\x09b \\"c\\" \\\\"'),
        ("\x85\u2028\ufeff", '"\\x85\\u2028\\ufeff"'),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_how_strings_are_written(text, written):
    assert quote(text) == written


def test_empty_strings_are_left_out_and_empty_lists_written():
    assert render({"focus": "", "tags": (), "loops": ("",)}) == "---\ntags: []\nloops:\n- ''\n---\n"


def test_split_takes_the_first_closing_line():
    assert split("---\na: b\n---\nintro\n---\nend") == ("a: b\n", "intro\n---\nend")
    assert split("---\n---\n---\n") == ("", "---\n")
    assert split("---\na: |\n  ---\n---\n") == ("a: |\n  ---\n", "")


@pytest.mark.parametrize(
    "text",
    ["", "---", "---\n", "a: b\n---\n", "\n---\na: b\n---\n", "--- a\n---\n", "----\n---\n", "---\na: b\n----\n"],
)
def test_a_file_without_front_matter_is_all_body(text):
    assert split(text) == (None, text)


@pytest.mark.parametrize("end", ["---", "---   ", "---\t\n", "--- \r\n"])
def test_the_closing_line_may_have_trailing_blanks_or_end_the_file(end):
    assert split("---\na: b\n" + end) == ("a: b\n", "")


def test_a_byte_order_mark_is_dropped():
    assert split("\ufeff---\na: b\n---\nbody") == ("a: b\n", "body")
    assert split("\ufeffbody") == (None, "body")


def test_crlf_line_ends_are_normalised_when_the_first_line_has_one():
    assert split("---\r\na: b\r\n---\r\none\r\ntwo\rthree\n") == ("a: b\n", "one\ntwo\rthree\n")
    assert split("---\na: b\n---\none\r\ntwo\r") == ("a: b\n", "one\r\ntwo\r")


def test_a_mapping_reads_as_its_source_text():
    source = (
        "decisions:\n- Budget: 200\n- - keep: yes\n- 🍸: [1, {a: b}]\n- plain\n"
        "focus:\n  Plan: half\n  # note\n  Bob: no\nempty: {}\n"
    )
    assert parse(source).fields == {
        "decisions": ("Budget: 200", "- keep: yes", "🍸: [1, {a: b}]", "plain"),
        "focus": "Plan: half # note Bob: no",
        "empty": "{}",
    }


def test_unknown_keys_keep_their_source():
    mine = "mood: 'calm'   # as it was\n\nnested:\n  - a: 1\n    b: |\n      text\n\n"
    header = parse("a: 1\n" + mine + "b: 2\nlast: x", known={"a", "b"})
    assert header.fields == {"a": "1", "b": "2"}
    assert header.extra == (
        ("mood", "mood: 'calm'   # as it was\n\n"),
        ("nested", "nested:\n  - a: 1\n    b: |\n      text\n\n"),
        ("last", "last: x"),
    )
    written = render(header.fields, header.extra)
    assert written == "---\na: '1'\nb: '2'\n" + mine + "last: x\n---\n"
    again = parse(split(written)[0], known={"a", "b"})
    assert render(again.fields, again.extra) == written


@given(st.text(st.sampled_from(list("ab: -'\"#|>[]{}?\n\r\x85\u2028\ufeff🍸")), max_size=40))
@example("a: 1\x85b: 2")
@example("\ufeffb: 1\na: 2")
@example("? b\n: c\na: 1")
@example("?\r>")
def test_what_was_read_can_be_written_and_read_again(source):
    try:
        header = parse(source, known={"a"})
    except FrontMatterError:
        return
    again = parse(split(render(header.fields, header.extra))[0], known={"a"})
    assert again.fields.get("a", "") == _as_written(header.fields.get("a", ""))
    assert [key for key, _ in again.extra] == [key for key, _ in header.extra]


def _as_written(value):
    return one_line(value) if isinstance(value, str) else tuple(map(one_line, value))


@pytest.mark.parametrize(
    "source",
    [
        "a: 'open",
        "a: b: c",
        "a: 1\na: 2",
        "a: &anchor 1",
        "a: &anchor 1\nb: *anchor",
        "<<: *a",
        "a: !!str 1",
        "a: ! 1",
        "a: !!python/object:os.system {}",
        "!tag\na: b",
        "{a: b}",
        "- a",
        "text",
        "  a: b",
        "? [a]\n: b",
        "? a\n: b",
        "a: 1\n...\nb: 2",
        "a: \x01",
        "a: \ud800",
        "%YAML 1.1",
        "a: b\n\tc: d",
        "a: " + "[" * 100_000,
        "a: " + "x" * MAX_BYTES,
        "a: " + "半" * (MAX_BYTES // 3),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(source):
    with pytest.raises(FrontMatterError) as caught:
        parse(source)
    assert 0 < len(caught.value.why) < 200


def test_the_reason_names_the_line_of_the_file():
    with pytest.raises(FrontMatterError, match="line 3: mapping values are not allowed"):
        parse("a: fine\nb: c: d\n")


@given(st.text())
def test_any_text_is_read_or_refused(source):
    with suppress(FrontMatterError):
        parse(source)
