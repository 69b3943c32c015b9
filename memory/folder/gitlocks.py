"""Which git calls of ours are under way, and which lock files a killed one left behind.

Every call that takes locks of git is recorded as one file in `<run>/git/`, held by flock for as long as the call lives.
The git process inherits the held file, so a record can be had exactly when neither we nor git nor a child of git live
any more: across kill -9, process ids used again, containers and hosts. A record says which lock files its call may
make; one of those, made while the call could run and listed by no living call, is a dead process's and is removed.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .clock import stamp, utc_now

LEFTOVER_SECONDS = 3600.0
"""The age from which a half-written file of git's is taken for abandoned; no call of ours lives nearly as long."""

CHAIN_LOCK = "objects/info/commit-graphs/commit-graph-chain.lock"

_FIXED_LOCKS = ("index.lock", "HEAD.lock", CHAIN_LOCK)

_LEFTOVERS = (
    "fast_import_crash_*",
    "objects/pack/tmp_*",
    "objects/pack/.tmp-*",
    "objects/[0-9a-f][0-9a-f]/tmp_obj_*",
    "objects/info/commit-graphs/tmp_graph_*",
)


@dataclass(frozen=True)
class Call:
    """One call under way: its record and the handle that holds it, which the git process has to inherit."""

    path: Path
    handle: int


@dataclass(frozen=True, kw_only=True)
class _Record:
    path: Path
    locks: tuple[str, ...]
    began: float  # by the file system's clock, which also stamps the lock files
    ended: float


def begin(run: Path, git_dir: Path, locks: Sequence[str], *, command: str, seconds: float) -> Call:
    """Record a call that may make these lock files (relative to `.git`) and lives at most `seconds`.

    What dead calls left is removed first, so that a killed worker never blocks the next one.
    """
    with _guard(run) as directory:
        _clear(directory, git_dir)
        path = directory / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        row = {
            "command": command,
            "pid": os.getpid(),
            "began": stamp(utc_now()),
            "seconds": seconds,
            "locks": list(locks),
        }
        os.write(handle, json.dumps(row).encode())
    return Call(path, handle)


def end(call: Call, *, run: Path, git_dir: Path, killed: bool) -> None:
    """Take a finished call off the record; one that was killed is cleared like any other dead one."""
    if not killed:
        call.path.unlink(missing_ok=True)
    os.close(call.handle)
    if killed:
        with _guard(run) as directory:
            _clear(directory, git_dir)


def clear(run: Path, git_dir: Path) -> list[str]:
    """Remove dead calls' lock files and abandoned half-written files; return what was removed, relative to `.git`.

    A half-written file is abandoned when it is an hour old and no call of ours is under way.
    """
    with _guard(run) as directory:
        removed = _clear(directory, git_dir)
        if not any(directory.glob("*.json")):
            removed += _clear_leftovers(git_dir)
    return removed


@contextmanager
def _guard(run: Path) -> Iterator[Path]:
    # Between looking at the records and removing a lock file no call may begin: the lock could then be its own.
    directory = run / "git"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(directory / "guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield directory
    finally:
        os.close(handle)


def existing(git_dir: Path) -> list[str]:
    """The lock files there are now among those that can block a call of ours, relative to `.git`."""
    fixed = [name for name in _FIXED_LOCKS if os.path.lexists(git_dir / name)]
    branches = (git_dir / "refs" / "heads").rglob("*.lock")
    return fixed + sorted(str(path.relative_to(git_dir)) for path in branches)


def _clear(directory: Path, git_dir: Path) -> list[str]:
    dead: list[_Record] = []
    held: set[str] = set()
    for path in directory.glob("*.json"):
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # that call has just ended
        try:
            record = _read(path, handle, git_dir)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            dead.append(record)
        except BlockingIOError:
            held.update(record.locks)
        finally:
            os.close(handle)
    removed = []
    for record in dead:
        removed += [lock for lock in record.locks if lock not in held and _remove(git_dir / lock, record)]
        record.path.unlink(missing_ok=True)
    return removed


def _read(path: Path, handle: int, git_dir: Path) -> _Record:
    began = os.fstat(handle).st_mtime
    try:
        row = json.loads(os.read(handle, 100_000))
        return _Record(path=path, began=began, ended=began + row["seconds"], locks=tuple(row["locks"]))
    except ValueError:  # a power cut left the name without its content: it may have been any call
        return _Record(path=path, began=began, ended=began + LEFTOVER_SECONDS, locks=tuple(existing(git_dir)))


def _remove(lock: Path, record: _Record) -> bool:
    with suppress(FileNotFoundError):
        if record.began <= lock.stat(follow_symlinks=False).st_mtime <= record.ended:
            lock.unlink()
            return True
    return False


def _clear_leftovers(git_dir: Path) -> list[str]:
    before = utc_now().timestamp() - LEFTOVER_SECONDS
    found = [path for pattern in _LEFTOVERS for path in git_dir.glob(pattern)]
    # fast-import marks its pack until the branch has moved; a marked pack would stay out of every repack.
    found += [keep for keep in git_dir.glob("objects/pack/pack-*.keep") if keep.read_bytes() == b"fast-import"]
    removed = []
    for path in found:
        with suppress(FileNotFoundError):
            if path.stat(follow_symlinks=False).st_mtime < before:
                path.unlink()
                removed.append(str(path.relative_to(git_dir)))
    return removed
