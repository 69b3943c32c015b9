"""agent.md: what went on in the agent during a turn, one block a turn, extracted by code and only ever appended.

Nothing of this file is read back into a request to a model.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from memory.folder.clock import parse_stamp, stamp
from memory.folder.errors import BadId
from memory.folder.frontmatter import has_crlf
from memory.folder.marks import cut, plain_line
from memory.folder.paths import parse_slice_path, parse_turn_id
from memory.folder.turns import clean

MOST_PARAMETERS = 5
VALUE_CHARACTERS = 80
ERROR_CHARACTERS = 200

THINKING = "Thinking"
TOOLS = "Tools"
RECALL = "Recall"
DEEP_THOUGHT = "Deep thought"
UNFINISHED_REPLY = "Unfinished reply"

_HEADING = re.compile(r"(?:\A\ufeff|^)## Cognition (.*)$", re.M)
_VALID_HEADING = re.compile(r"(\S+) — (\S+)\s*")
_SECTION = re.compile(r"^### (.*)$", re.M)
_TO_ESCAPE = re.compile(r"^(?=\\*(?:## Cognition |### ))", re.M)
_ESCAPED = re.compile(r"^\\(?=\\*(?:## Cognition |### ))", re.M)
_REFERENCE = re.compile(r"^- \[([0-9/]+)#([A-Za-z0-9_-]+)\]", re.M)


@dataclass(frozen=True)
class ToolCall:
    """One tool call: its parameters as (name, value) in order, and why it failed (None: it did not)."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Reference:
    """What a recall found and code has checked: the slice path, the turn, and the words quoted from it."""

    path: str
    turn_id: str
    quote: str


@dataclass(frozen=True)
class Recalled:
    """One question to the recall colleague, how sure it was (0 to 1, None when it did not say), and what it found."""

    question: str
    confidence: float | None = None
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class DeepThought:
    """One report of think_deep."""

    question: str
    answer: str
    trail: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """All that went on in the agent during one turn."""

    turn_id: str
    at: datetime
    thinking: str = ""
    tools: tuple[ToolCall, ...] = ()
    recalls: tuple[Recalled, ...] = ()
    deep: tuple[DeepThought, ...] = ()
    unfinished: str = ""


@dataclass(frozen=True, kw_only=True)
class PlacedBlock:
    """A block as read: its sections as (title, text), and its character offsets, up to where the next one begins."""

    turn_id: str
    at: datetime
    sections: tuple[tuple[str, str], ...]
    begin: int
    finish: int


def render_block(block: Block) -> str:
    """Write a block, its final line break included; empty when nothing went on."""
    sections = [(title, text) for title, text in _sections(block) if text.strip()]
    if not sections:
        return ""
    written = "\n".join(f"### {title}\n{_escape(text)}\n" for title, text in sections)
    return f"{_heading(block.turn_id, block.at)}\n\n{written}"


def append_text(existing_text: str, block: Block) -> str:
    """Return the exact characters to append to an agent.md that holds `existing_text`.

    Empty when nothing went on, or when the block (the same turn id and time) is there already.
    """
    written = render_block(block)
    if not written or not existing_text or has_block(existing_text, block.turn_id, block.at):
        return written if not existing_text else ""
    return ("\n" if existing_text.endswith("\n") else "\n\n") + written


def parse_blocks(text: str) -> tuple[PlacedBlock, ...]:
    """Read agent.md, whatever it holds. Text outside a block with a proper heading belongs to no block."""
    blocks = []
    for heading, end in _spans(_HEADING, text, 0, len(text)):
        if named := _turn_and_time(heading[1]):
            turn_id, at = named
            sections = tuple(_parse_sections(text, heading.end(), end))
            blocks.append(PlacedBlock(turn_id=turn_id, at=at, sections=sections, begin=heading.start(), finish=end))
    return tuple(blocks)


def has_block(text: str, turn_id: str, at: datetime) -> bool:
    """Whether agent.md holds the block of this turn and time."""
    return any((block.turn_id, stamp(block.at)) == (turn_id, stamp(at)) for block in parse_blocks(text))


