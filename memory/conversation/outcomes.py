"""The small files beside a reply in flight: how it ended without an entry, and the wish that it stop.

A turn whose reply was stopped before its first word, or failed for good, has no agent entry. Its outcome says so, and
with an outcome on disk the reply is owed no more; only `reopen` (Try again) makes it owed once more.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from memory.folder import flushed
from memory.folder.clock import parse_stamp, stamp
from memory.folder.paths import parse_slice_id, parse_turn_id

REPLIES = "replies"


@dataclass(frozen=True)
class Outcome:
    """How a turn ended without an agent entry. `code` says why it failed and is worded where it is shown."""

    kind: Literal["stopped", "failed"]
    code: str
    at: datetime


def reply_file(run: Path, slice_id: str, turn_id: str, suffix: str) -> Path:
    """`<run>/replies/<slice>-<turn>.<suffix>`, the ids parsed before they become a name; raises BadId."""
    return run / REPLIES / f"{parse_slice_id(slice_id)}-{parse_turn_id(turn_id)}.{suffix}"


def record_outcome(run: Path, slice_id: str, turn_id: str, outcome: Outcome) -> None:
    """Put the outcome on disk, flushed, in one step; raises OSError when the disk does not take it."""
    path = reply_file(run, slice_id, turn_id, "outcome")
    make_replies(run)
    row = {"kind": outcome.kind, "code": outcome.code, "at": stamp(outcome.at)}
    flushed.replace(path, json.dumps(row).encode("ascii"), scratch=path.parent)


def outcome(run: Path, slice_id: str, turn_id: str) -> Outcome | None:
    """The recorded outcome, None when there is none.

    Outcomes appear whole or not at all. One that cannot be read was damaged from outside and counts as none: the reply
    is then made again, which harms nobody.
    """
    try:
        row = json.loads(reply_file(run, slice_id, turn_id, "outcome").read_bytes())
        if row["kind"] not in ("stopped", "failed"):
            return None
        return Outcome(row["kind"], str(row["code"]), parse_stamp(row["at"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return None


def reopen(run: Path, slice_id: str, turn_id: str) -> None:
    """Make an ended reply owed again: its events and the wish to stop go, then, last, its outcome.

    In this order a crash half-way leaves the outcome standing, and Try again can simply be pressed once more.
    """
    for suffix in ("stop", "events", "outcome"):
        reply_file(run, slice_id, turn_id, suffix).unlink(missing_ok=True)


def request_stop(run: Path, slice_id: str, turn_id: str) -> None:
    """Ask whoever writes this reply, now or later, to stop; asking twice is asking once."""
    path = reply_file(run, slice_id, turn_id, "stop")
    make_replies(run)
    path.touch(mode=0o600)


def make_replies(run: Path) -> None:
    """The directory of the replies in flight, made when missing; the run directory itself is not made again."""
    (run / REPLIES).mkdir(mode=0o700, exist_ok=True)
