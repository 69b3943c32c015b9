"""The timeline: one line a slice, kept in a catalogue file a month, and the one way to read them all.

The month files are derived. They hold the closed slices as of the last time they were reconciled; what they lack is
read from the slices themselves, so a reader never sees less than the folder holds.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from memory.folder import slices
from memory.folder.clock import parse_stamp, stamp
from memory.folder.errors import BadId, Damaged, NotThere, Outside
from memory.folder.marks import is_floor_summary
from memory.folder.paths import SLICES, TIMELINE, core_file, inside, month_file, month_of, parse_slice_id
from memory.folder.paths import parse_month as month_name
from memory.folder.slices import Slice
from memory.folder.strands import load_json

_MAY_BE_FLOOR = re.compile(r'"summary": "[0-9]+ (?:turns?|轮对话)\b')


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """What the timeline says about one slice. `end` is None while it is active; `turns` counts turns, not entries."""

    id: str
    start: datetime
    end: datetime | None
    timezone: str
    closed_by: str = ""
    turns: int = 0
    focus: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    emotional_tone: str | tuple[str, ...] = ""
    open_loops: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    strands: tuple[str, ...] = ()
    dry: bool = False

    @property
    def path(self) -> str:
        """The slice path, `2026/08/10/2130`; the id was parsed when the line was made."""
        return self.id.replace("-", "/")

    @property
    def active(self) -> bool:
        """Whether the slice still takes messages."""
        return self.end is None


@dataclass(frozen=True, kw_only=True)
class DamagedSlice:
    """A slice that cannot be read: its id, the relative file that is damaged, and what is wrong with it."""

    id: str
    path: str
    why: str


def line_of(slice_: Slice, strands_of: Collection[str] = ()) -> Line:
    """Return the slice's line; `strands_of` are the keys of strands.json that list the slice."""
    return Line(
        id=slice_.slice_id,
        start=slice_.start,
        end=None if slice_.active else slice_.end or slice_.last_at,
        timezone=slice_.timezone,
        closed_by=slice_.closed_by,
        turns=slice_.turn_count,
        focus=slice_.focus,
        summary=slice_.summary,
        tags=slice_.tags,
        emotional_tone=slice_.emotional_tone or "",
        open_loops=slice_.open_loops,
        decisions=slice_.decisions,
        strands=tuple(strands_of),
        dry=slice_.dry,
    )


