"""What went on in the agent, turn by turn, as agent.md has it.

All of it is shown as text, whatever it looks like; but a report or a half reply, written as Markdown, is read as that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.utils.translation import gettext as _

from memory.folder import cognition
from memory.folder.cognition import PlacedBlock
from memory.folder.errors import BadId
from memory.folder.paths import id_of, minute_of, parse_slice_path, parse_turn_id
from memory.folder.timeline import DamagedSlice, Line, lines_for

from .links import OwnLinks

_QUESTION = re.compile(r"\*\*Q\*\* (.*?)(?: \(confidence ([0-9.]{1,6})\))?")
_CALL = re.compile(r"^- `([^`\n]*)`\(", re.MULTILINE)
_REFERENCE = re.compile(r'- \[([0-9/]{15})#([A-Za-z0-9_-]{1,16})\] "(.*)"')

Lines = Mapping[str, Line | DamagedSlice]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A moment that a recall found: when its slice began, what it is about, where the turn is, and the words quoted.

    Of a slice that is gone, or cannot be read, there is the minute it began.
    """

    at: datetime
    zone: str
    focus: str
    url: str
    quote: str


@dataclass(frozen=True, kw_only=True)
class Recall:
    """One question put to the record. `sure` is a whole number of per cent, '' when it was not said."""

    question: str
    sure: str
    found: tuple[Found, ...]


@dataclass(frozen=True, kw_only=True)
class Thought:
    """One section: its title in words, and its text, or the recalls that it was read as."""

    kind: str
    """`thinking`, `tools`, `recall`, `deep`, `unfinished`, or '' for a section that others wrote."""
    title: str
    text: str = ""
    recalls: tuple[Recall, ...] = ()

    @property
    def is_markdown(self) -> bool:
        """Whether the text is read as Markdown."""
        return self.kind in ("deep", "unfinished")


@dataclass(frozen=True, kw_only=True)
class TurnThoughts:
    """The sections of one turn; a turn that was tried again has two of these."""

    turn_id: str
    at: datetime
    thoughts: tuple[Thought, ...]


def thoughts_of(agent_text: str, links: OwnLinks, root: Path) -> list[TurnThoughts]:
    """Every turn of an agent.md that left anything, in the order of the file; `root` is the folder it lies in."""
    lines = lines_for(root, map(id_of, cognition.recalled_paths(agent_text)))
    found = [
        TurnThoughts(turn_id=block.turn_id, at=block.at, thoughts=tuple(_thoughts(block, links, lines)))
        for block in cognition.parse_blocks(agent_text)
    ]
    return [one for one in found if one.thoughts]


def outside_turns(agent_text: str) -> str:
    """What stands in agent.md and belongs to no turn, such as lines that a hand added."""
    kept, end = [], 0
    for block in cognition.parse_blocks(agent_text):
        kept.append(agent_text[end : block.begin])
        end = block.finish
    return "".join([*kept, agent_text[end:]]).strip()


def _thoughts(block: PlacedBlock, links: OwnLinks, lines: Lines) -> list[Thought]:
    return [_thought(title, text, links, lines) for title, text in block.sections if text.strip()]


def _thought(title: str, text: str, links: OwnLinks, lines: Lines) -> Thought:
    match title:
        case cognition.THINKING:
            return Thought(kind="thinking", title=_("Thinking"), text=text)
        case cognition.TOOLS:
            return Thought(kind="tools", title=_("Tools"), text=_CALL.sub(r"\1(", text))
        case cognition.RECALL:
            recalls = _recalls(text, links, lines)
            return Thought(kind="recall", title=_("Recall"), text="" if recalls else text, recalls=recalls)
        case cognition.DEEP_THOUGHT:
            return Thought(kind="deep", title=_("Deep thought"), text=text)
        case cognition.UNFINISHED_REPLY:
            return Thought(kind="unfinished", title=_("Unfinished reply"), text=text)
        case _:
            return Thought(kind="", title=title, text=text)


def _recalls(text: str, links: OwnLinks, lines: Lines) -> tuple[Recall, ...]:
    """The recalls of a section; none when any line of it is not as we write it, so that no word is left out."""
    recalls: list[tuple[str, str, list[Found]]] = []
    for line in text.splitlines():
        if question := _QUESTION.fullmatch(line):
            recalls.append((question[1], _per_cent(question[2]), []))
        elif recalls and (found := _found(line, links, lines)):
            recalls[-1][2].append(found)
        elif line.strip():
            return ()
    return tuple(Recall(question=question, sure=sure, found=tuple(found)) for question, sure, found in recalls)


def _found(text: str, links: OwnLinks, lines: Lines) -> Found | None:
    match = _REFERENCE.fullmatch(text)
    try:
        if match is None:
            return None
        slice_id = parse_slice_path(match[1])
        line = lines.get(slice_id)
        known = line if isinstance(line, Line) else None
        return Found(
            at=known.start if known else minute_of(slice_id),
            zone=known.timezone if known else "UTC",
            focus=known.focus if known else "",
            url=links.turn_url(match[1], parse_turn_id(match[2])),
            quote=match[3],
        )
    except BadId:
        return None


def _per_cent(confidence: str | None) -> str:
    try:
        return f"{min(max(float(confidence or ''), 0), 1):.0%}"
    except ValueError:
        return ""


def by_turn(found: Sequence[TurnThoughts]) -> dict[str, tuple[Thought, ...]]:
    """The thoughts of each turn together."""
    turns: dict[str, tuple[Thought, ...]] = {}
    for one in found:
        turns[one.turn_id] = turns.get(one.turn_id, ()) + one.thoughts
    return turns
