"""What is done about commits and edits that are not ours, before ours are made."""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime

from memory.folder import cognition, slices
from memory.folder.branch import Branch, blobs_at, commit_files
from memory.folder.errors import NotThere
from memory.folder.git import blob_id
from memory.folder.paths import agent_file, core_file, slice_of_file
from memory.folder.store import MemoryFolder
from memory.folder.touched import Key, Touch, Touched
from memory.folder.turns import Entry


def mend_reverted(folder: MemoryFolder, branch: Branch, listed: Touched, now: datetime) -> None:
    """Commit our last files again where somebody's commit, made with a stale index, took them back.

    Only files whose bytes on disk are still those that we committed: what the person changed on disk is theirs, and so
    is a branch that they moved elsewhere.
    """
    committed = folder.state.committed()
    if committed is None or committed.head is None or branch.head is None or committed.head == branch.head:
        return
    if not folder.repository.is_ancestor(committed.head, branch.head):
        return
    changed = [path for path in folder.repository.changed(committed.head, branch.head) if committed.blobs.get(path)]
    branch.blobs |= blobs_at(folder, changed, branch.head)
    lost: dict[str, bytes | None] = {}
    turns: dict[str, None] = {}
    for path in changed:
        data = folder.read(path)
        if data is not None and path in listed:
            data = less(path, data, listed[path].entries)
        if data is None or not blob_id(data) == committed.blobs[path] != branch.blobs[path]:
            continue
        missing = entries_beyond(folder, branch.head, path, data) if is_core(path) else []
        # A listed path without lost entries was moved on by our own last commit, which we did not live to note.
        if missing or path not in listed:
            lost[path] = data
            turns |= dict.fromkeys(entry.turn_id for entry in missing)
    commit_files(folder, branch, lost, f"recovered turn {', '.join(turns)}" if turns else "recovered files", now)


def commit_hand_edits(
    folder: MemoryFolder, branch: Branch, path: str, touch: Touch, disk: bytes | None, now: datetime
) -> None:
    """Commit a person's own versions of `path`, less our uncommitted entries, before ours.

    There may be two: the one our first write found, and one made after our last write. What was kept aside may also
    be ours, covered by its owner's edit in the web: it is committed like them, so that there is a way back to it.
    """
    versions: list[tuple[bytes | None, str]] = []
    if touch.hand and touch.hand != branch.blobs[path]:
        kept = folder.state.hand(touch.hand)
        if kept is not None and not _is_torn(path, kept, touch):
            versions.append((kept, "before an edit" if touch.hand in touch.ours[1:] else "edited by hand"))
    if (blob_id(disk) if disk is not None else None) not in touch.ours and not _is_torn(path, disk, touch):
        versions.append((disk, "edited by hand"))
    for version, what in versions:
        theirs = less(path, version, touch.entries) if version is not None else None
        commit_files(folder, branch, {path: theirs}, f"{what}: {path}", now)


def less(path: str, data: bytes, keys: Collection[Key]) -> bytes:
    """A core.md or agent.md without some entries; any other file, or one that is no UTF-8, stays whole."""
    if not keys:
        return data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    if is_core(path):
        return slices.without(text, keys).encode()
    if is_agent(path):
        return cognition.without_blocks(text, {turn_id for turn_id, _ in keys}).encode()
    return data


def _is_torn(path: str, data: bytes | None, touch: Touch) -> bool:
    """Whether these are bytes of ours with an append of ours cut short by a kill: nobody edited anything."""
    if data is None or not (is_core(path) or is_agent(path)):
        return False
    # All that had come may be a piece of the heading. Cut later, it reads as an entry or a block that is not whole.
    begin = data.rfind(b"\n")
    sign = "## Turn" if is_core(path) else "## Cognition"
    headings = [f"\n{sign} {turn_id} ".encode() for turn_id, _ in touch.entries]
    before = []
    if any(heading.startswith(data[begin:]) or data[begin:].startswith(heading) for heading in headings):
        before.append(data[:begin])
    with suppress(UnicodeDecodeError):
        whole = slices.decode(data).encode()
        before += [rest for key in touch.entries if (rest := less(path, whole, {key})) != whole]
    return any(blob_id(rest) in touch.ours for rest in before)


def entries_beyond(folder: MemoryFolder, commit: str | None, path: str, data: bytes) -> list[Entry]:
    """The entries of the core.md at `path` that it does not hold in `commit` (None: before the first one)."""
    try:
        committed = folder.repository.read(commit, path) if commit else b""
    except NotThere:
        committed = b""
    known = {entry.key for entry in slices.entries_of(committed)}
    return [entry for entry in slices.entries_of(data) if entry.key not in known]


def is_core(path: str) -> bool:
    """Whether a relative file is a slice's core.md."""
    slice_id = slice_of_file(path)
    return slice_id is not None and path == core_file(slice_id)


def is_agent(path: str) -> bool:
    """Whether a relative file is a slice's agent.md."""
    slice_id = slice_of_file(path)
    return slice_id is not None and path == agent_file(slice_id)
