"""What a person may do about a reply: stop it, and ask for it once more."""

from datetime import datetime

from memory.conversation.due import is_owed
from memory.conversation.events import read_events
from memory.conversation.outcomes import Outcome, outcome, record_outcome, reopen, request_stop
from memory.folder.store import MemoryFolder


def stop_reply(folder: MemoryFolder, slice_id: str, turn_id: str, *, now: datetime) -> bool:
    """Stop a reply. Returns True when that ended it at once, because it had not begun; else its worker ends it.

    Stopping a reply that is over changes nothing. Raises BadId, NotThere, Damaged, LockTimeout.
    """
    run = folder.state.directory
    folder.state.mark_pending()
    # The worker writes its first event under the same lock, so a turn is either ended here or stopped there.
    with folder.files_lock():
        if not is_owed(folder, folder.slice(slice_id), turn_id, now):
            return False
        request_stop(run, slice_id, turn_id)
        if read_events(run, slice_id, turn_id)[0]:
            return False
        record_outcome(run, slice_id, turn_id, Outcome("stopped", "", now))
        return True


def try_again(folder: MemoryFolder, slice_id: str, turn_id: str) -> bool:
    """Make a reply that was stopped or has failed owed once more; False when it has no outcome. Raises LockTimeout.

    Asking twice is asking once: the second time there is no outcome any more.
    """
    folder.state.mark_pending()
    with folder.files_lock():
        if outcome(folder.state.directory, slice_id, turn_id) is None:
            return False
        reopen(folder.state.directory, slice_id, turn_id)
        return True
