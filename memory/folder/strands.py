"""Strands: each tag with every slice that carries it, and the merges that make one strand of two keys.

The index, strands.json, is one pure function, `compute`, of the slices' tags, the merges and the end of the newest
closed slice. Between two closes `weave` only adds to it. A key is always a tag in its normalised form, after merges.
"""

import json
import operator
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from memory.folder.clock import parse_stamp, stamp

Strands = dict[str, tuple[str, ...]]
"""Key to slice paths, ascending and without duplicates; keys by first path, then name."""

FRESH = timedelta(hours=14 * 24)
"""How long before the newest closed slice's end a slice may have begun and still keep a strand of its own alive."""


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """What a slice adds to the strands: its slice path, its start, whether it is active, and its tags."""

    path: str
    start: datetime
    active: bool
    tags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Merge:
    """One key was merged into `to`, by whom and when; an undone merge stays on record so that it never comes back."""

    to: str
    at: datetime
    by: str
    undone: bool = False


Merges = dict[str, tuple[Merge, ...]]
"""The key that was merged away, to what happened to it, oldest first; at most one of these stands."""


def _wide_forms() -> dict[int, str]:
    """Map each full-width form, the ideographic space included, to the plain character."""
    table = {}
    for code in (0x3000, *range(0xFF01, 0xFFEF)):
        kind, _, plain = unicodedata.decomposition(chr(code)).partition(" ")
        if kind == "<wide>":
            table[code] = chr(int(plain, 16))
    return table


_FOLDED = _wide_forms()
_LOWER = {code: chr(code + 32) for code in range(ord("A"), ord("Z") + 1)}
_ZEROS = str.maketrans("123456789", "0" * 9)
_SHAPE = "0000/00/00/0000\n"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@lru_cache(maxsize=65536)
def normalise(tag: str) -> str:
    """Return the form by which tags are compared; empty when the text is no tag.

    Unicode NFC, full-width forms folded to half-width, ASCII letters lower-cased, white space trimmed and collapsed.
    Accents, plurals and Chinese variants stay apart.
    """
    return " ".join(fold(tag).split())


def fold(text: str) -> str:
    """Return the text as tags are compared, its white space left as it is."""
    plain = unicodedata.normalize("NFC", text.translate(_FOLDED)).translate(_LOWER)
    # A lower-case letter may compose with a mark that the upper-case one could not.
    return unicodedata.normalize("NFC", plain)


def follow(key: str, merges: Mapping[str, tuple[Merge, ...]]) -> str:
    """Return the key that this one has become through the merges that stand, however many steps away.

    We never record a cycle. One written by hand ends at its first key by name, from wherever it is entered.
    """
    steps = [key]
    while (standing := _standing(merges.get(steps[-1], ()))) is not None:
        if standing.to in steps:
            return min(steps[steps.index(standing.to) :])
        steps.append(standing.to)
    return steps[-1]


def key_for(tag: str, merges: Mapping[str, tuple[Merge, ...]], existing: Collection[str]) -> str:
    """Return the strand that a tag belongs to; empty when it is no tag.

    Merges are followed, then an existing key of the same normalised form is taken (a key written by hand need not be
    normalised), else the normalised form is the key.
    """
    key = follow(normalise(tag), merges)
    if key in existing:
        return key
    return next((other for other in existing if normalise(other) == key), key)


def weave(strands: Strands, tags: Iterable[str], path: str, merges: Mapping[str, tuple[Merge, ...]]) -> Strands:
    """Return the strands with the slice path added to each tag's strand; the same object when nothing was gained."""
    woven = strands
    for tag in tags:
        key = key_for(tag, merges, woven)
        if key and path not in woven.get(key, ()):
            woven = {**woven, key: tuple(sorted((*woven.get(key, ()), path)))}
    return woven if woven is strands else _in_order(woven)


def compute(tagged: Iterable[Tagged], merges: Mapping[str, tuple[Merge, ...]], newest_end: datetime | None) -> Strands:
    """Return strands.json for these slices, whatever order they come in. Each slice is given once.

    A strand survives with two slices or more, or with a fresh one: active, or begun at most 14 × 24 hours before
    `newest_end`, the end of the newest closed slice. With no closed slice (None) every strand survives.
    """
    keys: dict[str, str] = {}
    paths: dict[str, set[str]] = {}
    fresh: set[str] = set()
    for one in tagged:
        is_fresh = one.active or newest_end is None or one.start >= newest_end - FRESH
        for tag in one.tags:
            key = keys.get(tag)
            if key is None:
                key = keys[tag] = follow(normalise(tag), merges)
            if not key:
                continue
            paths.setdefault(key, set()).add(one.path)
            if is_fresh:
                fresh.add(key)
    return _in_order({key: tuple(sorted(found)) for key, found in paths.items() if len(found) > 1 or key in fresh})


