"""The turn analyzer, as far as it needs no model: which strands the turn belongs to.

The floor of its turn form are existing strands that the person's words name, and `#hashtags`.
"""

import logging
from dataclasses import replace
from datetime import datetime

from memory.folder import derived, rewriting, strands
from memory.folder.errors import Damaged, NotThere
from memory.folder.marks import floor_tags
from memory.folder.paths import STRANDS
from memory.folder.slices import MAX_ITEMS, Slice
from memory.folder.store import MemoryFolder, Write
from memory.folder.touched import turn_owner

log = logging.getLogger(__name__)


def analyse_turn(folder: MemoryFolder, slice_id: str, turn_id: str, *, now: datetime) -> None:
    """Add the turn's tags to its slice and weave them; nothing is written when the slice gains none."""
    with folder.files_lock(timeout=30.0):
        if derived.set_aside_if_corrupt(folder, now=now):
            log.warning("strands.json of %s was corrupt; it is kept beside a new one", folder.root.name)
            derived.put(folder, derived.rebuild(folder), owner=turn_owner(slice_id, turn_id), now=now)
        woven, merges = folder.strands(), folder.merges()

        def writes(data: bytes, found: Slice) -> list[Write]:
            entry = found.entry(turn_id, "user")
            told = floor_tags(entry.content, woven) if entry else ()
            have = {strands.normalise(tag) for tag in found.tags}
            new = tuple(tag for tag in told if strands.normalise(tag) not in have)[: MAX_ITEMS - len(found.tags)]
            if not new:
                return []
            front = replace(found, tags=(*found.tags, *new))
            after = strands.weave(woven, front.tags, found.path, merges)
            core = rewriting.writes(folder, data, found, front=front)
            if after == woven:
                return core
            before = folder.read(STRANDS)
            return [*core, Write(path=STRANDS, found=before, data=strands.render_strands(after).encode())]

        try:
            rewriting.change(folder, slice_id, writes, owner=_owner(folder, slice_id, turn_id))
        except (NotThere, Damaged) as error:
            log.warning("turn %s is not analysed: %s", turn_id, error)


def _owner(folder: MemoryFolder, slice_id: str, turn_id: str) -> str:
    """The commit the tags go with: the turn's own, or the next turn's when its claim has made that one already."""
    own = turn_owner(slice_id, turn_id)
    owners = [owner for touch in folder.state.touched().values() for owner in touch.owners]
    return own if own in owners or not owners else owners[-1]
