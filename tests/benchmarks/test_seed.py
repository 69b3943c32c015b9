"""The folders that benchmarks are taken on are sound ones: what is measured there is what people have."""

from pathlib import Path

import pytest

from memory.folder import derived, strands
from memory.folder.paths import slice_ids
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Places
from memory.folder.timeline import Line, catalogue
from tests.benchmarks import words
from tests.benchmarks.seed import Seeded, copy_to, seed_benchmark

SLICES = 100


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Seeded:
    return seed_benchmark(tmp_path_factory.mktemp("seeds"), SLICES)


@pytest.fixture
def folder(seeded: Seeded, tmp_path: Path) -> MemoryFolder:
    return copy_to(seeded, Places(root=tmp_path / "folder", run=tmp_path / "run", pending=tmp_path / "pending"))


def test_it_works(folder: MemoryFolder, seeded: Seeded) -> None:
    found = [folder.slice(slice_id) for slice_id in slice_ids(folder.root)]
    assert len(found) == seeded.slices == SLICES
    assert sum(one.turn_count for one in found) == seeded.turns
    assert all(not one.active and one.focus and one.summary and one.tags and not one.stray for one in found)
    chinese = sum(words.is_chinese(tag) for one in found for tag in one.tags)
    assert 0 < chinese < sum(len(one.tags) for one in found)


def test_git_finds_nothing_wrong_and_nothing_to_commit(folder: MemoryFolder) -> None:
    assert folder.repository.fsck() == []
    assert folder.repository.status() == []
    assert len(folder.repository.log(limit=SLICES + 10)) == SLICES + 1


def test_every_slice_stands_in_the_catalogue(folder: MemoryFolder) -> None:
    lines = catalogue(folder.root)
    assert [line.id for line in lines] == sorted(slice_ids(folder.root), reverse=True)
    assert all(isinstance(line, Line) and line.strands for line in lines)


def test_strands_and_months_are_what_a_rebuild_makes(folder: MemoryFolder, seeded: Seeded) -> None:
    rebuilt = derived.rebuild(folder)
    assert rebuilt.months == {}
    assert strands.render_strands(rebuilt.strands) == strands.render_strands(folder.strands())
    assert len(rebuilt.strands) == seeded.strands


def test_the_folder_owes_nothing_and_is_known_to_be_up_to_date(folder: MemoryFolder) -> None:
    assert derived.reconcile(folder) == derived.rebuild(folder)
    assert folder.state.touched() == {}
    assert folder.state.todo() == []
    newest = folder.newest(1)[0]
    assert isinstance(newest, Slice)
    assert newest.closed_by


def test_the_same_size_gives_the_same_history(seeded: Seeded, tmp_path: Path) -> None:
    again = seed_benchmark(tmp_path, SLICES)
    assert MemoryFolder(again.places).repository.head() == MemoryFolder(seeded.places).repository.head()


def test_what_is_in_the_cache_is_not_made_again(seeded: Seeded) -> None:
    before = (seeded.root.parent / "counts").stat()
    assert seed_benchmark(seeded.root.parent.parent, SLICES) == seeded
    assert (seeded.root.parent / "counts").stat() == before
