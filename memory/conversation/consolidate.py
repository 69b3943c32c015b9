"""Strands and timeline made new after a close, and, when there are many strands, twins among them merged."""

import logging
from collections.abc import Callable
from datetime import datetime

from memory.conversation import merging
from memory.folder import derived
from memory.folder.paths import MERGES
from memory.folder.store import MemoryFolder, Write
from memory.folder.strands import record_merges, render_merges
from memory.folder.touched import close_owner
from memory.llm.client import ModelServer
from memory.llm.structured import Called, Failure

MANY = 25
"""Up to so many strands nothing is merged."""
BY_MODEL = "model"

log = logging.getLogger(__name__)


def consolidate(
    folder: MemoryFolder,
    slice_id: str,
    *,
    model: ModelServer | None,
    called: Callable[[Called], object],
    now: datetime,
    commit_pass: Callable[[], object],
) -> bool:
    """Recompute strands and timeline, pruning included, then merge twins; under work_lock.

    Returns whether the model has answered, to whatever end. `commit_pass` is called before anything is merged: merges
    have a commit of their own. Raises Damaged when strand-merges.json cannot be read and GitError when history cannot:
    everything stays as it was.
    """
    made = derived.reconcile(folder)
    with folder.files_lock(timeout=30.0):
        derived.put(folder, made, owner=close_owner(slice_id), now=now)
    if model is None or len(made.strands) <= MANY:
        return False
    pairs = merging.propose(model, strands=made.strands, merges=folder.merges(), called=called)
    if isinstance(pairs, Failure):
        log.warning("nothing is merged for %s: %s", folder.root.name, pairs.reason)
        return pairs.reached
    if pairs:
        commit_pass()
        _merge(folder, pairs, now=now)
    return True


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
        # Noted first: a worker that dies before the strands are made anew leaves that to be done.
        folder.state.save_strands_due(owner)
        folder.apply([Write(path=MERGES, found=folder.read(MERGES), data=render_merges(after).encode())], owner=owner)
    made = derived.reconcile(folder)
    with folder.files_lock(timeout=30.0):
        derived.put(folder, made, owner=owner, now=now)
