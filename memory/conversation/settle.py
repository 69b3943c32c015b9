"""Commits that wait are made: after a turn, before the next one, by the sweep, and after an edit in the web."""

import logging
from datetime import datetime

from memory.conversation.due import has_ended, nothing_due
from memory.folder import derived
from memory.folder.commits import commit_ready, refresh_index
from memory.folder.errors import FolderError, GitError, LockTimeout, NewerFormat
from memory.folder.recover import recover
from memory.folder.store import MemoryFolder

log = logging.getLogger(__name__)


def settle(folder: MemoryFolder, *, now: datetime, unended: bool = False, analysed: bool = False) -> str | None:
    """Recover what a crash left, commit what has ended, and bring git's index up to date.

    With `unended` the words of turns and passes that are not over are committed, too: a backup holds every message.
    With `analysed` a turn does not wait for its analysis: the next one begins.

    Trouble with git never stops a conversation: the files are written and the commits stay due. Returns the reason
    why they wait, None when they do not.
    """
    try:
        with folder.files_lock(timeout=30.0):
            foreign = recover(folder)
            made = commit_ready(
                folder, lambda owner: unended or has_ended(folder, owner, now, analysed=analysed), now=now
            )
        if made or folder.state.index_due():
            refresh_index(folder)
    except (GitError, LockTimeout, NewerFormat) as error:
        log.warning("commits of %s wait: %s", folder.root.name, error)
        return type(error).__name__
    if foreign:
        log.warning("a git lock in %s is not ours and is left alone: %s", folder.root.name, foreign)
    return type(foreign).__name__ if foreign else None


def renew_strands(folder: MemoryFolder, *, now: datetime) -> None:
    """Make strands and timeline anew if a merge was undone; before `settle`, so that one commit holds both.

    Takes a second or two in a folder of many years, so no reply waits for it: only the task that settles does it.
    """
    try:
        derived.renew(folder, now=now)
    except (FolderError, OSError) as error:
        log.warning("the strands of %s wait to be made anew: %s", folder.root.name, error)


def clear_marker(folder: MemoryFolder, *, now: datetime) -> None:
    """Take the pending marker away if nothing is due; under files_lock, so that no message arrives in between."""
    with folder.files_lock(timeout=30.0):
        if nothing_due(folder, now):
            folder.state.clear_pending()
