"""The slices before and after one: across months, catalogued or not, damaged or gone."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.folder import neighbours
from memory.folder.errors import BadId
from memory.folder.paths import core_file, month_file, month_of
from memory.folder.slices import Slice, render
from memory.folder.timeline import DamagedSlice, line_of, render_month


def keep(root: Path, slice_id: str) -> Slice:
    """A closed slice on disk."""
    start = datetime.strptime(slice_id, "%Y-%m-%d-%H%M").replace(tzinfo=UTC)
    made = Slice(slice_id=slice_id, status="closed", start=start, end=start, focus=slice_id)
    path = root / core_file(slice_id)
    path.parent.mkdir(parents=True)
    path.write_text(render(made), "utf-8")
    return made


def catalogue(root: Path, *made: Slice) -> None:
    """The month's file for slices of one month."""
    path = root / month_file(month_of(made[0].slice_id))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_month(month_of(made[0].slice_id), map(line_of, made)), "utf-8")


def around(root: Path, slice_id: str) -> tuple[str | None, str | None]:
    older, newer = neighbours.before(root, slice_id), neighbours.after(root, slice_id)
    return older.id if older else None, newer.id if newer else None


def test_it_works(tmp_path: Path) -> None:
    first, second, third = (keep(tmp_path, one) for one in ("2025-12-31-2359", "2026-01-01-0000", "2026-03-01-0000"))
    catalogue(tmp_path, second)
    assert around(tmp_path, first.slice_id) == (None, second.slice_id)
    assert around(tmp_path, second.slice_id) == (first.slice_id, third.slice_id)
    assert around(tmp_path, third.slice_id) == (second.slice_id, None)


def test_a_slice_that_is_not_there_has_neighbours_too(tmp_path: Path) -> None:
    keep(tmp_path, "2026-01-01-0000")
    keep(tmp_path, "2026-01-01-0002")
    assert around(tmp_path, "2026-01-01-0001") == ("2026-01-01-0000", "2026-01-01-0002")


def test_what_is_no_slice_is_passed_over_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    keep(tmp_path, "2026-01-01-0000")
    (tmp_path / core_file("2026-01-01-0001")).parent.mkdir(parents=True)
    broken = tmp_path / core_file("2026-01-01-0002")
    broken.parent.mkdir(parents=True)
    broken.write_text("---\nslice_id: [\n---\n")
    assert isinstance(neighbours.after(tmp_path, "2026-01-01-0000"), DamagedSlice)
    assert around(tmp_path, "2026-01-01-0000") == (None, "2026-01-01-0002")


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert around(tmp_path / "none", "2026-01-01-0000") == (None, None)


def test_only_a_real_slice_id_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BadId):
        neighbours.after(tmp_path, "../../x")