def without_blocks(text: str, turn_ids: Collection[str]) -> str:
    """Return agent.md as it was before the blocks of these turns were appended; all other bytes stay."""
    kept = []
    begin = 0
    for block in parse_blocks(text):
        if block.turn_id in turn_ids:
            kept.append(text[begin : block.begin])
            begin = block.finish
    if begin == 0:
        return text
    kept.append(text[begin:])
    before = "".join(kept)
    # The empty line before a block came with the block.
    return before[:-1] if begin == len(text) and before.endswith("\n\n") else before


def recalled_paths(text: str) -> tuple[str, ...]:
    """Return the paths of the slices that checked recall references in agent.md point to, in order, each once."""
    found = (
        match[1]
        for block in parse_blocks(text)
        for title, section in block.sections
        if title == RECALL
        for match in _REFERENCE.finditer(section)
    )
    return tuple(dict.fromkeys(path for path in found if _is_slice_path(path)))


def _heading(turn_id: str, at: datetime) -> str:
    return f"## Cognition {parse_turn_id(turn_id)} — {stamp(at)}"


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(r"\\", text)


def _sections(block: Block) -> Iterator[tuple[str, str]]:
    yield THINKING, clean(block.thinking)
    yield TOOLS, "\n".join(map(_tool_line, block.tools))
    yield RECALL, "\n".join(map(_recall_lines, block.recalls))
    yield DEEP_THOUGHT, "\n\n".join(map(_deep_lines, block.deep))
    yield UNFINISHED_REPLY, clean(block.unfinished)


def _tool_line(call: ToolCall) -> str:
    parameters = ", ".join(
        f"{_short(name)}: {json.dumps(cut(clean(value), VALUE_CHARACTERS), ensure_ascii=False)}"
        for name, value in call.parameters[:MOST_PARAMETERS]
    )
    outcome = "ok" if call.error is None else f"error: {cut(plain_line(clean(call.error)), ERROR_CHARACTERS)}"
    return f"- `{_short(call.name)}`({parameters}) → {outcome}"


def _short(name: str) -> str:
    # A model may ask for a tool, or name a parameter, of its own invention.
    return cut(plain_line(clean(name)).replace("`", "'"), VALUE_CHARACTERS)


def _recall_lines(recalled: Recalled) -> str:
    question = f"**Q** {plain_line(clean(recalled.question))}"
    if recalled.confidence is not None:
        question += f" (confidence {round(min(max(recalled.confidence, 0), 1), 2):g})"
    return "\n".join((question, *map(_reference_line, recalled.references)))


def _reference_line(reference: Reference) -> str:
    return f'- [{reference.path}#{reference.turn_id}] "{plain_line(clean(reference.quote))}"'


def _deep_lines(deep: DeepThought) -> str:
    parts = [f"**Q** {clean(deep.question)}", f"**A** {clean(deep.answer)}"]
    if deep.trail.strip():
        parts.append(f"**Trail** {clean(deep.trail)}")
    return "\n".join(parts)


def _spans(pattern: re.Pattern[str], text: str, begin: int, end: int) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each match together with where what it heads ends: at the next match, or at `end`."""
    matches = list(pattern.finditer(text, begin, end))
    ends = [match.start() for match in matches[1:]] + [end]
    yield from zip(matches, ends, strict=False)


def _turn_and_time(heading: str) -> tuple[str, datetime] | None:
    match = _VALID_HEADING.fullmatch(heading)
    if match is None:
        return None
    try:
        return parse_turn_id(match[1]), parse_stamp(match[2])
    except ValueError:
        return None


def _parse_sections(text: str, begin: int, end: int) -> Iterator[tuple[str, str]]:
    windows = has_crlf(text)
    for title, finish in _spans(_SECTION, text, begin, end):
        written = text[title.end() + 1 : finish]
        if windows:
            written = written.replace("\r\n", "\n")
        if finish < len(text):
            written = written.removesuffix("\n")
        yield title[1].strip(), _ESCAPED.sub("", written.removesuffix("\n"))


def _is_slice_path(text: str) -> bool:
    try:
        parse_slice_path(text)
    except BadId:
        return False
    return True