def membership(strands: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return for each slice path the keys that list it, in the order of strands.json."""
    keys: dict[str, list[str]] = {}
    for key, paths in strands.items():
        for path in paths:
            keys.setdefault(path, []).append(key)
    return {path: tuple(found) for path, found in keys.items()}


def reconcile(
    lines_by_month: Mapping[str, Sequence[Line]],
    strands: Mapping[str, tuple[str, ...]],
    changed: Iterable[Slice],
    *,
    gone: Collection[str] = (),
) -> dict[str, tuple[Line, ...]]:
    """Return the months whose content changes, each whole: membership resolved anew, changed slices read anew.

    Of the `changed` slices the closed ones get their new line, an active one has none. `gone` are ids of slices that
    are no longer there. A month may come out empty.
    """
    strands_of = membership(strands)
    lines = {
        month: {line.id: _with_strands(line, strands_of.get(line.path, ())) for line in given if line.id not in gone}
        for month, given in lines_by_month.items()
    }
    for slice_ in changed:
        month = lines.setdefault(month_of(slice_.slice_id), {})
        if slice_.active:
            month.pop(slice_.slice_id, None)
        else:
            month[slice_.slice_id] = line_of(slice_, strands_of.get(slice_.path, ()))
    ordered = {month: tuple(found[slice_id] for slice_id in sorted(found)) for month, found in lines.items()}
    return {month: found for month, found in ordered.items() if found != tuple(lines_by_month.get(month, ()))}


def parse_month(text: str) -> tuple[Line, ...]:
    """Read a month's catalogue. Raises ValueError when it is corrupt."""
    match load_json(text):
        case {"month": str(month), "slices": list(found)}:
            name, lines = month_name(month), tuple(map(_parse_line, found))
            if all(line.id.startswith(name) for line in lines):
                return lines
    raise ValueError("no month of the timeline")


def render_month(month: str, lines: Iterable[Line]) -> str:
    """Write a month's catalogue: ascending by id, two-space indent, empty values left out, final line break."""
    found = [_written(line) for line in sorted(lines, key=lambda line: line.id)]
    return json.dumps({"month": month_name(month), "slices": found}, ensure_ascii=False, indent=2) + "\n"


def catalogue(root: Path, *, limit: int | None = None, before: str | None = None) -> list[Line | DamagedSlice]:
    """Return the newest `limit` slices (None: all of them) that are older than the slice id `before`, newest first.

    Only as many months are read as that takes. Raises BadId when `before` is no slice id.
    """
    return list(islice(newest_first(root, before=before), limit))


def newest_first(root: Path, *, before: str | None = None) -> Iterator[Line | DamagedSlice]:
    """Yield every slice older than `before`, newest first, reading month after month as they are asked for.

    Lines come from the month files. Slices that these lack (active, just closed, damaged, or of a month whose file is
    missing or corrupt) are read from their own core.md; their `strands` are not resolved yet. One that cannot be read
    is a DamagedSlice and hides no other.
    """
    newest_month = month_of(before) if before else "9999-12"
    for month in sorted(months(root), reverse=True):
        if month <= newest_month:
            listed = {line.id: line for line in month_lines(root, month)}
            for slice_id in sorted({*listed, *ids_of_month(root, month)}, reverse=True):
                if before is None or slice_id < before:
                    found = listed.get(slice_id) or read_line(root, slice_id)
                    if found is not None:
                        yield found


def unmarked(root: Path) -> list[Line]:
    """Return the closed slices without marks of a model: dry ones, then those with the floor's, each oldest first.

    Slices that a person put into the folder are among them before they are catalogued. Months whose text shows no such
    slice and lists as many as there are are not parsed: with tens of thousands of slices that is nearly all of them.
    """
    found: list[Line] = []
    for month in sorted(months(root)):
        try:
            text = inside(root, month_file(month)).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError, Outside):
            text = ""
        if (
            '"dry": true' in text
            or _MAY_BE_FLOOR.search(text)
            or text.count('"id": "') != len(ids_of_month(root, month))
        ):
            lines = {line.id: line for line in month_lines(root, month)}
            unlisted = (read_line(root, each) for each in ids_of_month(root, month, known=lines) if each not in lines)
            lines |= {line.id: line for line in unlisted if isinstance(line, Line) and not line.active}
            found += [line for line in lines.values() if line.dry or is_floor_summary(line.summary)]
    return sorted(found, key=lambda line: (not line.dry, line.id))


def line_for(root: Path, slice_id: str) -> Line | DamagedSlice:
    """Return one slice's line. Raises NotThere when there is no such slice, BadId when it is no slice id."""
    found = lines_for(root, (slice_id,))
    if slice_id not in found:
        raise NotThere(f"no such slice: {slice_id}")
    return found[slice_id]


def lines_for(root: Path, slice_ids: Iterable[str]) -> dict[str, Line | DamagedSlice]:
    """Return the lines of these slices by id, reading each month once; slices that are not there are left out."""
    wanted: dict[str, list[str]] = {}
    for slice_id in slice_ids:
        wanted.setdefault(month_of(slice_id), []).append(slice_id)
    lines: dict[str, Line | DamagedSlice] = {}
    for month, ids in wanted.items():
        listed = {line.id: line for line in month_lines(root, month)}
        for slice_id in ids:
            found = listed.get(slice_id) or read_line(root, slice_id)
            if found is not None:
                lines[slice_id] = found
    return lines


def _with_strands(line: Line, strands_of: tuple[str, ...]) -> Line:
    return line if line.strands == strands_of else replace(line, strands=strands_of)


