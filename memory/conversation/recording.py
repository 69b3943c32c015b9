"""A turn's words go to the slice as it is on disk now, whatever happened to it since the turn began."""

from dataclasses import replace
from datetime import datetime

from memory.folder import cognition, rewriting
from memory.folder.paths import agent_file
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Write
from memory.folder.touched import turn_owner
from memory.folder.turns import Entry, clean


def record(
    folder: MemoryFolder, slice_id: str, turn_id: str, text: str, block: cognition.Block, *, now: datetime
) -> Slice:
    """Append the agent's entry and its cognition block, once each, flushed; returns the slice as it was before.

    A slice that closed meanwhile stays closed and its end moves to the late entry. Raises NotThere or Damaged when the
    slice is gone or was made unreadable, OSError when the disk does not take the words.
    """

    def writes(data: bytes, found: Slice) -> list[Write]:
        cognitions = _cognition(folder, slice_id, block)
        if found.entry(turn_id, "agent"):
            return cognitions
        entry = Entry(turn_id, now, "agent", clean(text))
        front = None if found.active else replace(found, end=now)
        return [*rewriting.writes(folder, data, found, front=front, entry=entry), *cognitions]

    with folder.files_lock():
        return rewriting.change(folder, slice_id, writes, owner=turn_owner(slice_id, turn_id))


def record_cognition(folder: MemoryFolder, slice_id: str, block: cognition.Block) -> None:
    """Append a block alone: what a turn leaves that ended without an entry. Raises NotThere, Damaged, OSError."""
    with folder.files_lock():
        rewriting.change(
            folder,
            slice_id,
            lambda data, found: _cognition(folder, slice_id, block),
            owner=turn_owner(slice_id, block.turn_id),
        )


def _cognition(folder: MemoryFolder, slice_id: str, block: cognition.Block) -> list[Write]:
    path = agent_file(slice_id)
    before = folder.read(path)
    addition = cognition.append_text((before or b"").decode("utf-8", "replace"), block).encode()
    if not addition:
        return []
    appended = len(addition) if before is not None else 0
    keys = ((block.turn_id, "cognition"),)
    return [Write(path=path, found=before, data=(before or b"") + addition, appended=appended, entries=keys)]
