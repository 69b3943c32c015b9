"""What a person sees who comes (back): Previously on <name>, the last slice, what was left open."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape

from django.conf import settings
from django.utils.html import strip_tags

from memory import markdown
from memory.conversation.person import Person
from memory.folder.errors import Damaged, NotThere
from memory.folder.marks import cut
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice, Line

from .spine import focus_of

LOOPS = 4
EXCERPT_CHARS = 180


@dataclass(frozen=True, kw_only=True)
class Last:
    """The newest slice: when it last heard a word, what it was about, the first lines of its last reply."""

    path: str
    at: datetime
    zone: str
    focus: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """`last` is None for a new account. `loops` are what the newest slices left open, each once, the newest first."""

    name: str
    last: Last | None
    loops: tuple[str, ...]
    no_model: bool


def arrival(folder: MemoryFolder, person: Person, lines: Sequence[Line | DamagedSlice]) -> Arrival:
    """The arrival view over the newest lines of the timeline, newest first."""
    readable = [line for line in lines if isinstance(line, Line)]
    loops = dict.fromkeys(loop for line in readable for loop in line.open_loops)
    return Arrival(
        name=person.name,
        last=_last(folder, readable[0], person) if readable else None,
        loops=tuple(loops)[:LOOPS],
        no_model=not settings.PREVIOUSLY.model,
    )


def _last(folder: MemoryFolder, line: Line, person: Person) -> Last:
    at, words = line.end or line.start, ""
    try:
        found = folder.slice(line.id)
    except (NotThere, Damaged):
        pass  # gone or broken since it was listed: its line still says when it was
    else:
        at = found.last_at
        replies = [entry.content for entry in found.entries if entry.role == "agent"]
        words = _first_lines(replies[-1]) if replies else ""
    return Last(path=line.path, at=at, zone=line.timezone, focus=focus_of(folder, line, person), words=words)


def _first_lines(reply: str) -> str:
    """The beginning of a reply without its Markdown, cut at a word."""
    text = " ".join(strip_tags(markdown.render(reply[: 4 * EXCERPT_CHARS], final=False)).split())
    # The rendered text is escaped HTML; what is cut here is plain text again.
    return cut(unescape(text), EXCERPT_CHARS)
