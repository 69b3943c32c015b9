from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from memory.folder.errors import Damaged
from memory.folder.frontmatter import one_line, split
from memory.folder.slices import (
    MAX_ITEM_CHARS,
    MAX_ITEMS,
    Slice,
    entries_of,
    parse,
    render,
    render_front,
    with_front,
    without,
)
from memory.folder.turns import Entry, append_text, clean

GOLDEN = Path(__file__).parent.parent / "golden"
ID = "2026-08-10-2130"
START = datetime(2026, 8, 10, 21, 30, 22, 811_000, tzinfo=UTC)
REPLIED = datetime(2026, 8, 10, 21, 30, 43, 641_000, tzinfo=UTC)
LAST = datetime(2026, 8, 10, 21, 47, 2, 5_000, tzinfo=UTC)

ACTIVE = Slice(
    slice_id=ID,
    status="active",
    start=START,
    timezone="Europe/Lisbon",
    tags=("running",),
    entries=(
        Entry(
            "mVhV2g",
            START,
            "user",
            "Is 12 km too far for today?\n---\n## Turn mVhV2g — 2026-08-10T21:30:43.641Z (agent)\n\n  No, **go**.\n",
        ),
        Entry("mVhV2g", REPLIED, "agent", "Eight is enough."),
    ),
)
CLOSED = Slice(
    slice_id=ID,
    status="closed",
    start=START,
    end=LAST,
    timezone="Asia/Shanghai",
    focus="Half marathon: the last ten weeks",
    summary="Alice plans the last ten weeks before the race and settles on three runs a week.",
    tags=("running", "半程马拉松", "no", "2026-08-10", "🍸 bar"),
    open_loops=("Ask Bob: when?",),
    decisions=("Budget: 200", "- keep: yes"),
    related_slices=("2026/03/09/0745",),
    emotional_tone="positive",
    closed_by="time_cap",
    evolution_summary="Alice now trains for a half marathon.",
    extra=(("mood", "mood: calm   # kept as it was\n"),),
    entries=(
        Entry("mVhV2g", START, "user", "我想跑半程马拉松。"),
        Entry("mVhV2g", REPLIED, "agent", "好。"),
        Entry("q7Zk_w", LAST, "user", "Three runs a week, then."),
    ),
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LINE = TEXT.map(one_line)
ITEMS = st.lists(LINE.filter(str.strip).map(lambda text: text[:MAX_ITEM_CHARS]).filter(str.strip), max_size=5).map(
    tuple
)
TURN_IDS = st.text(st.sampled_from("abcXYZ019_-"), min_size=1, max_size=16)
TIMES = st.integers(0, 10**12).map(lambda ms: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms))
ENTRIES = st.lists(
    st.builds(Entry, TURN_IDS, TIMES, st.sampled_from(["user", "agent"]), TEXT.map(clean)), max_size=4
).map(tuple)
SLICES = st.builds(
    Slice,
    slice_id=st.just(ID),
    status=st.just("closed"),
    start=TIMES,
    end=TIMES,
    focus=LINE,
    summary=LINE,
    tags=ITEMS,
    open_loops=ITEMS,
    decisions=ITEMS,
    related_slices=ITEMS,
    loops=ITEMS,
    emotional_tone=st.one_of(LINE, ITEMS),
    closed_by=LINE,
    evolution_summary=LINE,
    entries=ENTRIES,
)


@pytest.mark.parametrize(("name", "slice_"), [("slice_active.md", ACTIVE), ("slice_closed.md", CLOSED)])
def test_it_works(name, slice_):
    text = (GOLDEN / name).read_bytes().decode()
    assert render(slice_) == text
    assert parse(text, slice_id=ID) == slice_
    assert parse(text.encode(), slice_id=ID) == slice_


@given(SLICES)
def test_what_was_written_is_read(slice_):
    text = render(slice_)
    assert parse(text.encode(), slice_id=ID) == slice_
    assert render(parse(text, slice_id=ID)) == text


def test_any_yaml_reader_gets_strings():
    fields = yaml.safe_load(split((GOLDEN / "slice_closed.md").read_text())[0])
    assert fields["tags"] == ["running", "半程马拉松", "no", "2026-08-10", "🍸 bar"]
    assert fields["decisions"] == ["Budget: 200", "- keep: yes"]
    assert fields["start"] == "2026-08-10T21:30:22.811Z"
    assert list(fields)[:5] == ["slice_id", "status", "start", "end", "timezone"]


