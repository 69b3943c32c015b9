"""From touched paths to commits: one for a turn, holding what that turn wrote and nothing of another.

The committed bytes are built, not copied: another turn's entries are cut out, and a slice that a later turn's boundary
closed is shown still active. Bytes that neither we nor HEAD know are the person's and go first, in a commit of their
own. Only the worker commits; every function here is called under files_lock, except `refresh_index`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from memory.folder import slices
from memory.folder.branch import commit_files, look
from memory.folder.closing import as_active
from memory.folder.errors import Damaged, GitError, NotThere
from memory.folder.mending import commit_hand_edits, less, mend_reverted
from memory.folder.paths import core_file, slice_of_file
from memory.folder.store import MemoryFolder
from memory.folder.touched import CARD_OWNER, Key, Touch, turn_of

FIRST_WORDS = 60


def commit_ready(folder: MemoryFolder, ready: Callable[[str], bool], *, now: datetime) -> list[str]:
    """Commit every listed owner of whom `ready(owner)` holds, oldest first; returns the owners that made a commit."""
    owners = dict.fromkeys(owner for touch in folder.state.touched().values() for owner in touch.owners)
    return [owner for owner in owners if ready(owner) and commit_owner(folder, owner, now=now)]


def commit_owner(folder: MemoryFolder, owner: str, *, now: datetime) -> str | None:
    """Commit what `owner` wrote; the commit's id, None when nothing of it was left to commit.

    Raises HeadBusy while the person's own git is in the middle of something, BranchMoved when the branch moved twice
    under us, other GitErrors; the work stays listed then.
    """
    listed = folder.state.touched()
    paths = {path: touch for path, touch in listed.items() if owner in touch.owners}
    if not paths:
        return None
    branch = look(folder, paths)
    committed = folder.state.committed()
    if committed is None or committed.head != branch.head:
        # A commit of ours whose end we did not live to note may have moved these: the index has to hear of them.
        folder.state.save_index_due(folder.state.index_due() | {path: branch.blobs[path] for path in paths})
        mend_reverted(folder, branch, listed, now)
    disk = {path: folder.read(path) for path in paths}
    for path, touch in paths.items():
        commit_hand_edits(folder, branch, path, touch, disk[path], now)
    built = {path: _built(path, disk[path], touch, owner) for path, touch in paths.items()}
    made = commit_files(folder, branch, built, _message(folder, owner, paths), now)
    for path, touch in paths.items():
        if touch.hand:
            folder.state.drop_hand(touch.hand)
        rest = _without_owner(touch, owner, branch.blobs[path])
        if rest:
            listed[path] = rest
        else:
            del listed[path]
    folder.state.save_touched(listed)
    return made


def refresh_index(folder: MemoryFolder) -> bool:
    """Bring git's index up to the commits, outside files_lock; False when somebody holds the index (done later)."""
    due = folder.state.index_due()
    if due:
        repository = folder.repository
        try:
            current = repository.refresh_index(due)
        except GitError:
            current = repository.rebuild_index()  # the index is damaged; HEAD has all that it can say
        if not current:
            return False
        with folder.files_lock():
            left = {path: blob for path, blob in folder.state.index_due().items() if due.get(path, "") != blob}
            folder.state.save_index_due(left)
    return True


def _built(path: str, disk: bytes | None, touch: Touch, owner: str) -> bytes | None:
    """The bytes of `path` as `owner`'s commit shows them."""
    if disk is None:
        return None
    data = less(path, disk, [key for key in touch.entries if not _belongs(key, owner)])
    slice_id = slice_of_file(path)
    if slice_id and touch.boundary and touch.boundary != owner and path == core_file(slice_id):
        return _still_active(slice_id, data)
    return data


def _still_active(slice_id: str, data: bytes) -> bytes:
    try:
        found = slices.parse(data, slice_id=slice_id)
    except Damaged:
        return data  # a person made it unreadable meanwhile: their bytes as they are
    return slices.with_front(data.decode("utf-8"), as_active(found)).encode()


def _without_owner(touch: Touch, owner: str, committed: str | None) -> Touch | None:
    owners = tuple(other for other in touch.owners if other != owner)
    if not owners:
        return None
    return replace(
        touch,
        ours=tuple(dict.fromkeys((*touch.ours, committed))),
        owners=owners,
        entries=tuple(key for key in touch.entries if not _belongs(key, owner)),
        hand=None,
        boundary=None if touch.boundary == owner else touch.boundary,
    )


def _belongs(key: Key, owner: str) -> bool:
    turn = turn_of(owner)
    return turn is not None and turn[1] == key[0]


def _message(folder: MemoryFolder, owner: str, paths: Mapping[str, Touch]) -> str:
    turn = turn_of(owner)
    if turn:
        slice_id, turn_id = turn
        if owner.startswith("recovered "):
            return f"recovered turn {turn_id}"
        core = paths.get(core_file(slice_id))
        # A reply whose message an earlier commit holds already: the turn had ended without one and was tried again.
        again = core is not None and (turn_id, "agent") in core.entries and (turn_id, "user") not in core.entries
        return f"turn {turn_id}{', again' if again else ''}: {_first_words(folder, slice_id, turn_id)}"
    if owner.startswith("close "):
        return f"{owner}: {_focus(folder, owner.removeprefix('close '))}"
    return "card edited by its owner" if owner == CARD_OWNER else owner


def _first_words(folder: MemoryFolder, slice_id: str, turn_id: str) -> str:
    try:
        entry = folder.slice(slice_id).entry(turn_id, "user")
    except (Damaged, NotThere):
        entry = None
    words = " ".join(entry.content.split()) if entry else ""
    return words[:FIRST_WORDS].rstrip() + ("…" if len(words) > FIRST_WORDS else "")


def _focus(folder: MemoryFolder, slice_id: str) -> str:
    try:
        return folder.slice(slice_id).focus
    except (Damaged, NotThere):
        return ""
