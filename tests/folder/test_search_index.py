"""The index file: brought up to the folder, made anew, shared by processes, deleted and damaged at any time."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.folder import locks
from memory.folder.errors import LockTimeout
from memory.folder.paths import core_file, slice_id_at
from memory.folder.search import NoIndex, SearchIndex, building
from memory.folder.search import database as db
from memory.folder.search.document import document, minute_number
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.touched import Touch
from tests.folder.searched import NOW, a_slice, alice_at, commit, found, ids, write

RUN = a_slice("2026-07-01-0915", "I ran a half marathon", "Well done!")
CAKE = a_slice("2026-07-03-1200", "How do I bake a walnut cake?", "With walnuts. 今天玩成语接龙游戏")
GARDEN = a_slice("2026-07-20-1800", "The garden needs rain", "So it does.")
OLDER = [a_slice(f"2026-06-{day:02}-1000", "About the weather") for day in range(1, 11)]


@pytest.fixture
def alice(tmp_path) -> tuple[MemoryFolder, SearchIndex]:
    """Alice's folder of two slices, and her index of it."""
    folder, index = alice_at(tmp_path)
    commit(folder, *OLDER, RUN, CAKE)
    index.catch_up(folder)
    return folder, index


def contents(file: Path) -> dict[str, list[tuple]]:
    """All that an index holds, whichever way it came about; what is loose passes."""
    with closing(db.open_(file)) as database:
        return {
            "totals": [tuple(vars(db.totals(database)).values())],
            "slices": database.execute(
                "SELECT minute, day, length, digest, roles, title, body, characters FROM slices ORDER BY 1"
            ).fetchall(),
            "entries": database.execute("SELECT minute, packed FROM entries ORDER BY 1").fetchall(),
            "terms": database.execute("SELECT term, slices, entries FROM terms ORDER BY 1").fetchall(),
            "words": database.execute(
                "SELECT rowid, rank FROM words WHERE words MATCH 'walnut OR garden OR rain OR cake OR 接龙' ORDER BY 1"
            ).fetchall(),
            "letters": database.execute("SELECT rowid FROM letters WHERE letters MATCH '龙' ORDER BY 1").fetchall(),
        }


def made_anew(folder: MemoryFolder) -> dict[str, list[tuple]]:
    fresh = SearchIndex(folder.root.parent / "fresh" / "alice.sqlite3")
    fresh.file.unlink(missing_ok=True)
    fresh.catch_up(folder)
    return contents(fresh.file)


def told(index: SearchIndex, folder: MemoryFolder) -> list[tuple[int, int]]:
    """What `catch_up` says about its progress."""
    said: list[tuple[int, int]] = []
    index.catch_up(folder, progress=lambda done, of: said.append((done, of)))
    return said


def test_it_works(alice):
    folder, index = alice
    commit(folder, GARDEN)
    assert ids(index, "garden") == []
    index.catch_up(folder)
    assert ids(index, "garden") == [GARDEN.slice_id]
    assert contents(index.file) == made_anew(folder)


def test_without_an_index_there_is_no_answer_and_nothing_to_write(tmp_path):
    folder, index = alice_at(tmp_path)
    with pytest.raises(NoIndex):
        found(index, "garden")
    index.replace(GARDEN)
    index.remove(GARDEN.slice_id)
    assert not index.file.exists()
    index.catch_up(folder)
    assert ids(index, "garden") == []


def test_only_what_changed_is_read_again(alice):
    folder, index = alice
    commit(folder, GARDEN)
    # The one that changed, the three newest, and those that were the newest before.
    assert told(index, folder)[-1] == (4, 4)
    assert told(index, folder)[-1] == (3, 3)
    index.file.unlink()
    assert told(index, folder)[-1] == (13, 13)


def test_uncommitted_slices_are_found_as_they_are_on_disk(alice):
    folder, index = alice
    write(folder, GARDEN)
    index.catch_up(folder)
    assert ids(index, "garden") == [GARDEN.slice_id]
    write(folder, replace(GARDEN, entries=GARDEN.entries[1:]))
    index.catch_up(folder)
    assert ids(index, "garden") == []


def test_an_old_slice_with_writes_of_ours_is_read_too(alice):
    folder, index = alice
    marked = replace(OLDER[0], focus="Hailstones")
    write(folder, marked)
    index.catch_up(folder)
    assert ids(index, "hailstones") == []
    folder.state.make()
    folder.state.save_touched({core_file(marked.slice_id): Touch(ours=(None,), owners=("close",))})
    index.catch_up(folder)
    assert ids(index, "hailstones") == [marked.slice_id]
    # Taken back before it was committed.
    folder.state.save_touched({})
    write(folder, OLDER[0])
    index.catch_up(folder)
    assert ids(index, "hailstones") == []


