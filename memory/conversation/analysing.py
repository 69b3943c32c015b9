"""While a turn is being analysed its commit waits for what the analysis adds, whoever else settles meanwhile.

A flock a turn, held from its claim until its analysis has ended: it goes with the worker that holds it, kill -9
included. Only the next turn's claim does not wait: what comes later then rides in a later commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memory.conversation.outcomes import make_replies, reply_file
from memory.folder import locks
from memory.folder.errors import LockTimeout
from memory.folder.store import MemoryFolder


@contextmanager
def analysing(folder: MemoryFolder, slice_id: str, turn_id: str) -> Iterator[None]:
    """Hold this turn's commit back; raises BadId."""
    make_replies(folder.state.make())
    path = reply_file(folder.state.directory, slice_id, turn_id, "analysing")
    with locks.held(path, timeout=5.0):
        yield
        path.unlink(missing_ok=True)


def is_analysed(folder: MemoryFolder, slice_id: str, turn_id: str) -> bool:
    """Whether somebody is at this turn, from its claim to the end of its analysis."""
    path = reply_file(folder.state.directory, slice_id, turn_id, "analysing")
    if not path.exists():
        return False
    with suppress(LockTimeout), locks.held(path, timeout=0.0):
        return False  # left by a worker that was killed
    return True