def _written(line: Line) -> dict[str, object]:
    values: dict[str, object] = {
        "id": line.id,
        "start": stamp(line.start),
        "end": stamp(line.end) if line.end else "",
        "timezone": line.timezone,
        "closed_by": line.closed_by,
        "turns": line.turns,
        "focus": line.focus,
        "summary": line.summary,
        "tags": line.tags,
        "emotional_tone": line.emotional_tone,
        "open_loops": line.open_loops,
        "decisions": line.decisions,
        "strands": line.strands,
        "dry": line.dry,
    }
    # A slice without turns says so: a number is never an empty value.
    return {key: value for key, value in values.items() if value or key == "turns"}


def _parse_line(found: object) -> Line:
    if not isinstance(found, dict):
        raise ValueError("no line of the timeline")
    tone = found.get("emotional_tone", "")
    turns, dry = found.get("turns"), found.get("dry", False)
    if not isinstance(turns, int) or not isinstance(dry, bool):
        raise ValueError("turns is no number, or dry neither true nor false")
    return Line(
        id=parse_slice_id(_text(found, "id")),
        start=parse_stamp(_text(found, "start")),
        end=parse_stamp(_text(found, "end")),
        timezone=_text(found, "timezone"),
        closed_by=_text(found, "closed_by"),
        turns=turns,
        focus=_text(found, "focus"),
        summary=_text(found, "summary"),
        tags=_texts(found, "tags"),
        emotional_tone=_texts(found, "emotional_tone") if isinstance(tone, list) else _text(found, "emotional_tone"),
        open_loops=_texts(found, "open_loops"),
        decisions=_texts(found, "decisions"),
        strands=_texts(found, "strands"),
        dry=dry,
    )


def _text(found: Mapping[str, object], key: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return value


def _texts(found: Mapping[str, object], key: str) -> tuple[str, ...]:
    if key not in found:
        return ()
    value = found[key]
    if not isinstance(value, list) or set(map(type, value)) - {str}:
        raise ValueError(f"{key} is no list of texts")
    return tuple(value)


def month_lines(root: Path, month: str) -> tuple[Line, ...]:
    """Return what the month's file says; nothing when it is missing or corrupt, so that the slices are read instead."""
    try:
        lines = parse_month(inside(root, month_file(month)).read_bytes().decode("utf-8"))
    except (OSError, ValueError, Outside):
        return ()
    return lines if all(line.id.startswith(month) for line in lines) else ()


def read_line(root: Path, slice_id: str) -> Line | DamagedSlice | None:
    """Return the line of a slice as its core.md has it now, None when there is no core.md.

    Its `strands` are not resolved: only strands.json knows them.
    """
    file = core_file(slice_id)
    try:
        return line_of(slices.parse(inside(root, file).read_bytes(), slice_id=slice_id))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Damaged as damage:
        return DamagedSlice(id=slice_id, path=damage.path, why=damage.why)
    except (OSError, Outside) as error:
        return DamagedSlice(id=slice_id, path=file, why=str(error))


def months(root: Path) -> set[str]:
    """Return every month that has a directory of slices or a catalogue file, by listing the years alone."""
    names = [file.stem for file in (root / TIMELINE).glob("*.json")]
    for year in _directories(root / SLICES):
        names += [f"{year}-{month}" for month in _directories(root / SLICES / year)]
    return {name for name in names if _is_real(month_name, name)}


def ids_of_month(root: Path, month: str, *, known: Collection[str] = ()) -> list[str]:
    """Return the ids of a month for which there is a directory, whatever it holds; `known` ones need no look."""
    directory = root / SLICES / month.replace("-", "/")
    names = [f"{month}-{day}-{minute}" for day in _directories(directory) for minute in _directories(directory / day)]
    return [name for name in names if name in known or _is_real(parse_slice_id, name)]


def _directories(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_real(parse: Callable[[str], str], name: str) -> bool:
    try:
        return parse(name) == name
    except BadId:
        return False
