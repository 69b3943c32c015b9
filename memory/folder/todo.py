"""`todo.json`: background work that is due for one person, kept until it is done, whatever becomes of the broker.

Replies that are owed are not listed here: they are read off the slices themselves, which cannot disagree with them.
"""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.folder.clock import parse_stamp, stamp
from memory.folder.paths import parse_slice_id
from memory.folder.strands import load_json

CLOSE = "close"
"""The work after a boundary."""
VERDICT = "verdict"
"""Nothing to do: what the turns of a slice that is still open said about whether it is worth remembering."""

ANALYSE_CLOSE = "analyse_close"
EVOLVE_CARD = "evolve_card"
BACKFILL = "backfill"
CONSOLIDATE_STRANDS = "consolidate_strands"
UPKEEP = "upkeep"
STEPS = (ANALYSE_CLOSE, EVOLVE_CARD, BACKFILL, CONSOLIDATE_STRANDS, UPKEEP)
"""The steps of a close pass in their order."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One entry: for a close its next step, how often its analysis has failed, and when it is tried again.

    `worth_it` says whether the slice is worth remembering; None while nobody has said. `answered` are the steps that
    need not ask a model again: an analysis that is tried once more is a pass of its own, the card evolves once.
    `swept`: the pass was found lying and taken up again, not begun at its boundary.
    """

    what: str
    slice_id: str
    step: str = ANALYSE_CLOSE
    attempts: int = 0
    not_before: datetime | None = None
    worth_it: bool | None = None
    answered: tuple[str, ...] = ()
    swept: bool = False


def load(path: Path) -> list[Work]:
    """The work listed, in the order of its closes; an absent or damaged list is empty."""
    try:
        rows: Any = load_json(path.read_text("utf-8"))
        return [_work(row) for row in rows]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return []


def render(works: list[Work]) -> str:
    """The list as its file."""
    rows = [asdict(work) | {"not_before": stamp(work.not_before) if work.not_before else None} for work in works]
    return json.dumps(rows)


def close_of(works: list[Work], slice_id: str) -> Work | None:
    """The close work of a slice."""
    return next((work for work in works if work.what == CLOSE and work.slice_id == slice_id), None)


def verdict_on(works: list[Work], slice_id: str) -> bool | None:
    """What the turns of an open slice said: worth remembering, not worth it, or nothing yet."""
    return next((work.worth_it for work in works if work.what == VERDICT and work.slice_id == slice_id), None)


def without(works: list[Work], slice_id: str, what: str) -> list[Work]:
    """The list less one kind of entry about a slice."""
    return [work for work in works if (work.slice_id, work.what) != (slice_id, what)]


def _work(row: dict[str, Any]) -> Work:
    worth_it, step = row["worth_it"], row["step"]
    if step not in STEPS or worth_it not in (True, False, None):
        raise ValueError("no entry of a work list")
    return Work(
        what=str(row["what"]),
        slice_id=parse_slice_id(str(row["slice_id"])),
        step=str(step),
        attempts=int(str(row["attempts"])),
        not_before=parse_stamp(str(row["not_before"])) if row["not_before"] else None,
        worth_it=None if worth_it is None else bool(worth_it),
        answered=tuple(each for each in STEPS if each in row.get("answered", ())),
        swept=row.get("swept") is True,
    )