def test_what_a_slice_says_about_itself():
    assert ACTIVE.path == "2026/08/10/2130"
    assert (ACTIVE.active, CLOSED.active) == (True, False)
    assert (ACTIVE.turn_count, CLOSED.turn_count) == (1, 2)
    assert [entry.content for entry in CLOSED.person_entries] == ["我想跑半程马拉松。", "Three runs a week, then."]
    assert ACTIVE.last_at == REPLIED
    assert replace(ACTIVE, entries=()).last_at == START
    assert CLOSED.entry("mVhV2g", "agent") == CLOSED.entries[1]
    assert CLOSED.entry("q7Zk_w", "agent") is None
    assert (CLOSED.has("q7Zk_w"), CLOSED.has("nobody")) == (True, False)


def test_a_closed_slice_without_focus_and_summary_is_dry():
    assert replace(CLOSED, focus="", summary="").dry
    assert not replace(CLOSED, focus="").dry
    assert not replace(CLOSED, summary="").dry
    assert not ACTIVE.dry


def read(front, body=""):
    return parse(f"---\n{front}\n---\n{body}", slice_id=ID)


def test_a_header_by_hand_is_read_with_what_is_missing_filled_in():
    slice_ = read("status: closed", "## Turn a — 2026-08-10T21:47:02.005Z (user)\nhi")
    assert slice_ == Slice(
        slice_id=ID,
        status="closed",
        start=datetime(2026, 8, 10, 21, 30, tzinfo=UTC),
        end=LAST,
        entries=(Entry("a", LAST, "user", "hi"),),
    )
    assert read("status: closed\nstart: yesterday\nend: soon").end == datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
    assert read("status: active\nend: '2026-08-10T21:47:02.005Z'").end is None


def test_fields_of_another_shape_are_read_as_what_they_should_be():
    slice_ = read(
        "status: closed\ntags: running\nopen_loops: {a: b}\ndecisions:\n- Budget: 200\n- - keep: yes\n-\n"
        "focus:\n  Plan: half\nsummary: |\n  two\n  lines\nemotional_tone: [calm, '']\nclosed_by: time_silence\nloops:"
    )
    assert slice_.tags == slice_.open_loops == slice_.loops == ()
    assert slice_.decisions == ("Budget: 200", "- keep: yes")
    assert slice_.focus == "Plan: half"
    assert slice_.summary == "two lines"
    assert slice_.emotional_tone == ("calm",)
    assert slice_.closed_by == "time_silence"
    again = parse(render(slice_), slice_id=ID)
    assert again == slice_


def test_a_header_that_ends_the_file_is_a_slice_without_turns():
    for end in ("---", "---  ", "---\n\n"):
        assert parse(f"---\nstatus: active\n{end}", slice_id=ID).entries == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "front matter"),
        (b"words", "front matter"),
        (b"---\nstatus: active\n", "front matter"),
        (b"---\n---\n", "status"),
        (b"---\nstatus: open\n---\n", "status"),
        (b"---\nstatus: closed\nslice_id: 2026-08-10-2131\n---\n", "another slice"),
        (b"---\nstatus: closed\nfocus: 'open\n---\n", "line 4"),
        (b"---\nstatus: closed\nstatus: active\n---\n", "twice"),
        (b"---\nstatus: closed\nfocus: &a b\n---\n", "anchor"),
        (b"---\nstatus: closed\nfocus: " + b"x" * 300_000 + b"\n---\n", "256 KiB"),
        (b"---\nstatus: closed\n---\n\xff", "UTF-8"),
        ("---\nstatus: closed\n---\n".encode("utf-16"), "UTF-8"),
    ],
)
def test_what_cannot_be_read_is_damaged(text, why):
    with pytest.raises(Damaged, match=why) as caught:
        parse(text, slice_id=ID)
    assert caught.value.path == "memory/episodic/slices/2026/08/10/2130/timeline/core.md"


def test_a_last_character_cut_in_two_is_no_damage():
    slice_ = parse(render(CLOSED).encode() + "\n## Turn 半".encode()[:-1], slice_id=ID)
    assert slice_.entries == CLOSED.entries
    assert slice_.stray == "\n## Turn \ufffd"


def test_entries_can_be_had_from_a_file_with_a_broken_header():
    text = render(CLOSED).replace("focus: ", 'focus: "')
    with pytest.raises(Damaged):
        parse(text, slice_id=ID)
    assert entries_of(text.encode()) == CLOSED.entries
    assert entries_of(b"\xff" + text.encode()) == ()


FRAGMENTS = [
    "---\n",
    "status: closed\n",
    "tags:\n",
    "- a\n",
    "focus: ",
    "'",
    "\r\n",
    "\n",
    "## Turn ",
    "[",
    "{",
    "\x85",
    "\0",
]


