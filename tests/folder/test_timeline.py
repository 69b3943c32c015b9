"""The timeline: lines, month files, reconciling them, and the one function that reads them all."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder import slices
from memory.folder.closing import close
from memory.folder.errors import BadId, NotThere
from memory.folder.paths import core_file, month_file, path_of, slice_id_at
from memory.folder.slices import Slice
from memory.folder.timeline import (
    DamagedSlice,
    Line,
    catalogue,
    line_for,
    line_of,
    lines_for,
    membership,
    newest_first,
    parse_month,
    reconcile,
    render_month,
)
from memory.folder.turns import Entry

GOLDEN = Path(__file__).parents[1] / "golden"


def slice_at(slice_id: str, *, by: str = "time_cap", **marks: object) -> Slice:
    """Return a slice of Alice's with one answered turn; `by` is what closed it, empty for an active one."""
    start = datetime.strptime(slice_id, "%Y-%m-%d-%H%M").replace(tzinfo=UTC)
    entries = (
        Entry(turn_id="mVhV2g", at=start, role="user", content=f"Hello from {slice_id}"),
        Entry(turn_id="mVhV2g", at=start + timedelta(seconds=20), role="agent", content="Hello Alice"),
    )
    opened = replace(Slice(slice_id=slice_id, status="active", start=start, entries=entries), **marks)
    return close(opened, by=by, language="en") if by else opened


def write(root: Path, *found: Slice) -> None:
    for slice_ in found:
        file = root / core_file(slice_.slice_id)
        file.parent.mkdir(parents=True)
        file.write_text(slices.render(slice_), encoding="utf-8")


def write_month(root: Path, month: str, *found: Slice) -> None:
    file = root / month_file(month)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(render_month(month, map(line_of, found)), encoding="utf-8")


def ids(found: list[Line | DamagedSlice]) -> list[str]:
    return [one.id for one in found]


def test_it_works(tmp_path):
    old, new, active = slice_at("2026-07-31-2359"), slice_at("2026-08-10-2130"), slice_at("2026-08-10-2210", by="")
    write(tmp_path, old, new, active)
    write_month(tmp_path, "2026-07", old)
    write_month(tmp_path, "2026-08", new)
    assert catalogue(tmp_path) == [line_of(active), line_of(new), line_of(old)]
    assert [line.active for line in catalogue(tmp_path)] == [True, False, False]


def test_a_folder_without_slices_has_an_empty_timeline(tmp_path):
    assert catalogue(tmp_path) == []


def test_a_line_says_what_the_slice_says():
    slice_ = slice_at("2026-08-10-2130", tags=("running",), open_loops=("which race?",), timezone="Asia/Shanghai")
    line = line_of(slice_, ("running",))
    assert (line.path, line.turns, line.strands) == ("2026/08/10/2130", 1, ("running",))
    assert (line.end, line.closed_by, line.timezone) == (slice_.end, "time_cap", "Asia/Shanghai")
    assert (line.focus, line.summary) == ("Hello from 2026-08-10-2130 (running)", "1 turn · running")
    assert not line.dry


def test_a_month_as_a_file():
    full = slice_at(
        "2026-08-10-2130",
        focus="半程马拉松",
        summary="Planned the half marathon.",
        tags=("running", "睡眠"),
        emotional_tone="positive",
        open_loops=("Ask Bob: when?",),
        decisions=("Budget: 200",),
        timezone="Asia/Shanghai",
    )
    dry = replace(slice_at("2026-08-09-0700"), focus="", summary="", emotional_tone=("glad", "tired"), entries=())
    lines = (line_of(dry), line_of(full, ("running", "睡眠")))
    text = render_month("2026-08", reversed(lines))
    assert text == (GOLDEN / "timeline-month.json").read_text(encoding="utf-8")
    assert parse_month(text) == lines


TEXTS = st.lists(st.text(max_size=5), max_size=3).map(tuple)


