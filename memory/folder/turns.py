"""Turns in the body of core.md: headings, verbatim contents, and the lines that are no turns.

    ## Turn mVhV2g — 2026-08-10T21:30:22.811Z (user)

    the message, verbatim

An empty line stands before every heading and one after it; a line break closes the content. The reader takes away
exactly these. A content line that would look like a heading carries one backslash more in the file than in the
message, so no message can forge a turn. Only LF is a line break: every other character is part of a line.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Literal, cast

from memory.folder.clock import parse_stamp, stamp
from memory.folder.frontmatter import has_crlf
from memory.folder.paths import parse_turn_id

Role = Literal["user", "agent"]

_SIGN = "## Turn "
_HEADING_LINE = re.compile(r"\n## Turn ([^\n]*)")
_HEADING = re.compile(r"([A-Za-z0-9_-]{1,16}) — ([0-9TZ:.-]{24}) \((user|agent)\)\r?")
_TO_ESCAPE = re.compile(r"^(?=\\*## Turn )", re.MULTILINE)
_ESCAPED = re.compile(r"^\\(?=\\*## Turn )", re.MULTILINE)
_SURROGATE_OR_NUL = re.compile(r"[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Entry:
    """One side of a turn: what the person or the agent said, verbatim."""

    turn_id: str
    at: datetime
    role: Role
    content: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes an entry unique in its slice: (turn id, role)."""
        return self.turn_id, self.role


@dataclass(frozen=True)
class Placed:
    """An entry and where it stands: character offsets in the body, heading included."""

    entry: Entry
    begin: int
    finish: int


@dataclass(frozen=True)
class Body:
    """A body as read: its entries in order, and the (begin, finish) spans that are no turns."""

    placed: tuple[Placed, ...]
    stray: tuple[tuple[int, int], ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries alone, in the order they stand."""
        return tuple(placed.entry for placed in self.placed)

    def stray_text(self, body: str) -> str:
        """Return the lines of the body that are no turns, verbatim and in order."""
        return "".join(body[begin:finish] for begin, finish in self.stray)


_Heading = tuple[str, datetime, Role]


@dataclass(frozen=True)
class _Mark:
    """A line that begins like a heading; `heading` is None when it is not one."""

    begin: int
    line_end: int
    heading: _Heading | None


def clean(text: str) -> str:
    """Return what somebody typed or a model wrote as it is kept: CRLF as LF, NUL and lone surrogates as U+FFFD."""
    return _SURROGATE_OR_NUL.sub("\ufffd", text.replace("\r\n", "\n"))


def render_entry(entry: Entry) -> str:
    """Write an entry: heading, empty line, content, line break. The empty line before it is not part of it.

    Raises BadId for a turn id that could not be read back.
    """
    content = entry.content
    if _SIGN in content:
        content = _TO_ESCAPE.sub(r"\\", content)
    return f"{_SIGN}{parse_turn_id(entry.turn_id)} — {stamp(entry.at)} ({entry.role})\n\n{content}\n"


def append_text(existing_text: str, entry: Entry) -> str:
    """Return the characters that append the entry to a file which now holds `existing_text`.

    They bring the empty line before the heading, the file's missing last line break if there is none, and CRLF line
    ends if the file has them.
    """
    closed = existing_text.endswith("\n") or not existing_text
    added = ("\n" if closed else "\n\n") + render_entry(entry)
    return added.replace("\n", "\r\n") if has_crlf(existing_text) else added


def parse_body(body: str) -> Body:
    """Read the text below the front matter, LF line ends; never fails.

    Stray are the text before the first heading unless it is blank, and each line that begins like a heading but is
    none (a bad id, time or role), with the lines up to the next heading. Taking the stray spans out of the body
    changes no entry, and no line is in neither part.
    """
    parts: list[_Mark] = []
    for mark in _marks(body):
        if mark.heading or (parts and parts[-1].heading):
            parts.append(mark)

    placed: list[Placed] = []
    stray: list[tuple[int, int]] = []
    before = _edge(body, parts[0].begin) if parts else len(body)
    if body[:before].strip():
        stray.append((0, before))
    for part, following in zip_longest(parts, parts[1:]):
        edge = _edge(body, following.begin) if following else len(body)
        # The empty line before a last stray goes with it: nothing follows the entry that it could keep apart.
        finish = edge if following is parts[-1] and not following.heading else following.begin if following else edge
        if part.heading:
            turn_id, at, role = part.heading
            entry = Entry(turn_id, at, role, _content(body, part.line_end + 1, edge))
            placed.append(Placed(entry, part.begin, finish))
        else:
            stray.append((placed[-1].finish, finish))
    return Body(tuple(placed), tuple(stray))


def spans_of(body: str, keys: Collection[tuple[str, str]]) -> list[tuple[int, int]]:
    """Return the (begin, finish) spans whose removal takes the entries of these keys, and nothing else, from the body.

    Removing an entry that `append_text` has just added gives the body before it.
    """
    spans = [(placed.begin, placed.finish) for placed in parse_body(body).placed if placed.entry.key in keys]
    tail = len(body)
    while spans and spans[-1][1] == tail:
        tail = spans.pop()[0]
    if tail < len(body):
        spans.append((_edge(body, tail), len(body)))
    return spans


def _marks(body: str) -> Iterator[_Mark]:
    """Yield every line that begins like a heading."""
    if _SIGN not in body:
        return
    # With a line break in front, every such line follows one, which is much faster to look for than line beginnings.
    for match in _HEADING_LINE.finditer("\n" + body):
        yield _Mark(match.start(), match.end() - 1, _heading(match[1]))


def _heading(line: str) -> _Heading | None:
    match = _HEADING.fullmatch(line)
    if not match:
        return None
    try:
        return match[1], parse_stamp(match[2]), cast(Role, match[3])
    except ValueError:
        return None


def _edge(body: str, begin: int) -> int:
    """Return where the empty line before `begin` begins, or `begin` when there is none."""
    empty = body.endswith("\n\n", 0, begin) or (begin == 1 and body[0] == "\n")
    return begin - empty


def _content(body: str, begin: int, end: int) -> str:
    content = body[begin:end].removeprefix("\n").removesuffix("\n")
    return _ESCAPED.sub("", content) if _SIGN in content else content