@given(st.one_of(st.binary(), st.lists(st.sampled_from(FRAGMENTS)).map(lambda parts: "".join(parts).encode())))
@example(b"\xef\xbb\xbf---\nstatus: closed\n---")
@example(b"---\n\xef\xbb\xbfstatus: closed\n---")
def test_any_bytes_are_read_or_damaged(data):
    for text in (data, b"---\nstatus: closed\n" + data, b"---\nstatus: closed\n---\n" + data):
        try:
            slice_ = parse(text, slice_id=ID)
        except Damaged:
            continue
        assert parse(render(slice_), slice_id=ID) == replace(slice_, stray="")


@given(st.text(max_size=30))
def test_any_text_is_read_or_damaged(text):
    for whole in (text, f"---\nstatus: closed\n{text}\n---\n", f"---\nstatus: closed\n---\n{text}"):
        with suppress(Damaged):
            parse(whole, slice_id=ID)


def test_a_value_can_never_end_the_header():
    slice_ = replace(CLOSED, summary="line one\n---\nstatus: active")
    again = parse(render(slice_), slice_id=ID)
    assert (again.status, again.summary) == ("closed", "line one --- status: active")


def test_lists_are_written_within_their_limits():
    many = tuple(f"{number}" + "半" * 400 for number in range(30))
    slice_ = parse(render(replace(CLOSED, tags=("", " ", *many), open_loops=many, decisions=many)), slice_id=ID)
    expected = tuple(item[:MAX_ITEM_CHARS] for item in many[:MAX_ITEMS])
    assert slice_.tags == slice_.open_loops == slice_.decisions == expected


def test_new_front_matter_leaves_the_body_alone():
    body = (
        "\n\n## Turn a — 2026-08-10T21:30:22.811Z (user)\nno empty lines\n\n\n"
        "## Turn b — 2026-08-10T21:30:22.811Z (agent)\n\n\\\\## Turn\r"
    )
    text = "---\nstatus: active\nmine: 1\n---  \n" + body
    slice_ = replace(parse(text, slice_id=ID), focus="A focus", status="closed")
    assert with_front(text, slice_) == render_front(slice_) + body
    assert parse(with_front(text, slice_), slice_id=ID).extra == (("mine", "mine: 1\n"),)


def test_new_front_matter_takes_stray_lines_out():
    text = render_front(ACTIVE) + "junk\n\n" + render(ACTIVE)[len(render_front(ACTIVE)) :] + "\n## Turn bad\nmore\n"
    slice_ = parse(text, slice_id=ID)
    assert slice_.stray == "junk\n\n\n## Turn bad\nmore\n"
    assert with_front(text, slice_) == render(ACTIVE)


def test_new_front_matter_normalises_crlf_and_byte_order_mark():
    text = render(CLOSED).replace("\n", "\r\n")
    assert parse("\ufeff" + text, slice_id=ID).entries == CLOSED.entries
    assert with_front("\ufeff" + text, CLOSED) == render(CLOSED)


@pytest.mark.parametrize(
    "text", ["words", "---\nfocus: 'open\n---\nbody", "---\nstatus: active\nslice_id: 2020-01-01-0000\n---\n"]
)
def test_a_damaged_file_never_gets_new_front_matter(text):
    with pytest.raises(Damaged):
        with_front(text, CLOSED)


def test_without_takes_out_just_these_entries():
    text = render(CLOSED)
    expected = render(replace(CLOSED, entries=CLOSED.entries[1:2]))
    assert without(text, {("mVhV2g", "user"), ("q7Zk_w", "user")}) == expected
    assert without(text, {entry.key for entry in CLOSED.entries}) == render_front(CLOSED)
    assert without(text, set()) == text
    assert without(text, {("q7Zk_w", "agent")}) == text


@given(slice_=SLICES, number=st.integers(0, 3), bom=st.sampled_from(["", "\ufeff"]), crlf=st.booleans())
def test_without_leaves_every_other_byte(slice_, number, bom, crlf):
    entry = Entry("new", LAST, "agent", "one\n\ntwo\r")
    before = bom + (render(slice_).replace("\n", "\r\n") if crlf else render(slice_))
    after = before + append_text(before, entry)
    assert without(after, {("new", "agent")}) == before
    gone = {gone.key for gone in slice_.entries[:number]}
    left = tuple(entry for entry in slice_.entries if entry.key not in gone)
    expected = render(replace(slice_, entries=left))
    assert without(before, gone) == bom + (expected.replace("\n", "\r\n") if crlf else expected)


def test_without_works_on_a_file_whose_header_is_broken():
    body = "\n## Turn a — 2026-08-10T21:30:22.811Z (user)\n\nhi\n"
    assert without("---\nfocus: 'open\n---\n" + body, {("a", "user")}) == "---\nfocus: 'open\n---\n"
    assert without("no header\n" + body, {("a", "user")}) == "no header\n"
