"""Whatever a file holds, from whomever: conversations go on, nothing crashes, and no byte of the record is lost.

The files of a folder and of its run directory are overwritten with anything; then the person says something, a slice
closes, and all that is due is done.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from memory.conversation.due import due
from memory.conversation.events import fold, read_events
from memory.conversation.outcomes import outcome
from memory.folder import derived
from memory.folder.errors import Damaged
from memory.folder.frontmatter import split
from memory.folder.git import blob_id
from memory.folder.paths import (
    CARD,
    MERGES,
    STRANDS,
    agent_file,
    appendix_file,
    core_file,
    frozen_card_file,
    is_derived,
    month_file,
)
from memory.folder.slices import Slice, parse, render
from tests.conversation.talk import BEGIN, Talk
from tests.folder.test_slices import SLICES

EXAMPLES = int(os.environ.get("TEST_EXAMPLES", "2"))
"""How many contents each file is given; more of them take minutes."""

ANYTHING = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

CLOSED, ACTIVE = "2026-08-10-2130", "2026-08-10-2201"
RECORD = [
    core_file(ACTIVE), core_file(CLOSED), agent_file(ACTIVE), agent_file(CLOSED), appendix_file(ACTIVE),
    frozen_card_file(CLOSED), CARD, MERGES,
]  # fmt: skip
DERIVED = [STRANDS, month_file("2026-08"), month_file("2025-01")]
RUN = ["touched", "todo.json", "committed", "index", "derived"]

NASTY = [
    b"", b"\n", b"---", b"---\n", b"{}", b"[]", b"null", b"0", b'""', b"[[]]", b'{"a": 1}', b'{"a": [1]}', b'{"a": {}}',
    b'[{"what": "close"}]', b'{"head": 5, "blobs": {}}', b'{"head": null, "blobs": {"x": 5}}', b"\xff\xfe---\n",
    b"\xef\xbb\xbf---\nstatus: active\n---\n", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000, b"\0" * 100,
    b"1e999", b'{"a": NaN}', b'"\\ud83d"', b'{"\\ud83d": ["2026/08/10/2130"]}', b"---\n? [a\n---\n",
    b"---\r\na: b\r\n---\r\n",
    b'{"month": "2026-08", "slices": [{}]}', b'{"../../x": ["2026/08/10/2130"]}', b'{"x": ["../../../etc/passwd"]}',
    b'{"../../../x": {"ours": [], "owners": ["card"], "entries": [], "hand": null, "boundary": null}}',
    b'{"memory/previously.md": {"ours": [], "owners": ["turn x y"], "entries": [], "hand": null, "boundary": null}}',
    b'{"memory/previously.md": {"ours": [], "owners": ["card"], "entries": [["a"]], "hand": "../../x", "boundary": 1}}',
    b'{"memory/previously.md": {"ours": 1, "owners": "card", "entries": {}, "hand": null, "boundary": null}}',
    b"0123456789012345678901234567890123456789", b"--output=x", b"HEAD\n",
]  # fmt: skip
KNOWN = [
    (path, NASTY[(3 * number + 7 * step) % len(NASTY)])
    for number, path in enumerate(RECORD + DERIVED)
    for step in range(EXAMPLES)
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed slice and an open one, all committed, with every kind of file."""
    place = tmp_path_factory.mktemp("template")
    talk = Talk(place)
    talk.say("About #running")
    talk.later(minutes=31)
    talk.say("About #sleep")
    for slice_id in (CLOSED, ACTIVE):
        talk.agent(slice_id).write_text("## Cognition mVhV2g — 2026-08-10T21:30:43.641Z\n\n### Thinking\nhm\n")
    (talk.folder.root / appendix_file(ACTIVE)).write_text("no turn\n")
    (talk.folder.root / MERGES).write_text("{}\n")
    for _ in range(10):
        if not talk.sweep():
            break
    talk.git("add", "-A")
    talk.git("commit", "-q", "-m", "by hand")
    talk.say("And so on")
    assert [found.slice_id for found in talk.folder.newest(3) if isinstance(found, Slice)] == [ACTIVE, CLOSED]
    return place


