"""The branch that HEAD names, as our commits move it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from memory.folder.errors import BranchMoved
from memory.folder.git import Change, blob_id
from memory.folder.runstate import Committed
from memory.folder.store import MemoryFolder


@dataclass
class Branch:
    """The tip of the branch and the blob ids it holds at the paths in question (None: no such file)."""

    head: str | None
    blobs: dict[str, str | None]


def look(folder: MemoryFolder, paths: Collection[str]) -> Branch:
    """The branch as it is now, asking git only for what our last commit does not tell; raises HeadBusy."""
    head = folder.repository.head()
    committed = folder.state.committed()
    known = dict(committed.blobs) if committed and committed.head == head else {}
    return Branch(head, known | blobs_at(folder, [path for path in paths if path not in known], head))


def blobs_at(folder: MemoryFolder, paths: Collection[str], head: str | None) -> dict[str, str | None]:
    """The blob ids that a commit holds at some paths, None where it holds nothing."""
    if head is None or not paths:
        return dict.fromkeys(paths)
    return folder.repository.blobs(list(paths), at=head)


def commit_files(
    folder: MemoryFolder, branch: Branch, files: Mapping[str, bytes | None], message: str, now: datetime
) -> str | None:
    """Commit the files that differ from the branch and note them for the index; None when none differs.

    Under files_lock. Raises BranchMoved when the branch moves twice under us, and the other GitErrors.
    """
    ids = {path: blob_id(data) if data is not None else None for path, data in files.items()}
    try:
        made = _commit(folder, branch, files, ids, message, now)
    except BranchMoved:
        # Somebody committed between our look and our commit, perhaps a git that outlived a killed worker of ours: look
        # again, and commit on top of theirs what theirs does not hold.
        branch.head = folder.repository.head()
        branch.blobs = blobs_at(folder, list(branch.blobs), branch.head)
        folder.state.save_index_due(folder.state.index_due() | branch.blobs)
        made = _commit(folder, branch, files, ids, message, now)
    return made


def _commit(
    folder: MemoryFolder,
    branch: Branch,
    files: Mapping[str, bytes | None],
    ids: Mapping[str, str | None],
    message: str,
    now: datetime,
) -> str | None:
    changes = [Change(path, data) for path, data in files.items() if ids[path] != branch.blobs[path]]
    if not changes:
        return None
    made = folder.repository.commit(changes, message, parent=branch.head, at=now)
    new = {change.path: ids[change.path] for change in changes}
    committed = folder.state.committed()
    # What our last commit held says nothing about a path that somebody else's commit has changed since.
    before = committed if committed and committed.head == branch.head else Committed(branch.head, branch.blobs)
    branch.head = made
    branch.blobs |= new
    folder.state.save_index_due(folder.state.index_due() | new)
    folder.state.save_committed(before.then(made, new))
    return made
