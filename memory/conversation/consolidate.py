"""Strands and timeline made new after a close, and, when there are many strands, twins among them merged."""

import logging
from collections.abc import Callable
from datetime import datetime

from memory.conversation import merging
from memory.conversation.companion import Companion
from memory.folder import derived
from memory.folder.paths import MERGES
from memory.folder.store import MemoryFolder, Write
from memory.folder.strands import record_merges, render_merges
from memory.folder.touched import close_owner
from memory.llm.structured import Failure

MANY = 25
"""Up to so many strands nothing is merged."""
BY_MODEL = "model"

log = logging.getLogger(__name__)


def consolidate(
    folder: MemoryFolder, slice_id: str, *, companion: Companion, now: datetime, commit_pass: Callable[[], object]
) -> None:
    """Recompute strands and timeline, pruning included, then merge twins; under work_lock.

    `commit_pass` is called before anything is merged: merges have a commit of their own. Raises Damaged when
    strand-merges.json cannot be read and GitError when history cannot: everything stays as it was.
    """
    made = derived.reconcile(folder)
    with folder.files_lock(timeout=30.0):
        derived.put(folder, made, owner=close_owner(slice_id), now=now)
    if companion.model is None or len(made.strands) <= MANY:
        return
    pairs = merging.propose(companion.model, strands=made.strands, merges=folder.merges(), called=companion.called)
    if isinstance(pairs, Failure):
        log.warning("nothing is merged for %s: %s", folder.root.name, pairs.reason)
    elif pairs:
        commit_pass()
        _merge(folder, pairs, now=now)


def _merge(folder: MemoryFolder, pairs: tuple[merging.Pair, ...], *, now: datetime) -> None:
    with folder.files_lock(timeout=30.0):
        before = folder.merges()
        after = record_merges(before, pairs, at=now, by=BY_MODEL)
        taken = [
            f"{key} → {merge.to}"
            for key, merges in after.items()
            for merge in merges
            if merge not in before.get(key, ())
        ]
        if not taken:
            return
        owner = f"merge strands: {', '.join(taken)}"
        folder.apply([Write(path=MERGES, found=folder.read(MERGES), data=render_merges(after).encode())], owner=owner)
    made = derived.reconcile(folder)
    with folder.files_lock(timeout=30.0):
        derived.put(folder, made, owner=owner, now=now)