def test_a_slice_is_replaced_and_removed(alice):
    folder, index = alice
    index.replace(GARDEN)
    assert ids(index, "garden") == [GARDEN.slice_id]
    index.replace(replace(GARDEN, focus="Tomatoes", entries=()))
    assert ids(index, "garden") == []
    assert ids(index, "tomatoes") == [GARDEN.slice_id]
    index.remove(GARDEN.slice_id)
    assert ids(index, "tomatoes") == []
    index.remove(GARDEN.slice_id)
    assert contents(index.file) == made_anew(folder)


def test_a_slice_that_a_commit_took_away_is_gone(alice):
    folder, index = alice
    commit(folder, gone=[CAKE.slice_id])
    index.catch_up(folder)
    assert ids(index, "walnut") == []
    assert contents(index.file) == made_anew(folder)


def test_a_damaged_slice_is_left_out_until_it_is_mended(alice):
    folder, index = alice
    file = folder.root / core_file(CAKE.slice_id)
    whole = file.read_bytes()
    file.write_bytes(b"no front matter: walnut")
    index.catch_up(folder)
    assert ids(index, "walnut") == []
    assert ids(index, "marathon") == [RUN.slice_id]
    file.write_bytes(whole)
    index.catch_up(folder)
    assert ids(index, "walnut") == [CAKE.slice_id]


def test_a_history_that_was_rewritten_is_read_anew(alice):
    folder, index = alice
    commit(folder, GARDEN)
    index.catch_up(folder)
    subprocess.run(["git", "-C", str(folder.root), "update-ref", "refs/heads/main", "HEAD~1"], check=True)
    (folder.root / core_file(GARDEN.slice_id)).unlink()
    index.catch_up(folder)
    assert ids(index, "garden") == []
    assert contents(index.file) == made_anew(folder)


def test_it_goes_on_while_head_is_detached(alice):
    folder, index = alice
    subprocess.run(["git", "-C", str(folder.root), "checkout", "-q", "--force", "--detach"], check=True)
    write(folder, GARDEN)
    index.catch_up(folder)
    assert ids(index, "garden") == [GARDEN.slice_id]


def test_another_version_is_made_anew(alice, monkeypatch):
    folder, index = alice
    monkeypatch.setattr(db, "VERSION", "another")
    with pytest.raises(NoIndex):
        found(index, "walnut")
    index.catch_up(folder)
    assert ids(index, "walnut") == [CAKE.slice_id]


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "pages"])
def test_a_damaged_file_is_deleted_and_made_anew(alice, damage):
    folder, index = alice
    whole = index.file.read_bytes()
    half = len(whole) // 2
    damaged = {"garbage": b"x" * 9000, "empty": b"", "cut": whole[:half], "pages": whole[:8192] + b"\xa5" * half}
    index.file.write_bytes(damaged[damage])
    with pytest.raises(NoIndex):
        found(index, "walnut")
    # Catching up might read none of the pages that are damaged, so nothing may be left for it to trust.
    assert not index.file.exists()
    index.catch_up(folder)
    assert ids(index, "walnut") == [CAKE.slice_id]
    assert contents(index.file) == made_anew(folder)


def test_a_damaged_file_is_healed_by_catching_up_alone(alice):
    folder, index = alice
    index.file.write_bytes(b"x" * 9000)
    index.catch_up(folder)
    assert ids(index, "walnut") == [CAKE.slice_id]


def test_it_may_be_deleted_at_any_time(alice):
    folder, index = alice
    index.file.unlink()
    with pytest.raises(NoIndex):
        found(index, "walnut")
    index.replace(GARDEN)
    index.catch_up(folder)
    assert ids(index, "walnut") == [CAKE.slice_id]


def _in_a_process(act) -> int:
    """Run it in a process of its own; its exit code, negative for the signal that killed it."""
    process = multiprocessing.get_context("fork").Process(target=act)
    process.start()
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_killed_while_it_is_made_it_heals(alice):
    folder, index = alice
    index.file.unlink()

    def make() -> None:
        index.catch_up(folder, progress=lambda done, of: _die() if done == of else None)

    assert _in_a_process(make) == -signal.SIGKILL
    assert not index.file.exists()
    assert list(index.file.parent.glob("*.new-*"))
    index.catch_up(folder)
    assert ids(index, "walnut") == [CAKE.slice_id]
    assert not list(index.file.parent.glob("*.new-*"))


