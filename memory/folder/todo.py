"""`todo.json`: background work that is due for one person, kept until it is done, whatever becomes of the broker.

Replies that are owed are not listed here: they are read off the slices themselves, which cannot disagree with them.
"""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from memory.folder.clock import parse_stamp, stamp
from memory.folder.paths import parse_slice_id

CLOSE = "close"
"""The work after a boundary: marks, strands, timeline, one commit."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece of work that is due."""

    what: str
    slice_id: str
    attempts: int = 0
    not_before: datetime | None = None
    worth_it: bool = False


def load(path: Path) -> list[Work]:
    """The work listed, oldest first; an absent or damaged list is empty (due work is found again from the files)."""
    try:
        rows = json.loads(path.read_text("utf-8"))
        return [
            Work(
                what=str(row["what"]),
                slice_id=parse_slice_id(row["slice_id"]),
                attempts=int(row["attempts"]),
                not_before=parse_stamp(row["not_before"]) if row["not_before"] else None,
                worth_it=bool(row["worth_it"]),
            )
            for row in rows
        ]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return []


def render(works: list[Work]) -> str:
    """The list as its file."""
    rows = [asdict(work) | {"not_before": stamp(work.not_before) if work.not_before else None} for work in works]
    return json.dumps(rows)
