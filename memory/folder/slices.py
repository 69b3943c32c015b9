"""A slice as read from, and written to, its core.md."""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal, cast

from memory.folder import frontmatter
from memory.folder.clock import parse_stamp, stamp
from memory.folder.errors import Damaged, FrontMatterError
from memory.folder.frontmatter import Header, Value, has_crlf, normalised, one_line, split
from memory.folder.paths import core_file, minute_of, path_of
from memory.folder.turns import Entry, parse_body, render_entry, spans_of

Status = Literal["active", "closed"]

MAX_ITEMS = 20
MAX_ITEM_CHARS = 300

_KEYS = frozenset((
    "slice_id", "status", "start", "end", "timezone", "focus", "summary", "tags", "open_loops", "decisions",
    "related_slices", "loops", "emotional_tone", "closed_by", "evolution_summary",
))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One slice: the marks of its front matter, its entries in order, and what could not be read as a turn."""

    slice_id: str
    status: Status
    start: datetime
    end: datetime | None = None
    timezone: str = "UTC"
    focus: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    open_loops: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    related_slices: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    emotional_tone: str | tuple[str, ...] = ""
    closed_by: str = ""
    evolution_summary: str = ""
    extra: tuple[tuple[str, str], ...] = ()
    entries: tuple[Entry, ...] = ()
    stray: str = ""

    @property
    def path(self) -> str:
        """The slice path, `2026/08/10/2130`."""
        return path_of(self.slice_id)

    @property
    def active(self) -> bool:
        """Whether the slice still takes messages."""
        return self.status == "active"

    @property
    def dry(self) -> bool:
        """Whether the slice closed without a focus and a summary."""
        return not self.active and not self.focus and not self.summary

    @property
    def turn_count(self) -> int:
        """The number of turns: entries that share a turn id are one."""
        return len({entry.turn_id for entry in self.entries})

    @property
    def person_entries(self) -> tuple[Entry, ...]:
        """What the person said, in order."""
        return tuple(entry for entry in self.entries if entry.role == "user")

    @property
    def last_at(self) -> datetime:
        """When the last entry was written; the start when there is none."""
        return self.entries[-1].at if self.entries else self.start

    def entry(self, turn_id: str, role: str) -> Entry | None:
        """Return the turn's entry of that role, the first if the file has it twice."""
        return next((entry for entry in self.entries if entry.key == (turn_id, role)), None)

    def has(self, turn_id: str) -> bool:
        """Whether any entry of the turn is in the slice."""
        return any(entry.turn_id == turn_id for entry in self.entries)


def parse(text: str | bytes, *, slice_id: str) -> Slice:
    """Read a core.md. Whatever it holds, this returns a slice or raises Damaged.

    The newest slices are looked at several times in the course of one message, so the last bytes read are remembered.

    A start that is missing or no timestamp falls back to the minute of the id; a closed slice without a readable end
    ended with its last entry. A list field that is no list reads as empty.
    """
    return _parsed(text, slice_id)


@lru_cache(maxsize=16)
def _parsed(text: str | bytes, slice_id: str) -> Slice:
    header, status, body = _opened(text, slice_id)
    read = parse_body(body)
    start = _instant(header, "start") or minute_of(slice_id)
    last = read.placed[-1].entry.at if read.placed else start
    tone = header.fields.get("emotional_tone")
    return Slice(
        slice_id=slice_id,
        status=status,
        start=start,
        end=(_instant(header, "end") or last) if status == "closed" else None,
        timezone=_text(header, "timezone") or "UTC",
        focus=_text(header, "focus"),
        summary=_text(header, "summary"),
        tags=_items(header, "tags"),
        open_loops=_items(header, "open_loops"),
        decisions=_items(header, "decisions"),
        related_slices=_items(header, "related_slices"),
        loops=_items(header, "loops"),
        emotional_tone=_items(header, "emotional_tone") if isinstance(tone, tuple) else _text(header, "emotional_tone"),
        closed_by=_text(header, "closed_by"),
        evolution_summary=_text(header, "evolution_summary"),
        extra=header.extra,
        entries=read.entries,
        stray=read.stray_text(body),
    )


