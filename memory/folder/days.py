"""The timeline by the days of a person's own calendar, read as lightly as a whole year on one page asks for.

A day is the local day on which a slice began, in the slice's own zone; so the files of the months before and after are
looked into as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from memory.folder.clock import local_day, parse_stamp
from memory.folder.errors import Outside
from memory.folder.paths import inside, minute_of, month_file, month_of
from memory.folder.strands import Merge, follow, load_json, normalise
from memory.folder.timeline import DamagedSlice, Line, ids_of_month, lines_for, months, read_line

ONE_DAY = timedelta(days=1)

Merges = Mapping[str, tuple[Merge, ...]]


@dataclass(frozen=True, slots=True)
class Glance:
    """A slice at a glance; of a `damaged` one only the day can be known. `tone` is '' while a slice is active."""

    id: str
    day: date
    turns: int
    tone: str | tuple[str, ...]
    damaged: bool = False


def glances(root: Path, first: date, last: date, *, zone_name: str, merges: Merges, strand: str = "") -> list[Glance]:
    """Return the slices that began on the local days from `first` to `last`, both included, newest first.

    With a `strand` only those that belong to it. `zone_name` is for damaged slices, whose own zone cannot be read;
    `merges` lead from the tags of slices that the month files lack to their strands.
    """
    oldest, newest = f"{first - ONE_DAY:%Y-%m}", f"{last + ONE_DAY:%Y-%m}"
    found: list[Glance] = []
    for month in sorted((month for month in months(root) if oldest <= month <= newest), reverse=True):
        listed = _listed(root, month)
        of_month = list(listed.values()) if not strand else _of_strand(root, month, strand)
        for slice_id in {*ids_of_month(root, month, known=listed)} - listed.keys():
            if own := _read(root, slice_id, zone_name, strand, merges):
                of_month.append(own)
        found += sorted((one for one in of_month if first <= one.day <= last), key=lambda one: one.id, reverse=True)
    return found


def lines_of(root: Path, found: Iterable[Glance], *, merges: Merges) -> list[Line | DamagedSlice]:
    """Return the lines of these slices, in the same order; one that is gone since is left out.

    A slice that the month files lack gets the strands to which the merges lead from its tags.
    """
    ids = [glance.id for glance in found]
    lines = lines_for(root, ids)
    for slice_id, line in lines.items():
        if isinstance(line, Line) and slice_id not in _listed(root, month_of(slice_id)):
            lines[slice_id] = replace(line, strands=strands_of(line, merges))
    return [lines[slice_id] for slice_id in ids if slice_id in lines]


def strands_of(line: Line, merges: Merges) -> tuple[str, ...]:
    """The keys to which the merges lead from a line's tags."""
    return tuple(key for key in dict.fromkeys(follow(normalise(tag), merges) for tag in line.tags) if key)


def _listed(root: Path, month: str) -> Mapping[str, Glance]:
    """What the month's file says, by slice id; nothing when it is missing or corrupt: the slices are read instead."""
    try:
        path = inside(root, month_file(month))
        found = path.stat()
    except (OSError, Outside):
        return {}
    return _of_file(path, (found.st_ino, found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=600)
def _of_file(path: Path, _version: tuple[int, ...]) -> Mapping[str, Glance]:
    # Kept in memory, and only without a word of anybody's: reading a year of ten slices a day takes 50 ms.
    try:
        return {glance.id: glance for glance in (_glance(row, path.stem) for row in _rows(path))}
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}


def _of_strand(root: Path, month: str, strand: str) -> list[Glance]:
    try:
        return [
            _glance(row, month) for row in _rows(inside(root, month_file(month))) if strand in row.get("strands", ())
        ]
    except (OSError, ValueError, TypeError, LookupError, AttributeError, Outside):
        return []


def _rows(path: Path) -> list[Any]:
    match load_json(path.read_bytes().decode("utf-8")):
        case {"slices": list(rows)}:
            return rows
    raise ValueError("no month of the timeline")


def _glance(row: Mapping[str, Any], month: str) -> Glance:
    slice_id, turns, tone = row["id"], row["turns"], row.get("emotional_tone", "")
    if not slice_id.startswith(month) or not isinstance(turns, int):
        raise ValueError("no line of the timeline")
    day = local_day(parse_stamp(row["start"]), row.get("timezone", ""))
    return Glance(slice_id, day, turns, tuple(map(str, tone)) if isinstance(tone, list) else str(tone))


def _read(root: Path, slice_id: str, zone_name: str, strand: str, merges: Merges) -> Glance | None:
    """A slice that its month's file lacks, as it is on disk."""
    line = read_line(root, slice_id)
    if isinstance(line, DamagedSlice):
        return None if strand else Glance(slice_id, local_day(minute_of(slice_id), zone_name), 0, "", damaged=True)
    if line is None or (strand and strand not in strands_of(line, merges)):
        return None
    return Glance(slice_id, local_day(line.start, line.timezone), line.turns, line.emotional_tone)