def record_merges(
    merges: Mapping[str, tuple[Merge, ...]], pairs: Iterable[tuple[str, str]], *, at: datetime, by: str
) -> Merges:
    """Return the merges with these (from, to) pairs recorded, each looked at in the light of those before it.

    Dropped are: a key into itself, a key that is merged away already (so the same pair twice is one merge), a pair
    that would close a cycle, and a pair that would bring two keys together whose merge was undone.
    """
    recorded = dict(merges)
    for from_key, to_key in ((normalise(from_tag), normalise(to_tag)) for from_tag, to_tag in pairs):
        known = recorded.get(from_key, ())
        if not from_key or not to_key or _standing(known) or follow(to_key, recorded) == from_key:
            continue
        tried = {**recorded, from_key: (*known, Merge(to=to_key, at=at, by=by))}
        if not _rejoins(recorded, tried):
            recorded = tried
    return recorded


def undo_merge(merges: Mapping[str, tuple[Merge, ...]], from_key: str) -> Merges:
    """Return the merges with the one that stands for this key marked undone; unchanged when none stands."""
    return {
        key: tuple(replace(merge, undone=True) for merge in found) if key == from_key else found
        for key, found in merges.items()
    }


def parse_strands(text: str) -> Strands:
    """Read strands.json. Raises ValueError when it is corrupt.

    Slice paths are checked for their shape alone here, since the file holds hundreds of thousands of them; whoever
    turns one into a file parses it strictly first.
    """
    found = load_json(text)
    if not isinstance(found, dict):
        raise ValueError("strands.json is no object")
    return _in_order({key: _paths(key, value) for key, value in found.items()})


def render_strands(strands: Mapping[str, tuple[str, ...]]) -> str:
    """Write strands.json: two-space indent, one path a line, final line break."""
    if not strands:
        return "{}\n"
    # Written by hand: json.dumps falls back to Python code when it indents, ten times slower at 36,500 slices.
    lists = (
        f'  {json.dumps(key, ensure_ascii=False)}: [\n    "' + '",\n    "'.join(paths) + '"\n  ]'
        for key, paths in strands.items()
    )
    return "{\n" + ",\n".join(lists) + "\n}\n"


def parse_merges(text: str) -> Merges:
    """Read strand-merges.json. Raises ValueError when it is corrupt."""
    found = load_json(text)
    if not isinstance(found, dict):
        raise ValueError("strand-merges.json is no object")
    merges: Merges = {}
    for key, records in found.items():
        if not key or not isinstance(records, list):
            raise ValueError(f"no list of merges: {key[:40]!r}")
        merges[key] = tuple(_merge(key, record) for record in records)
    return merges


def render_merges(merges: Mapping[str, tuple[Merge, ...]]) -> str:
    """Write strand-merges.json: two-space indent, keys in the order they were first merged, final line break."""
    found = {
        key: [{"to": one.to, "at": stamp(one.at), "by": one.by, "undone": one.undone} for one in records]
        for key, records in merges.items()
    }
    return json.dumps(found, ensure_ascii=False, indent=2) + "\n"


def load_json(text: str) -> object:
    """Read JSON that may hold anything. Raises ValueError for what is no JSON or could not be written as UTF-8."""
    try:
        found: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _SURROGATE_ESCAPE.search(text):
        # Half a pair raises UnicodeEncodeError, which is a ValueError.
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


def _standing(records: tuple[Merge, ...]) -> Merge | None:
    return next((merge for merge in records if not merge.undone), None)


def _rejoins(before: Merges, after: Merges) -> bool:
    return any(
        follow(key, after) == follow(merge.to, after) and follow(key, before) != follow(merge.to, before)
        for key, records in before.items()
        for merge in records
        if merge.undone
    )


def _in_order(strands: Strands) -> Strands:
    return dict(sorted(strands.items(), key=lambda item: (item[1][0], item[0])))


def _paths(key: str, value: object) -> tuple[str, ...]:
    if not key or not isinstance(value, list) or not _are_paths(value):
        raise ValueError(f"no list of slice paths: {key[:40]!r}")
    ascending = all(map(operator.lt, value, value[1:]))
    return tuple(value) if ascending else tuple(sorted(set(value)))


def _are_paths(values: list[Any]) -> bool:
    # Their shape is compared as one text: there are hundreds of thousands of them, and a pattern takes twice the time.
    try:
        text = "\n".join(values) + "\n"
    except TypeError:
        return False  # one of them is no text
    return bool(values) and text.isascii() and text.translate(_ZEROS) == _SHAPE * len(values)


def _merge(key: str, record: object) -> Merge:
    match record:
        case {"to": str(to), "at": str(at), "by": str(by), "undone": bool(undone), **others} if to and not others:
            return Merge(to=to, at=parse_stamp(at), by=by, undone=undone)
    raise ValueError(f"no merge: {key[:40]!r}")