def decode(data: bytes) -> str:
    """Return the text of a file; a last character that a crash cut in two reads as U+FFFD.

    Raises UnicodeDecodeError for any other bytes that are no UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            return data[: error.start].decode() + "\ufffd"
        raise


def entries_of(data: bytes) -> tuple[Entry, ...]:
    """Return the entries of a core.md whatever its front matter is; none of a file that is no UTF-8."""
    try:
        return parse_body(split(decode(data))[1]).entries
    except UnicodeDecodeError:
        return ()


def render(slice_: Slice) -> str:
    """Write a whole core.md; the stray lines are no part of it."""
    return render_front(slice_) + "".join("\n" + render_entry(entry) for entry in slice_.entries)


def render_front(slice_: Slice) -> str:
    """Write the front matter, both `---` lines included, within the limits on what lists may hold."""
    fields: dict[str, Value] = {
        "slice_id": slice_.slice_id,
        "status": slice_.status,
        "start": stamp(slice_.start),
        "end": stamp(slice_.end) if slice_.end else "",
        "timezone": slice_.timezone,
        "focus": slice_.focus,
        "summary": slice_.summary,
        "tags": _limited(slice_.tags),
        "open_loops": _limited(slice_.open_loops),
        "decisions": _limited(slice_.decisions),
        "related_slices": slice_.related_slices,
        "loops": slice_.loops,
        "emotional_tone": slice_.emotional_tone,
        "closed_by": slice_.closed_by,
        "evolution_summary": slice_.evolution_summary,
    }
    return frontmatter.render(fields, slice_.extra)


def with_front(text: str, slice_: Slice) -> str:
    """Return the file with the slice's front matter in place of its own; the body keeps its bytes.

    Stray lines are taken out, so the caller moves `slice_.stray` to the appendix in the same write. Raises Damaged
    for a file that cannot be read: it is never rewritten and never gets a second header.
    """
    _, _, body = _opened(text, slice_.slice_id)
    return render_front(slice_) + _less(body, parse_body(body).stray)


def without(text: str, keys: Collection[tuple[str, str]]) -> str:
    """Return the file less the entries of these (turn id, role) keys; every other byte stays as it is."""
    return _less_in_body(text, lambda body: spans_of(body, keys))


def without_strays(text: str) -> str:
    """Return the file less the lines that are no turns; every other byte, the front matter's too, stays as it is."""
    return _less_in_body(text, lambda body: parse_body(body).stray)


def _less_in_body(text: str, find: Callable[[str], Iterable[tuple[int, int]]]) -> str:
    plain = normalised(text)
    _, body = split(plain)
    above = len(plain) - len(body)
    # An offset in the normalised text, back to the text as it is: what normalising took away before it comes back.
    skipped = len(text) - len(text.removeprefix("\ufeff"))
    returns = re.finditer("\r\n", text) if has_crlf(text) else ()
    breaks = [found.start() - skipped - number for number, found in enumerate(returns)]

    def place(offset: int) -> int:
        return skipped + above + offset + bisect_left(breaks, above + offset)

    return _less(text, [(place(begin), place(finish)) for begin, finish in find(body)])


def _opened(text: str | bytes, slice_id: str) -> tuple[Header, Status, str]:
    """Return the front matter, the status it gives and the body; raises Damaged."""
    try:
        source, body = split(text if isinstance(text, str) else decode(text))
        if source is None:
            raise FrontMatterError("it does not begin with front matter")
        header = frontmatter.parse(source, _KEYS)
        return header, _status(header, slice_id), body
    except UnicodeDecodeError as error:
        raise Damaged(core_file(slice_id), "it is not UTF-8") from error
    except FrontMatterError as error:
        raise Damaged(core_file(slice_id), error.why) from error


def _less(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept = []
    at = 0
    for begin, finish in spans:
        kept.append(text[at:begin])
        at = finish
    return "".join([*kept, text[at:]])


def _status(header: Header, slice_id: str) -> Status:
    if _text(header, "slice_id") not in ("", slice_id):
        raise FrontMatterError("its slice_id is another slice's")
    status = _text(header, "status")
    if status not in ("active", "closed"):
        raise FrontMatterError("its status is neither active nor closed")
    return cast(Status, status)


def _instant(header: Header, key: str) -> datetime | None:
    try:
        return parse_stamp(_text(header, key))
    except ValueError:
        return None


def _text(header: Header, key: str) -> str:
    value = header.fields.get(key, "")
    return one_line((value if isinstance(value, str) else ", ".join(value)).strip("\r\n"))


def _items(header: Header, key: str) -> tuple[str, ...]:
    value = header.fields.get(key)
    items = value if isinstance(value, tuple) else ()
    return tuple(one_line(item.strip("\r\n")) for item in items if item.strip())


def _limited(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item[:MAX_ITEM_CHARS] for item in items if item.strip())[:MAX_ITEMS]
