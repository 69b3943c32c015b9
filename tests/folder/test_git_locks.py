"""Lock files that killed processes leave behind: ours go, a person's stay and are reported."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.folder import git, gitlocks
from memory.folder.errors import ForeignLock, GitError
from memory.folder.git import Change, Repository

AT = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
CHANGE = Change("memory/previously.md", b"hello\n")
BRANCH_LOCK = ".git/refs/heads/main.lock"

# A worker that commits, to be killed in the middle.
WORKER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from memory.folder.git import Change, Repository
Repository(Path(sys.argv[1]), Path(sys.argv[2])).commit([], "turn a: b", parent=None, at=datetime.now(UTC))
"""


@pytest.fixture
def alice(tmp_path: Path) -> Repository:
    """Alice's new repository."""
    git.create(tmp_path / "alice")
    return Repository(tmp_path / "alice", tmp_path / "run")


def commit(repository: Repository) -> str:
    """One more commit."""
    return repository.commit([CHANGE], "turn a: b", parent=repository.head(), at=AT)


def path_with_git(repository: Repository, script: str) -> str:
    """A PATH on which `git fast-import` takes the lock of this repository's branch and then does as the script says."""
    real = shutil.which("git")
    directory = repository.root.parent / "bin"
    directory.mkdir()
    (directory / "git").write_text(
        f"""#!/bin/sh
case "$*" in
    *--git-dir={repository.root}/.git*fast-import*) touch {repository.root / BRANCH_LOCK} ;;
    *) exec {real} "$@" ;;
esac
{script}
"""
    )
    (directory / "git").chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


def run_worker(repository: Repository, path: str) -> int:
    """How a worker process ended that tried to commit with this PATH."""
    project = str(Path(git.__file__).parents[2])
    command = [sys.executable, "-c", WORKER, str(repository.root), str(repository.run)]
    return subprocess.run(command, cwd=project, env=os.environ | {"PATH": path}, check=False).returncode


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for what another process is about to do."""
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def age(path: Path, *, seconds: float) -> None:
    """Make a file look that old."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def records(repository: Repository) -> list[Path]:
    """The calls on record."""
    return list((repository.run / "git").glob("*.json"))


def test_it_works(alice: Repository) -> None:
    commit(alice)
    assert records(alice) == []
    assert alice.clear_stale_locks() == []


def test_the_lock_of_a_killed_git_is_gone_at_once(
    alice: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", path_with_git(alice, "kill -9 $$"))
        with pytest.raises(GitError):
            commit(alice)
    assert not (alice.root / BRANCH_LOCK).exists()
    assert records(alice) == []
    assert commit(alice) == alice.head()


def test_a_git_that_hangs_is_stopped_with_its_children(
    alice: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", path_with_git(alice, f"sleep 600 & echo $! > {tmp_path}/pid; wait"))
        with pytest.raises(GitError, match="longer than"):
            alice._git("fast-import", locks=("refs/heads/main.lock",), seconds=0.5)
    child = Path("/proc") / (tmp_path / "pid").read_text().strip()
    wait_until(lambda: not child.exists() or "Z" in (child / "stat").read_text().split()[2])
    assert not (alice.root / BRANCH_LOCK).exists()
    assert commit(alice) == alice.head()


def test_the_lock_of_a_killed_worker_does_not_block_the_next(alice: Repository, tmp_path: Path) -> None:
    assert run_worker(alice, path_with_git(alice, "kill -9 $PPID; kill -9 $$")) == -9
    assert (alice.root / BRANCH_LOCK).exists()
    assert len(records(alice)) == 1
    assert commit(alice) == alice.head()
    assert records(alice) == []


def test_a_git_that_outlives_its_worker_keeps_its_lock(alice: Repository, tmp_path: Path) -> None:
    script = f"kill -9 $PPID; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; touch {tmp_path}/gone"
    assert run_worker(alice, path_with_git(alice, script)) == -9
    assert alice.clear_stale_locks() == []
    with pytest.raises(ForeignLock) as refused:
        commit(alice)
    assert refused.value.path == BRANCH_LOCK
    (tmp_path / "go").touch()
    removed: list[str] = []
    wait_until(lambda: bool(removed.extend(alice.clear_stale_locks()) or removed))
    assert removed == ["refs/heads/main.lock"]
    assert (tmp_path / "gone").exists()
    assert commit(alice) == alice.head()


def test_a_record_that_a_power_cut_emptied_stands_for_any_call(alice: Repository) -> None:
    commit(alice)
    (alice.run / "git" / "4711-ab.json").touch()
    (alice.root / ".git/index.lock").touch()
    (alice.root / BRANCH_LOCK).touch()
    assert sorted(alice.clear_stale_locks()) == ["index.lock", "refs/heads/main.lock"]


def test_a_lock_that_a_dead_call_cannot_have_made_stays(alice: Repository) -> None:
    commit(alice)
    call = gitlocks.begin(alice.run, alice.root / ".git", ["index.lock"], command="update-index", seconds=30)
    os.close(call.handle)  # as the kernel does when the process dies
    (alice.root / ".git/HEAD.lock").touch()  # not on its list
    (alice.root / ".git/index.lock").touch()
    age(call.path, seconds=3600)  # the lock came an hour after it had ended
    assert alice.clear_stale_locks() == []
    assert (alice.root / ".git/index.lock").exists()
    assert (alice.root / ".git/HEAD.lock").exists()


def test_a_lock_that_a_living_call_may_hold_stays(alice: Repository) -> None:
    git_dir = alice.root / ".git"
    dead = gitlocks.begin(alice.run, git_dir, ["index.lock"], command="update-index", seconds=30)
    living = gitlocks.begin(alice.run, git_dir, ["index.lock"], command="update-index", seconds=30)
    (git_dir / "index.lock").touch()
    os.close(dead.handle)
    assert alice.clear_stale_locks() == []
    assert (git_dir / "index.lock").exists()
    gitlocks.end(living, run=alice.run, git_dir=git_dir, killed=True)
    assert not records(alice)


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_foreign_lock_stays_and_is_reported_when_old(alice: Repository, name: str) -> None:
    commit(alice)
    lock = alice.root / ".git" / name
    lock.touch()
    assert alice.clear_stale_locks() == []
    age(lock, seconds=700)
    with pytest.raises(ForeignLock) as reported:
        alice.clear_stale_locks()
    assert reported.value.path == f".git/{name}"
    assert alice.clear_stale_locks(foreign_after=900) == []
    assert lock.exists()


def test_half_written_files_go_when_they_are_old(alice: Repository) -> None:
    commit(alice)
    pack = alice.root / ".git/objects/pack"
    old = [pack / "tmp_pack_AbCdEf", pack / ".tmp-42-pack-1.idx", alice.root / ".git/fast_import_crash_42"]
    kept = [pack / "tmp_pack_NewOne", *pack.glob("*.pack")]
    (pack / "pack-1.keep").write_bytes(b"fast-import")
    (pack / "pack-2.keep").write_bytes(b"kept by Alice")
    (pack / "tmp_pack_NewOne").touch()
    for path in (*old, pack / "pack-1.keep", pack / "pack-2.keep"):
        path.touch()
        age(path, seconds=4000)
    assert len(alice.clear_stale_locks()) == 4
    assert not any(path.exists() for path in (*old, pack / "pack-1.keep"))
    assert all(path.exists() for path in (*kept, pack / "pack-2.keep"))
    assert alice.fsck() == []
