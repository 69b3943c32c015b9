import os
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.folder import paths
from memory.folder.errors import BadId, NotThere, Outside

ID = "2026-08-10-2130"
PATH = "2026/08/10/2130"


def make_slice(root, slice_id):
    file = root / paths.core_file(slice_id)
    file.parent.mkdir(parents=True)
    file.write_text("")


def test_it_works():
    assert paths.parse_slice_id(ID) == ID
    assert paths.path_of(ID) == PATH
    assert paths.id_of(PATH) == ID
    assert paths.minute_of(ID) == datetime(2026, 8, 10, 21, 30, tzinfo=UTC)


@given(st.datetimes())
def test_a_minute_its_id_and_its_path_are_one(minute):
    at = minute.replace(tzinfo=UTC)
    slice_id = paths.slice_id_at(at)
    assert paths.minute_of(slice_id) == at.replace(second=0, microsecond=0)
    assert paths.id_of(paths.path_of(slice_id)) == slice_id


def test_the_id_is_the_minute_in_utc():
    assert paths.slice_id_at(datetime(2026, 8, 11, 5, 30, 59, tzinfo=timezone(timedelta(hours=8)))) == ID
    with pytest.raises(ValueError, match="time zone"):
        paths.slice_id_at(paths.minute_of(ID).replace(tzinfo=None))


BAD = [
    "",
    "2026-08-10-2130\n",
    " 2026-08-10-2130",
    "2026-08-10-2160",
    "2026-08-10-2430",
    "2026-02-29-2130",
    "2026-13-01-2130",
    "2026-00-10-2130",
    "0000-01-01-0000",
    "26-08-10-2130",
    "2026-08-10-2130-1",
    "２０２６-08-10-2130",
    "2026-08-10-../..",
    "2026-08-10-2130\0",
    "active",
]


@pytest.mark.parametrize("text", [*BAD, PATH])
def test_what_is_no_slice_id_is_refused(text):
    for function in (paths.parse_slice_id, paths.path_of, paths.minute_of, paths.core_file, paths.month_of):
        with pytest.raises(BadId):
            function(text)


@pytest.mark.parametrize("text", [*(bad.replace("-", "/") for bad in BAD), ID, f"/{PATH}", f"{PATH}/"])
def test_what_is_no_slice_path_is_refused(text):
    with pytest.raises(BadId):
        paths.parse_slice_path(text)


@pytest.mark.parametrize("text", ["", "2026", "2026-13", "2026-00", "0000-01", "2026-08-10", "../08", "2026-08\n"])
def test_what_is_no_month_is_refused(text):
    for function in (paths.parse_month, paths.month_file):
        with pytest.raises(BadId):
            function(text)


def test_turn_ids():
    made = {paths.new_turn_id() for _ in range(200)}
    assert len(made) == 200
    assert all(len(paths.parse_turn_id(turn_id)) == 6 for turn_id in made)
    assert paths.parse_turn_id("a") == "a"
    assert paths.parse_turn_id("x" * 16) == "x" * 16


@pytest.mark.parametrize("text", ["", "x" * 17, "a b", "a/b", "..", "é", "abc123\n"])
def test_what_is_no_turn_id_is_refused(text):
    with pytest.raises(BadId):
        paths.parse_turn_id(text)


def test_where_the_files_of_a_slice_are():
    directory = "memory/episodic/slices/2026/08/10/2130"
    assert paths.core_file(ID) == f"{directory}/timeline/core.md"
    assert paths.agent_file(ID) == f"{directory}/timeline/agent.md"
    assert paths.appendix_file(ID) == f"{directory}/timeline/appendix.md"
    assert paths.frozen_card_file(ID) == f"{directory}/previously.md"
    assert paths.month_file(paths.month_of(ID)) == "memory/episodic/timeline/2026-08.json"


def test_a_file_tells_its_slice():
    assert paths.slice_of_file(paths.core_file(ID)) == ID
    assert paths.slice_of_file(paths.frozen_card_file(ID)) == ID
    for other in (
        paths.CARD,
        paths.STRANDS,
        f"{paths.SLICES}/2026/08/10/9999/x",
        f"{paths.SLICES}/{PATH}",
        f"x/{PATH}/y",
    ):
        assert paths.slice_of_file(other) is None


def test_inside_gives_paths_that_need_not_exist(tmp_path):
    (tmp_path / "file").write_text("")
    assert paths.inside(tmp_path, paths.CARD) == tmp_path / "memory" / "previously.md"
    assert paths.inside(tmp_path, "file/below/a/file") == tmp_path / "file/below/a/file"