@pytest.fixture(scope="module")
def places(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return iter_places(template, tmp_path_factory.mktemp("copies"))


def iter_places(template: Path, below: Path) -> Iterator[Path]:
    """A fresh copy of the template each time; the one before goes."""
    number = 0
    while True:
        place = below / str(number)
        shutil.copytree(template, place, symlinks=True)
        yield place
        shutil.rmtree(place)
        number += 1


@st.composite
def contents(draw: st.DrawFn, before: bytes = b"") -> bytes:
    """Anything at all, something nasty, or the file with a piece of it cut out and another put in."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1 or not before:
        return draw(st.sampled_from(NASTY))
    begin = draw(st.integers(0, len(before)))
    end = draw(st.integers(begin, len(before)))
    piece = draw(st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"\n", b"\r\n", b"---\n", b'"', b"## Turn "])))
    return before[:begin] + piece + before[end:]


def live_on(talk: Talk) -> None:
    """A turn, a boundary, another turn, and all that is due; each message is where it was said to be."""
    talk.clock = BEGIN
    talk.later(minutes=40)
    said = [talk.say("Going on with #swimming")]
    talk.later(minutes=31)
    said.append(talk.say("And on with #reading"))
    for _ in range(15):
        if not talk.sweep():
            break
    assert due(talk.folder, talk.clock) == []
    for taken in said:
        found = talk.slice(taken.slice_id)
        assert [entry.role for entry in found.entries if entry.turn_id == taken.turn_id] == ["user", "agent"]
        assert found.entry(taken.turn_id, "agent")
    talk.git("fsck", "--strict", "--full")


def is_kept(talk: Talk, path: str, data: bytes) -> bool:
    """Whether the bytes, or for a slice's record its lines, are on disk or in git."""
    now = talk.folder.read(path) or b""
    if now.startswith(data):
        return True
    objects = talk.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    if blob_id(data) in objects:
        return True
    there = Counter(_lines(now + b"\n" + (talk.folder.read(appendix_file(ACTIVE)) or b"")))
    return not Counter(_lines(_body(data))) - there


def _lines(data: bytes) -> list[bytes]:
    return [line.strip(b"\r") for line in data.split(b"\n")]


def _body(data: bytes) -> bytes:
    """The record proper: front matter is rewritten by a close."""
    return data.partition(b"\n---")[2] if data.startswith(b"---") else data


def test_it_works(places: Iterator[Path]) -> None:
    talk = Talk(next(places))
    live_on(talk)
    talk.check_sound()
    assert set(talk.folder.strands()) >= {"running", "sleep", "swimming", "reading"}


@pytest.mark.parametrize("path", RECORD)
@ANYTHING
@given(data=st.data())
def test_any_bytes_in_the_record(places: Iterator[Path], path: str, data: st.DataObject) -> None:
    talk = Talk(next(places))
    file = talk.folder.root / path
    mangled = data.draw(contents(file.read_bytes()))
    file.write_bytes(mangled)
    live_on(talk)
    assert is_kept(talk, path, mangled)


@pytest.mark.parametrize(("path", "nasty"), KNOWN, ids=lambda value: str(value)[:60])
def test_known_nasty_bytes(places: Iterator[Path], path: str, nasty: bytes) -> None:
    talk = Talk(next(places))
    (talk.folder.root / path).write_bytes(nasty)
    live_on(talk)
    assert is_derived(path) or is_kept(talk, path, nasty)


@pytest.mark.parametrize("path", DERIVED)
@ANYTHING
@given(data=st.data())
def test_any_bytes_in_what_can_be_made_again(places: Iterator[Path], path: str, data: st.DataObject) -> None:
    talk = Talk(next(places))
    file = talk.folder.root / path
    file.write_bytes(data.draw(contents(file.read_bytes() if file.exists() else b"")))
    live_on(talk)
    made = derived.rebuild(talk.folder)
    assert made.months == {}
    assert set(talk.folder.strands()) == {"running", "sleep", "swimming", "reading"}
    assert talk.folder.strands() == made.strands


@pytest.mark.parametrize("name", RUN)
@ANYTHING
@given(data=st.data())
def test_any_bytes_in_the_run_directory(places: Iterator[Path], name: str, data: st.DataObject) -> None:
    talk = Talk(next(places))
    talk.clock = BEGIN
    talk.later(minutes=39)
    waiting = talk.receive("Not answered yet")
    file = talk.folder.state.directory / name
    file.write_bytes(data.draw(contents(file.read_bytes() if file.exists() else b"")))
    talk.answer(waiting)
    live_on(talk)
    found = talk.slice(waiting.slice_id)
    assert [entry.role for entry in found.entries if entry.turn_id == waiting.turn_id] == ["user", "agent"]
    talk.check_sound()


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("nasty", NASTY, ids=lambda nasty: repr(nasty[:20]))
def test_known_nasty_bytes_in_the_run_directory(tmp_path: Path, name: str, nasty: bytes) -> None:
    state = Talk(tmp_path).folder.state
    state.make()
    (state.directory / name).write_bytes(nasty)
    for read in (state.touched, state.todo, state.committed, state.index_due, state.derived_head):
        read()


@settings(max_examples=100)
@given(
    st.one_of(
        st.binary(),
        st.sampled_from(NASTY),
        st.sampled_from(["text", "step", "notice", "ended", "attempt", "waiting", "heartbeat"]).flatmap(
            lambda kind: st.dictionaries(
                st.sampled_from(["at", "text", "name", "state", "label", "detail", "code", "values", "how", "passing"]),
                st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers(), max_size=1), st.booleans()),
            ).map(lambda fields: json.dumps({"kind": kind} | fields).encode() + b"\n")
        ),
    )
)
def test_any_events_can_be_watched(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    run = tmp_path_factory.mktemp("run")
    (run / "replies").mkdir()
    (run / "replies" / f"{ACTIVE}-mVhV2g.events").write_bytes(b'{"kind": "attempt", "at": 1}\n' + data)
    (run / "replies" / f"{ACTIVE}-mVhV2g.outcome").write_bytes(data)
    state = fold(read_events(run, ACTIVE, "mVhV2g")[0])
    assert state.attempts >= 1
    assert outcome(run, ACTIVE, "mVhV2g") is None


@given(SLICES)
def test_two_yaml_parsers_read_what_we_read(slice_: Slice) -> None:
    """The front matter of any slice, for YAML 1.1 and 1.2: strings and lists of strings, and the ones that we read."""
    text = render(slice_)
    source, _ = split(text)
    assert source is not None
    found = parse(text, slice_id=slice_.slice_id)
    for read in (yaml.safe_load(source), YAML(typ="safe", pure=True).load(source)):
        for key, value in read.items():
            assert isinstance(value, str) or all(isinstance(item, str) for item in value)
            ours = getattr(found, key, None)
            if isinstance(ours, tuple):
                assert tuple(value) == ours
            elif isinstance(ours, str):
                assert value == ours
    assert render(found) == text


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from([1, 5, 31, 24 * 60, 20 * 24 * 60]), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_strands_grown_turn_by_turn_are_those_of_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, int, bool]]
) -> None:
    """Through weaves, boundaries, prunings and returns; `closes` runs the close pass at once, else it waits."""
    talk = Talk(tmp_path_factory.mktemp("strands"))
    for letter, minutes, closes in turns:
        talk.later(minutes=minutes)
        talk.say(f"About #topic-{letter}")
        if closes:
            talk.command("/close")
            talk.reload()
            talk.sweep()
    talk.later(minutes=1)
    talk.command("/close")
    for _ in range(20):
        if not talk.sweep():
            break
    made = derived.rebuild(talk.folder)
    assert talk.folder.strands() == made.strands
    assert made.months == {}
    talk.check_sound()


def test_a_damaged_slice_is_shown_with_its_path(places: Iterator[Path]) -> None:
    talk = Talk(next(places))
    talk.core(CLOSED).write_bytes(b"---\nfocus: 'unclosed\n---\n")
    with pytest.raises(Damaged) as damage:
        talk.slice(CLOSED)
    assert damage.value.path == core_file(CLOSED)
    live_on(talk)
    assert talk.core(CLOSED).read_bytes() == b"---\nfocus: 'unclosed\n---\n"