@given(
    st.text(max_size=5), TEXTS, st.one_of(st.text(max_size=5), TEXTS.filter(bool)), st.booleans(), st.integers(0, 100)
)
def test_reading_a_month_gives_what_was_written(text, texts, tone, dry, turns):
    line = replace(
        line_of(slice_at("2026-08-10-2130")),
        focus=text, summary=text, timezone=text, closed_by=text, tags=texts, open_loops=texts, decisions=texts,
        strands=texts, emotional_tone=tone, dry=dry, turns=turns,
    )  # fmt: skip
    assert parse_month(render_month("2026-08", [line])) == (line,)


def altered_month(**values: object) -> str:
    found = json.loads(render_month("2026-08", [line_of(slice_at("2026-08-10-2130"))]))
    found["slices"][0].update(values)
    return json.dumps(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"month": "2026-13", "slices": []}',
        '{"month": "2026-08", "slices": [',
        '{"month": "2026-08", "slices": ["2026-08-10-2130"]}',
        '{"month": "2026-07", ' + altered_month().removeprefix('{"month": "2026-08", '),
        altered_month(id="../../etc"),
        altered_month(end=""),
        altered_month(start="2026-02-30T00:00:00.000Z"),
        altered_month(turns="1"),
        altered_month(tags="running"),
        altered_month(tags=[1]),
        altered_month(focus=["a"]),
        altered_month(focus="\ud83d"),
        altered_month(dry=1),
        "[" * 100_000,
    ],
)
def test_a_corrupt_month_is_an_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - json's own errors and ours have no wording in common
        parse_month(text)


def test_membership_lists_keys_in_the_order_of_the_index():
    strands = {"b": ("2026/08/09/0700",), "a": ("2026/08/09/0700", "2026/08/10/2130")}
    assert membership(strands) == {"2026/08/09/0700": ("b", "a"), "2026/08/10/2130": ("a",)}


def test_reconciling_gives_only_the_months_that_change():
    june, july, august = (slice_at(f"2026-0{month}-10-2130", tags=("tea",)) for month in (6, 7, 8))
    before = {"2026-06": (line_of(june, ("tea",)),), "2026-07": (line_of(july),)}
    strands = {"tea": (june.path, july.path, august.path)}
    assert reconcile(before, strands, [august]) == {
        "2026-07": (line_of(july, ("tea",)),),
        "2026-08": (line_of(august, ("tea",)),),
    }
    assert reconcile(before, {"tea": (june.path,)}, []) == {}


def test_reconciling_takes_changed_slices_as_they_are_now():
    first, second, third = (slice_at(f"2026-08-{day}-2130") for day in (10, 11, 12))
    before = {"2026-08": tuple(map(line_of, (first, second, third)))}
    better = replace(first, focus="A race")
    again = slice_at("2026-08-11-2130", by="")
    after = reconcile(before, {}, [better, again], gone={third.slice_id})
    assert after == {"2026-08": (line_of(better),)}
    assert reconcile(after, {}, [better]) == {}
    assert reconcile(after, {}, [], gone={first.slice_id}) == {"2026-08": ()}


def test_slices_that_no_month_file_lists_are_read_from_their_own_files(tmp_path):
    found = [slice_at(slice_id) for slice_id in ("2026-06-10-2130", "2026-07-10-2130", "2026-08-10-2130")]
    late = slice_at("2026-07-09-0000")
    write(tmp_path, *found, late)
    write_month(tmp_path, "2026-07", found[1])
    assert catalogue(tmp_path) == [line_of(found[2]), line_of(found[1]), line_of(late), line_of(found[0])]


@pytest.mark.parametrize("damage", ["", "{", '{"month": "2026-09", "slices": []}', "\ufffd"])
def test_a_corrupt_month_file_hides_nothing(tmp_path, damage):
    found = [slice_at(f"2026-08-1{day}-2130") for day in range(3)]
    write(tmp_path, *found)
    write_month(tmp_path, "2026-08", *found)
    (tmp_path / month_file("2026-08")).write_text(damage, encoding="utf-16")
    assert catalogue(tmp_path) == [line_of(one) for one in reversed(found)]


