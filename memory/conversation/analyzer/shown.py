"""A conversation as the analyzer shows it to the model: quoted, with the minute and the speaker of each entry."""

from collections.abc import Iterable, Sequence

from memory.conversation.quoting import fenced, quoted_line, quoted_lines
from memory.conversation.window import PER_MESSAGE, shortened, tokens
from memory.folder import clock
from memory.folder.slices import Slice
from memory.folder.turns import Entry

MOST_TOKENS = 24_000
"""The most of a conversation that is put to the analyzer, however much its model would take."""

_SPEAKERS = {"user": "person", "agent": "companion"}

Turn = tuple[Entry, ...]


def turns(slice_: Slice) -> list[Turn]:
    """The entries by turn, in the order in which the turns began."""
    by_turn: dict[str, list[Entry]] = {}
    for entry in slice_.entries:
        by_turn.setdefault(entry.turn_id, []).append(entry)
    return [tuple(entries) for entries in by_turn.values()]


def conversation(slice_: Slice, limit: int) -> str:
    """The slice within about `limit` tokens, fenced.

    When not all of it fits: the first turn, as many of the last as there is room for, and between them a line that
    says how many are missing.
    """
    first, *rest = (_lines(turn, slice_.timezone, limit // 6) for turn in turns(slice_))
    left = limit - _size(first)
    shown: list[list[str]] = []
    for lines in reversed(rest):
        left -= _size(lines)
        if left < 0:
            break
        shown.insert(0, lines)
    missing = len(rest) - len(shown)
    gap = [[f"[{missing} turns are not shown here; what was noted of them stands above]"]] if missing else []
    return fenced("conversation", [line for lines in (first, *gap, *shown) for line in lines])


def turn(slice_: Slice, turn_id: str, limit: int) -> str:
    """One turn within about `limit` tokens, fenced."""
    entries = tuple(entry for entry in slice_.entries if entry.turn_id == turn_id)
    return fenced("turn", _lines(entries, slice_.timezone, limit // 2))


def before(slice_: Slice, turn_id: str, limit: int) -> str:
    """The end of what was said before a turn, within about `limit` tokens, fenced; empty when it is the first."""
    all_turns = turns(slice_)
    at = next(number for number, entries in enumerate(all_turns) if entries[0].turn_id == turn_id)
    lines: list[str] = []
    for entries in reversed(all_turns[:at]):
        more = _lines(entries, slice_.timezone, limit // 4)
        if _size([*more, *lines]) > limit:
            break
        lines = [*more, *lines]
    return fenced("turns before", lines) if lines else ""


def listed(source: str, items: Sequence[str], *, numbered: bool = False) -> str:
    """Items of the record, a line each, fenced; `–` when there are none."""
    if not items:
        return "–"
    marks = (f"{number}." for number in range(1, len(items) + 1)) if numbered else ("-" for _ in items)
    return fenced(source, (f"{mark} {quoted_line(item, 300)}" for mark, item in zip(marks, items, strict=True)))


def _lines(entries: Iterable[Entry], zone: str, limit: int) -> list[str]:
    lines = []
    for entry in entries:
        lines.append(f"{_SPEAKERS[entry.role]}, {clock.local(entry.at, zone):%H:%M}:")
        lines.append(quoted_lines(shortened(entry.content, limit)))
    return lines


def _size(lines: Sequence[str]) -> int:
    return sum(map(tokens, lines)) + PER_MESSAGE
