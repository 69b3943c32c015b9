"""The three locks of a person's folder, all flock: they end with the process that holds them, kill -9 included.

`files.lock` is held for milliseconds around read-modify-write and commits; `reply.lock` from the claim of a turn to
its record; `work.lock` around close work. `files.lock` may be taken inside either of the others; those two are never
held together.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from memory.folder.errors import LockTimeout


@contextmanager
def held(path: Path, *, timeout: float) -> Iterator[None]:
    """Hold the flock at `path`, waiting at most `timeout` seconds (0: not at all); raises LockTimeout.

    A new FileLock object each time: one that is shared between threads would count as already held.
    """
    lock = FileLock(path, timeout=timeout, mode=0o600, poll_interval=0.005, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise LockTimeout(f"{path.name} is held by somebody else") from error
    try:
        yield
    finally:
        lock.release()
