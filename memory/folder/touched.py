"""What was written and is not committed yet, path by path: listed before the write, cleared after its commit.

The list tells our bytes from a person's: bytes that neither HEAD nor this list knows are a hand edit, and go into a
commit of their own first. It is disposable; when it is lost, `recover` compares the newest files with HEAD instead.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory.folder.gitdir import is_oid
from memory.folder.paths import is_relative, parse_slice_id, parse_turn_id
from memory.folder.strands import load_json

Key = tuple[str, str]
"""(turnId, role) of an entry in core.md; (turnId, 'cognition') of a block in agent.md."""


CARD_OWNER = "card"


@dataclass(frozen=True, kw_only=True)
class Touch:
    """One path with uncommitted bytes of ours."""

    ours: tuple[str | None, ...]
    """Blob ids that are no hand edit: what our first write found and what our writes left (None: no file)."""
    owners: tuple[str, ...]
    """The commits this path waits for, oldest first: `turn <slice id> <turnId>`, `close <slice id>`, `card`, …"""
    entries: tuple[Key, ...] = ()
    """What our writes added, so that one turn's commit can leave out another's."""
    hand: str | None = None
    """The blob id of bytes that our write covered, kept aside until HEAD is asked whether it has them."""
    boundary: str | None = None
    """The owner whose boundary closed this slice; commits of earlier owners show the slice still active."""


Touched = dict[str, Touch]


def turn_owner(slice_id: str, turn_id: str) -> str:
    """The name of a turn's commit in the list."""
    return f"turn {slice_id} {turn_id}"


def close_owner(slice_id: str) -> str:
    """The name of the commit that a close pass makes."""
    return f"close {slice_id}"


def recovered_owner(slice_id: str, turn_id: str) -> str:
    """The name of the commit that brings back an answered turn whose listing was lost."""
    return f"recovered {slice_id} {turn_id}"


def turn_of(owner: str) -> tuple[str, str] | None:
    """(slice id, turnId) of the owner name of a turn, recovered or not; None for other owners."""
    kind, _, rest = owner.partition(" ")
    slice_id, _, turn_id = rest.partition(" ")
    return (parse_slice_id(slice_id), parse_turn_id(turn_id)) if kind in ("turn", "recovered") and turn_id else None


def note(
    touched: Touched, path: str, *, found: str | None, left: str, owner: str, entries: tuple[Key, ...], boundary: bool
) -> Touched:
    """The list with one more write of ours: blob `found` at `path` becomes blob `left`."""
    touch = touched.get(path) or Touch(ours=(found,), owners=())
    return touched | {
        path: replace(
            touch,
            ours=tuple(dict.fromkeys((*touch.ours, left))),
            owners=tuple(dict.fromkeys((*touch.owners, owner))),
            entries=tuple(dict.fromkeys((*touch.entries, *entries))),
            boundary=owner if boundary else touch.boundary,
        )
    }


def hand_over(touched: Touched, owner: str, to: str) -> Touched:
    """The list with one owner's writes as another's."""
    return {
        path: replace(
            touch,
            owners=tuple(dict.fromkeys(to if each == owner else each for each in touch.owners)),
            boundary=to if touch.boundary == owner else touch.boundary,
        )
        for path, touch in touched.items()
    }


def parse(text: str) -> Touched:
    """Read the list; raises ValueError when it is damaged, whatever it holds."""
    rows = load_json(text)
    if not isinstance(rows, dict) or not all(map(is_relative, rows)):
        raise ValueError("no list of touched paths")
    return {path: _touch(row) for path, row in rows.items()}


def render(touched: Touched) -> str:
    """The list as its file."""
    rows = {
        path: {
            "ours": touch.ours,
            "owners": touch.owners,
            "entries": touch.entries,
            "hand": touch.hand,
            "boundary": touch.boundary,
        }
        for path, touch in touched.items()
    }
    return json.dumps(rows)


def _touch(row: object) -> Touch:
    match row:
        case {
            "ours": list(ours),
            "owners": [str(), *_] as owners,
            "entries": list(entries),
            "hand": str() | None as hand,
            "boundary": str() | None as boundary,
        } if _are_texts(owners) and all(map(_is_key, entries)) and all(map(_is_blob, (*ours, hand))):
            for owner in owners:
                turn_of(owner)
            return Touch(
                ours=tuple(ours),
                owners=tuple(owners),
                entries=tuple((turn_id, role) for turn_id, role in entries),
                hand=hand,
                boundary=boundary,
            )
    raise ValueError("no touched path")


def _is_key(key: object) -> bool:
    return isinstance(key, list) and len(key) == 2 and _are_texts(key)


def _is_blob(blob: object) -> bool:
    return blob is None or is_oid(blob)


def _are_texts(items: Iterable[object]) -> bool:
    return all(isinstance(item, str) for item in items)
