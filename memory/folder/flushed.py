"""Writes that are on the disk when they return. A full disk raises OSError before anything is claimed."""

import os
import secrets
from pathlib import Path


def append(path: Path, data: bytes, *, size: int) -> bool:
    """Append `data` to the file of `size` bytes at `path` and flush it.

    Returns False when the path no longer names the written file at the expected size: an editor that saves by rename
    has put another file there meanwhile, and the caller has to look again.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            _write_all(handle, data)
            os.fsync(handle)
        except OSError:
            # Nothing was promised yet: take the torn piece back rather than leave half a message.
            os.ftruncate(handle, size)
            raise
        written = os.fstat(handle)
    finally:
        os.close(handle)
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino, named.st_size) == (written.st_dev, written.st_ino, size + len(data))


def replace(path: Path, data: bytes, *, scratch: Path, found: bytes | None = None) -> bool:
    """Put `data` at `path` in one step: a unique file in `scratch` (same volume) is flushed, then renamed over it.

    Returns False, and leaves the file alone, when `found` is given and the file holds other bytes by then: somebody
    saved it meanwhile, and the caller has to look again.
    """
    temporary = scratch / f"{os.getpid()}-{secrets.token_hex(8)}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            _write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        if found is not None and not _holds(path, found):
            temporary.unlink()
            return False
        os.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)
    return True


def make_directories(path: Path, *, below: Path) -> None:
    """Make `path` and its missing parents up to `below`, each with its name flushed, so that a power cut keeps them."""
    missing = []
    while path != below and not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)
        flush_directory(directory.parent)


def flush_file(path: Path) -> None:
    """Flush a file that somebody else may have written."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_directory(path: Path) -> None:
    """Flush the names in a directory."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
