"""The one way in which a core.md that exists is changed: new front matter, one more entry, stray lines moved out."""

from collections.abc import Callable

from memory.folder.errors import NotThere
from memory.folder.git import blob_id
from memory.folder.paths import appendix_file, core_file
from memory.folder.slices import Slice, decode, parse, with_front, without
from memory.folder.store import MemoryFolder, Moved, Write
from memory.folder.turns import Entry, append_text

TRIES_AGAINST_EDITORS = 5


def change(folder: MemoryFolder, slice_id: str, writes: Callable[[bytes, Slice], list[Write]], *, owner: str) -> Slice:
    """Apply what `writes(data, slice)` makes of a core.md as it is now, anew when an editor gets in between.

    Under files_lock; returns the slice as it was read. Raises NotThere, Damaged, Moved (an editor that never rests).
    """
    for attempt in range(TRIES_AGAINST_EDITORS):
        data = folder.read(core_file(slice_id))
        if data is None:
            raise NotThere(f"no slice {slice_id}")
        found = parse(data, slice_id=slice_id)
        try:
            folder.apply(writes(data, found), owner=owner)
        except Moved:
            if attempt == TRIES_AGAINST_EDITORS - 1:
                raise
        else:
            return found
    raise AssertionError("unreachable")


def writes(
    folder: MemoryFolder,
    data: bytes,
    before: Slice,
    *,
    front: Slice | None = None,
    entry: Entry | None = None,
    instead: bool = False,
    boundary: bool = False,
) -> list[Write]:
    """The writes that turn the core.md bytes `data`, read as `before`, into what they are to be.

    `front` gives new front matter, `entry` is added at the end (`instead`: in the place of the torn one of the same
    key). Lines that are no turns move to the appendix, which is written first: a crash between the two leaves them in
    both files, never in none, and the next call sees that they are there already. An entry alone is appended.
    """
    path = core_file(before.slice_id)
    entries = (entry.key,) if entry else ()
    plain = front is None and not before.stray and not instead and _as_we_write(data)
    if plain and entry:
        addition = append_text(data.decode("utf-8"), entry).encode()
        return [Write(path=path, found=data, data=data + addition, appended=len(addition), entries=entries)]
    text = with_front(decode(data), front or before)
    if entry:
        text = without(text, {entry.key}) if instead else text
        text += append_text(text, entry)
    core = Write(path=path, found=data, data=text.encode(), entries=entries, boundary=boundary)
    return [*appendix(folder, before), core]


def _as_we_write(data: bytes) -> bool:
    """Whether an append would leave a file with one kind of line end, no byte order mark and whole characters."""
    if data.startswith(b"\xef\xbb\xbf") or data.partition(b"\n")[0].endswith(b"\r"):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def appendix(folder: MemoryFolder, found: Slice) -> list[Write]:
    """The write that adds a slice's stray lines to its appendix; none when there are none, or they are there."""
    if not found.stray:
        return []
    path = appendix_file(found.slice_id)
    before = folder.read(path)
    stray = found.stray.encode() if found.stray.endswith("\n") else f"{found.stray}\n".encode()
    listed = folder.state.touched().get(path)
    if before is not None and listed and listed.ours[-1] == blob_id(before) and before.endswith(stray):
        return []  # moved just before a crash kept the core.md from being written
    start = before if not before or before.endswith(b"\n") else before + b"\n"
    return [Write(path=path, found=before, data=(start or b"") + stray)]