@pytest.mark.parametrize("content", [b"", b"---\nfocus: 'never closed\n---\n", b"\xff\xfe", b"no front matter"])
def test_a_damaged_slice_is_shown_and_hides_no_other(tmp_path, content):
    found = [slice_at(f"2026-08-1{day}-2130") for day in range(3)]
    write(tmp_path, *found)
    write_month(tmp_path, "2026-08", found[0], found[2])
    (tmp_path / core_file("2026-08-11-2130")).write_bytes(content)
    newest, damaged, oldest = catalogue(tmp_path)
    assert (newest, oldest) == (line_of(found[2]), line_of(found[0]))
    assert isinstance(damaged, DamagedSlice)
    assert (damaged.id, damaged.path) == ("2026-08-11-2130", core_file("2026-08-11-2130"))
    assert damaged.why
    assert line_for(tmp_path, "2026-08-11-2130") == damaged


def test_a_slice_behind_a_symbolic_link_is_not_followed(tmp_path):
    write(tmp_path / "bobs", slice_at("2026-08-10-2130"))
    write(tmp_path / "alices", slice_at("2026-08-11-2130"))
    core = tmp_path / "alices" / core_file("2026-08-11-2130")
    core.unlink()
    core.symlink_to(tmp_path / "bobs" / core_file("2026-08-10-2130"))
    (only,) = catalogue(tmp_path / "alices")
    assert isinstance(only, DamagedSlice)
    month = tmp_path / "alices/memory/episodic/slices/2026/07"
    month.symlink_to(tmp_path / "bobs/memory/episodic/slices/2026/08")
    assert ids(catalogue(tmp_path / "alices")) == ["2026-08-11-2130"]


def test_what_lies_about_is_no_slice(tmp_path):
    write(tmp_path, slice_at("2026-08-10-2130"))
    below = tmp_path / "memory/episodic/slices/2026/08/10"
    for name in ("2460", "notes", "2131", "0001.bak"):
        (below / name).mkdir()
    (below / "2200").write_text("a file")
    (tmp_path / "memory/episodic/slices/notes.txt").write_text("a file")
    (tmp_path / "memory/episodic/slices/2026/13").mkdir()
    assert ids(catalogue(tmp_path)) == ["2026-08-10-2130"]


def test_limit_and_before(tmp_path):
    found = [slice_at(slice_id_at(datetime(2026, month, 10, 21, 30, tzinfo=UTC))) for month in range(1, 9)]
    write(tmp_path, *found)
    write_month(tmp_path, "2026-03", found[2])
    newest = [one.slice_id for one in reversed(found)]
    assert ids(catalogue(tmp_path, limit=3)) == newest[:3]
    assert ids(catalogue(tmp_path, before="2026-04-10-2130")) == newest[5:]
    assert ids(catalogue(tmp_path, before="2026-04-10-2131", limit=2)) == newest[4:6]
    assert catalogue(tmp_path, limit=0) == []
    with pytest.raises(BadId):
        catalogue(tmp_path, before="../..")


def test_older_months_are_not_read_before_they_are_asked_for(tmp_path):
    write(tmp_path, slice_at("2026-07-10-2130"), slice_at("2026-08-10-2130"))
    lines = newest_first(tmp_path)
    assert next(lines).id == "2026-08-10-2130"
    shutil.rmtree(tmp_path / "memory/episodic/slices/2026/07")
    assert list(lines) == []


def test_single_lines(tmp_path):
    listed, unlisted = slice_at("2026-08-10-2130"), slice_at("2026-08-11-2130", by="")
    write(tmp_path, listed, unlisted)
    write_month(tmp_path, "2026-08", listed)
    assert line_for(tmp_path, "2026-08-10-2130") == line_of(listed)
    assert line_for(tmp_path, "2026-08-11-2130") == line_of(unlisted)
    wanted = ["2026-08-11-2130", "2026-08-12-0000", "2026-08-10-2130"]
    assert lines_for(tmp_path, wanted) == {line.id: line for line in map(line_of, (listed, unlisted))}
    with pytest.raises(NotThere):
        line_for(tmp_path, "2026-08-12-0000")
    with pytest.raises(BadId):
        line_for(tmp_path, path_of("2026-08-10-2130"))