def test_killed_while_a_slice_is_written_it_holds_what_it_held(alice, monkeypatch):
    _, index = alice
    before = contents(index.file)

    def half(database: sqlite3.Connection, *arguments: object, **options: object) -> None:
        put(database, *arguments, **options)
        # A full page cache is spilled to the file long before the commit.
        database.execute("PRAGMA cache_spill=1")
        database.execute("PRAGMA cache_size=1")
        put(database, minute_number(RUN.slice_id), document(replace(RUN, focus="spilled " * 9000)))
        _die()

    put = db.put
    monkeypatch.setattr(db, "put", half)
    assert _in_a_process(lambda: index.replace(GARDEN)) == -signal.SIGKILL
    monkeypatch.undo()
    assert Path(f"{index.file}-journal").stat().st_size > 0
    assert ids(index, "walnut") == [CAKE.slice_id]
    assert contents(index.file) == before


def test_a_killed_writers_journal_is_not_played_back_into_the_next_file(alice, monkeypatch):
    folder, index = alice

    def half(database: sqlite3.Connection, minute: int, *_: object, **__: object) -> None:
        database.execute("PRAGMA cache_size=1")
        put(database, minute, document(replace(GARDEN, focus="spilled " * 9000)))
        _die()

    put = db.put
    monkeypatch.setattr(db, "put", half)
    assert _in_a_process(lambda: index.replace(GARDEN)) == -signal.SIGKILL
    monkeypatch.undo()
    assert Path(f"{index.file}-journal").stat().st_size > 0
    commit(folder, GARDEN)
    index._make(folder, None)
    assert ids(index, "garden") == [GARDEN.slice_id]
    assert contents(index.file) == made_anew(folder)


def test_one_makes_it_while_the_others_go_on(alice):
    folder, index = alice
    seen = []

    def meanwhile(done: int, of: int) -> None:
        if done == 0 and not seen:
            seen.append(ids(index, "walnut"))
            index.replace(GARDEN)
            write(folder, GARDEN)
            seen.append(ids(index, "garden"))
            with pytest.raises(LockTimeout):
                SearchIndex(index.file)._make(folder, None)

    index._make(folder, meanwhile)
    assert seen == [[CAKE.slice_id], [GARDEN.slice_id]]
    assert ids(index, "garden") == [GARDEN.slice_id]


def test_a_writer_that_waits_too_long_says_so(alice, monkeypatch):
    _, index = alice
    monkeypatch.setattr("memory.folder.search.index.WRITE_SECONDS", 0.01)
    with locks.held(index.file.with_name(f"{index.file.name}.lock"), timeout=1), pytest.raises(LockTimeout):
        index.replace(GARDEN)
    assert ids(index, "walnut") == [CAKE.slice_id]


def test_several_processes_use_it_at_once(alice):
    folder, index = alice
    texts = [a_slice(f"2026-07-2{writer}-1800", f"writer {writer}") for writer in range(4)]

    def work(mine: Slice) -> None:
        for count in range(12):
            index.replace(replace(mine, focus=f"round {count}"))
            assert ids(index, "walnut") == [CAKE.slice_id]
            if count % 5 == 4:
                index.catch_up(folder)
        write(folder, replace(mine, focus="round last"))
        index.replace(replace(mine, focus="round last"))

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(mine,)) for mine in texts]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    index.catch_up(folder)
    assert contents(index.file) == made_anew(folder)


WORDS = st.sampled_from(
    ["walnut", "cake", "garden", "rain", "garden rain garden", "接龙", "龙", "今天玩成语接龙游戏", ""]
)
SLICES = st.builds(
    lambda number, texts, focus: a_slice(slice_id_at(NOW.replace(minute=number)), *texts, focus=focus),
    st.integers(0, 5),
    st.lists(WORDS, max_size=4),
    WORDS,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(SLICES | st.integers(0, 5), max_size=14))
def test_slice_by_slice_or_made_anew_it_is_the_same(tmp_path_factory, steps):
    place = tmp_path_factory.mktemp("same")
    index = SearchIndex(place / "grown.sqlite3")
    building.fill(index.file, [], commit=None, loose=())
    slices: dict[str, Slice] = {}
    for step in steps:
        if isinstance(step, Slice):
            slices[step.slice_id] = step
            index.replace(step)
        else:
            slice_id = slice_id_at(NOW.replace(minute=step))
            slices.pop(slice_id, None)
            index.remove(slice_id)
    anew = SearchIndex(place / "anew.sqlite3")
    building.fill(anew.file, map(document, slices.values()), commit=None, loose=())
    assert contents(index.file) == contents(anew.file)
    for query in ("walnut cake", "garden", "接龙", "龙", "rain on 12 August 2026"):
        for unit in ("slice", "turn"):
            assert found(index, query, unit=unit) == found(anew, query, unit=unit)
