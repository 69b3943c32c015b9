"""What one slice hands on to the next: its marks, the card it changed, and one sentence on that change."""

import time
from dataclasses import replace

from memory.conversation.speaking import Speaker
from memory.folder import rewriting, todo
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.touched import close_owner, turn_owner

BETWEEN_EVOLUTIONS = "; "
LOOK = 0.05


def wait_for_last_slice(speaker: Speaker, found: Slice) -> None:
    """Wait until the slice before `found` is marked and the card evolved, at most the companion's `card_wait` seconds.

    Only when that slice is worth it or nobody has said yet, and only for the first try: a model that just failed is not
    waited for. Raises Stopped and Leaving.
    """
    until = time.monotonic() + speaker.companion.card_wait
    told = False
    while time.monotonic() < until and _is_worked_on(speaker.folder, found):
        if not told:
            speaker.writer.waiting("remembering")
            told = True
        speaker.pause(LOOK)


def take_evolution(folder: MemoryFolder, slice_id: str, turn_id: str) -> Slice:
    """Claim the system message of a slice: what waits to be told goes into its front matter, later things do not.

    Returns the slice to make the message of. When the message is made once more, nothing new is taken: it is to say the
    same again. Raises NotThere, Damaged.
    """
    with folder.files_lock():
        state = folder.state
        waiting = "" if state.prompt_claimed(slice_id) else state.evolution()
        if waiting:
            _tell(folder, slice_id, waiting, owner=turn_owner(slice_id, turn_id))
            state.save_evolution("")
        state.claim_prompt(slice_id)
        return folder.slice(slice_id)


def hand_on(folder: MemoryFolder, closed: str, summary: str) -> None:
    """Tell the slice after `closed` what its card evolution changed; once its message is made, the next one is told.

    Under files_lock.
    """
    newest = next((found for found in folder.newest(1) if isinstance(found, Slice)), None)
    if newest and newest.active and newest.slice_id > closed and not folder.state.prompt_claimed(newest.slice_id):
        _tell(folder, newest.slice_id, summary, owner=close_owner(closed))
    else:
        folder.state.save_evolution(_joined(folder.state.evolution(), summary))


def _tell(folder: MemoryFolder, slice_id: str, summary: str, *, owner: str) -> None:
    rewriting.change(
        folder,
        slice_id,
        lambda data, found: rewriting.writes(
            folder, data, found, front=replace(found, evolution_summary=_joined(found.evolution_summary, summary))
        ),
        owner=owner,
    )


def _joined(before: str, summary: str) -> str:
    return BETWEEN_EVOLUTIONS.join(text for text in (before, summary) if text)


def _is_worked_on(folder: MemoryFolder, found: Slice) -> bool:
    closes = [work for work in folder.state.todo() if work.what == todo.CLOSE and work.slice_id < found.slice_id]
    last = max(closes, key=lambda work: work.slice_id, default=None)
    return (
        last is not None
        and last.attempts == 0
        and last.worth_it is not False
        and last.step in (todo.ANALYSE_CLOSE, todo.EVOLVE_CARD)
    )
