"""A person's files are taken away for good: the folder, the runtime files, the search index, the marker of due work.

By then the account is gone, so nobody makes any of them again (`RunState.make`); work that is under way is given a
moment to end, and what it writes after that goes nowhere. Each directory is first renamed out of the way in one step,
then removed, so that a removal cut short leaves nothing that could be taken for a folder; the sweep removes the rest.
"""

import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import UUID

from memory.folder import locks
from memory.folder.errors import LockTimeout
from memory.folder.store import Places

GONE = ".gone-"
PATIENCE = 5.0
"""Seconds that a reply or a close pass under way is given to end."""
ROUNDS = 3

log = logging.getLogger(__name__)


def erase(places: Places) -> None:
    """Remove everything at these places, and nothing else; no link in them is followed. Raises OSError.

    Call it once the account is gone. Doing it again, or when there is nothing, is fine.
    """
    ask_replies_to_stop(places.run)
    with _quiet(places.run):
        _put_away(places.root)
    for _ in range(ROUNDS):
        # More than once: who had asked whether the account is there just before it went may have made something yet.
        for directory in (places.root, places.run, places.root.with_name(f".new-{places.root.name}")):
            _put_away(directory)
        places.pending.unlink(missing_ok=True)
        if places.index:
            for file in _of_index(places.index):
                file.unlink(missing_ok=True)
        if not any(os.path.lexists(path) for path in (places.root, places.run, places.pending)):
            break
    clear_leftovers(places.root.parent)
    clear_leftovers(places.run.parent)


def clear_leftovers(directory: Path) -> None:
    """Remove what an interrupted removal left in this directory."""
    for leftover in directory.glob(f"{GONE}*"):
        _remove(leftover)


def clear_strays(directory: Path, folders: Path, *, wanted: Callable[[str], bool]) -> int:
    """Remove runtime or index files of people who have neither a folder nor an account any more; how many.

    The first 36 characters of a name say whose it is; names that are no account's are left alone.
    """
    removed = 0
    for path in directory.iterdir() if directory.is_dir() else ():
        owner = path.name[:36]
        if _is_uuid(owner) and not (folders / owner).exists() and not wanted(owner):
            _remove(path)
            removed += 1
    return removed


def ask_replies_to_stop(run: Path) -> None:
    """Ask whoever writes a reply of this person to end it where it is."""
    for events in (run / "replies").glob("*.events"):
        with suppress(OSError):
            events.with_suffix(".stop").touch(mode=0o600)


@contextmanager
def _quiet(run: Path) -> Iterator[None]:
    """The files lock, after replies and close work had their moment to end; without it when that takes too long."""
    with ExitStack() as held:
        for name, seconds in (("reply.lock", PATIENCE), ("work.lock", PATIENCE)):
            try:
                if run.is_dir():
                    with locks.held(run / name, timeout=seconds):
                        pass
            except LockTimeout:
                log.info("the files of %s go while somebody is still at work on them", run.name)
        if run.is_dir():
            try:
                held.enter_context(locks.held(run / "files.lock", timeout=PATIENCE))
            except LockTimeout:
                log.warning("the files of %s go without their lock, which somebody has held for long", run.name)
        yield


def _put_away(path: Path) -> None:
    """Rename a directory out of the way in one step, then remove it."""
    gone = path.with_name(f"{GONE}{path.name}-{secrets.token_hex(4)}")
    try:
        os.rename(path, gone)
    except FileNotFoundError:
        return
    _remove(gone)


def _remove(path: Path) -> None:
    """Remove a file, a link (never what it names) or a directory with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_unless_gone)
    else:
        path.unlink(missing_ok=True)


def _unless_gone(_function: object, _path: str, error: tuple[type[BaseException], BaseException, object]) -> None:
    if not isinstance(error[1], FileNotFoundError):  # somebody else removed it first
        raise error[1]


def _of_index(index: Path) -> Iterator[Path]:
    """The index and what lies beside it: its journal, its locks, a new one half-made."""
    return index.parent.glob(f"{index.name}*")


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