@pytest.mark.parametrize(
    "relative",
    ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", "a\0b", "x" * 256, "\ud800"],
)
def test_inside_refuses_what_leaves_the_folder(tmp_path, relative):
    with pytest.raises(Outside):
        paths.inside(tmp_path, relative)


def test_inside_refuses_symbolic_links(tmp_path):
    root = tmp_path / "folder"
    make_slice(root, ID)
    (tmp_path / "secret").write_text("Bob's")
    (root / "link").symlink_to(tmp_path)
    (root / "dangling").symlink_to(tmp_path / "nothing")
    (root / paths.agent_file(ID)).symlink_to(tmp_path / "secret")
    for relative in ("link/secret", "link", "dangling", paths.agent_file(ID)):
        with pytest.raises(NotThere):
            paths.inside(root, relative)
    assert paths.inside(root, paths.core_file(ID)).exists()


@given(relative=st.text(st.sampled_from("ab./\\\0~"), max_size=12))
def test_inside_never_leaves_the_folder(tmp_path_factory, relative):
    root = tmp_path_factory.getbasetemp()
    try:
        path = paths.inside(root, relative)
    except Outside:
        return
    assert os.path.commonpath([os.path.normpath(path), root]) == str(root)


SOME = ["2024-12-31-2359", "2026-01-01-0000", "2026-07-31-2200", "2026-08-01-0900", "2026-08-10-0745", ID]


def test_slices_are_found_newest_first_or_ascending(tmp_path):
    for slice_id in SOME:
        make_slice(tmp_path, slice_id)
    assert paths.newest_slice_ids(tmp_path, 3) == SOME[:-4:-1]
    assert paths.newest_slice_ids(tmp_path, 100) == SOME[::-1]
    assert paths.newest_slice_ids(tmp_path, 0) == []
    assert list(paths.slice_ids(tmp_path)) == SOME
    assert list(paths.slice_ids(tmp_path, since_month="2026-07")) == SOME[2:]
    assert list(paths.slice_ids(tmp_path, since_month="2025-12")) == SOME[1:]
    assert list(paths.slice_ids(tmp_path, since_month="2027-01")) == []


def test_a_folder_without_slices_has_none(tmp_path):
    assert paths.newest_slice_ids(tmp_path, 3) == []
    assert list(paths.slice_ids(tmp_path)) == []


def test_what_is_no_slice_is_passed_over(tmp_path):
    slices = tmp_path / paths.SLICES
    make_slice(tmp_path, ID)
    (slices / "2027/01/01/0000").mkdir(parents=True)  # no core.md in it
    (slices / "2027/01/01/0001/timeline/core.md").mkdir(parents=True)
    (slices / "2027/01/01/notes").mkdir()
    (slices / "2027/02/30/1200/timeline").mkdir(parents=True)  # no such day
    (slices / "2027/02/30/1200/timeline/core.md").write_text("")
    (slices / "2028").write_text("a file")
    (slices / "drafts").mkdir()
    (slices / "20269").mkdir()
    assert paths.newest_slice_ids(tmp_path, 5) == [ID]
    assert list(paths.slice_ids(tmp_path)) == [ID]


@pytest.mark.parametrize(
    "linked",
    [
        "2029",
        "2026/09",
        "2026/08/11",
        "2026/08/10/2131",
        "2026/08/10/2132/timeline",
        "2026/08/10/2133/timeline/core.md",
    ],
)
def test_symbolic_links_among_the_slices_are_passed_over(tmp_path, linked):
    make_slice(tmp_path, ID)
    depth = linked.count("/") + 1
    target = "/".join(f"{PATH}/timeline/core.md".split("/")[:depth])
    link = tmp_path / paths.SLICES / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / paths.SLICES / target)
    assert link.exists()
    assert paths.newest_slice_ids(tmp_path, 5) == [ID]
    assert list(paths.slice_ids(tmp_path)) == [ID]


def test_the_newest_slices_cost_no_more_in_a_big_folder(tmp_path, monkeypatch):
    day = datetime(2020, 1, 1, tzinfo=UTC)
    for number in range(400):
        make_slice(tmp_path, paths.slice_id_at(day + timedelta(days=number)))
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    assert len(paths.newest_slice_ids(tmp_path, 3)) == 3
    assert len(listed) <= 3 * 4


def test_a_taken_minute_gives_the_next_free_one(tmp_path):
    at = datetime(2026, 8, 10, 23, 58, 40, tzinfo=UTC)
    assert paths.free_slice_id(tmp_path, at) == "2026-08-10-2358"
    (tmp_path / paths.SLICES / "2026/08/10/2358").mkdir(parents=True)
    (tmp_path / paths.SLICES / "2026/08/10/2359").symlink_to("nowhere")
    assert paths.free_slice_id(tmp_path, at) == "2026-08-11-0000"
