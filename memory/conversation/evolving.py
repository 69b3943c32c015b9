"""evolve_card: what a closed slice says about the person goes into their card, entry by entry."""

import logging
from datetime import datetime

from memory.conversation import evolve
from memory.conversation.companion import Companion
from memory.conversation.person import Person
from memory.conversation.remembering import hand_on
from memory.folder.paths import CARD
from memory.folder.store import MemoryFolder, Write
from memory.folder.touched import close_owner
from memory.llm.structured import Failure

log = logging.getLogger(__name__)


def evolve_card(folder: MemoryFolder, slice_id: str, *, companion: Companion, person: Person, now: datetime) -> bool:
    """Ask what the card should take over from this slice, and apply what passes to the card as it is then.

    Returns whether the model has answered, to whatever end. The next slice is told in one sentence. Once this pass has
    changed the card it does not again, though the worker be killed before that is noted. Raises NotThere, Damaged,
    LockTimeout.
    """
    touched = folder.state.touched().get(CARD)
    if companion.model is None or (touched and close_owner(slice_id) in touched.owners):
        return True
    proposal = evolve.propose(companion.model, folder, folder.slice(slice_id), person=person, called=companion.called)
    if isinstance(proposal, Failure):
        log.warning("the card of %s does not evolve by %s: %s", folder.root.name, slice_id, proposal.reason)
        return proposal.reached
    if not proposal.operations:
        return True
    with folder.files_lock(timeout=30.0):
        evolved = evolve.apply_to(
            evolve.read_card(folder),
            proposal.operations,
            rules=evolve.rules_for(folder),
            at=now,
            slice_id=slice_id,
            language=person.language,
            evolution_summary=proposal.evolution_summary,
        )
        if evolved.applied:
            card = Write(path=CARD, found=folder.read(CARD), data=evolved.card_text.encode())
            folder.apply([card], owner=close_owner(slice_id))
            hand_on(folder, slice_id, evolved.summary)
    return True
