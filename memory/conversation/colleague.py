"""The tools of the recall colleague: along topics, along time, by words, into single slices. All of them only read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from memory.conversation import anchors, indexing, toolbox, window
from memory.conversation.person import Person
from memory.conversation.quoting import fenced, quoted_line
from memory.conversation.reading import QUOTED, find_slice, marks_of, read_slice
from memory.conversation.toolbox import RefusedError, ToolResult
from memory.conversation.tools import READ_SLICE
from memory.folder import strands, timeline
from memory.folder.clock import local_day
from memory.folder.errors import FolderError
from memory.folder.paths import id_of, minute_of, path_of
from memory.folder.search import Hit, NoIndex, SearchIndex
from memory.folder.store import MemoryFolder

MOST_FULL_READS = 5
PAGE = 20
MOST_LINES = 50
MOST_DAYS = 400
LINE_CHARACTERS = 200
SNIPPET_CHARACTERS = 300

REPORT = toolbox.tool(
    "report",
    "Hand in what you found. This ends your work; nothing you say otherwise reaches anybody.",
    {
        "answer": toolbox.text("What was found, with dates. Say so plainly when there is nothing."),
        "references": {
            "type": "array",
            "description": "Where it was said, the most important first.",
            "items": {
                "type": "object",
                "properties": {
                    "slice": toolbox.text("2026/08/10/2130"),
                    "turnId": toolbox.text("mVhV2g"),
                    "quote": toolbox.text("The exact words of that turn."),
                    "note": toolbox.text("What they show, in a few words."),
                },
                "required": ["slice", "turnId", "quote", "note"],
                "additionalProperties": False,
            },
        },
        "searched": toolbox.texts("What you looked through."),
        "confidence": {"type": "number", "description": "0 to 1: how sure you are that this answers the question."},
    },
    ("answer", "references", "searched", "confidence"),
)
TOOLS: list[dict[str, Any]] = [
    toolbox.tool(
        "read_strand",
        "All slices of one topic, newest first, 20 a page, with their number. Names are in the list you were given.",
        {"name": toolbox.text("The topic as it is listed."), "page": toolbox.number("1 is the newest.")},
        ("name",),
    ),
    toolbox.tool(
        "timeline_window",
        "The slices between two local days, both included, newest first, with focus and summary.",
        {"from": toolbox.text("2026-08-01"), "to": toolbox.text("2026-08-31")},
        ("from", "to"),
    ),
    toolbox.tool(
        "search_memory",
        "Search everything that was said, in any language. Words that were really used find most; dates in words help.",
        {"words": toolbox.text("Words, names, dates.")},
        ("words",),
    ),
    toolbox.tool(
        "read_slice_marks",
        "When a slice was, its focus, summary, tags, decisions and open loops, without its turns.",
        {"slice_id": toolbox.text("2026-08-10-2130 or 2026/08/10/2130")},
        ("slice_id",),
    ),
    READ_SLICE,
    REPORT,
]


@dataclass
class Colleague:
    """One question's worth of looking: whose folder, which slice is being talked in, and what was looked at."""

    folder: MemoryFolder
    person: Person
    now: datetime
    current: str
    searched: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    full_reads: int = 0
    caught_up: bool = False

    def run(self, name: str, arguments: dict[str, Any] | None) -> ToolResult:
        """Carry out one call of a tool but `report`. Never raises for what a model may ask or a folder may hold."""
        try:
            offered = next((one for one in TOOLS if one["function"]["name"] == name), None)
            if offered is None or name == "report":
                raise RefusedError(f"no such tool; there are: {', '.join(_RUN)}")
            return ToolResult(text=_RUN[name](self, toolbox.checked(offered, arguments)))
        except RefusedError as refusal:
            return ToolResult(text=f"Error: {refusal}", error=str(refusal))
        except (FolderError, OSError):
            unread = "the record cannot be read just now"
            return ToolResult(text=f"Error: {unread}", error=unread)

    def search(self, words: str, limit: int = 10) -> list[Hit]:
        """The first stage: the best slices for some words, but the one talked in; none while there is no index."""
        if not self.caught_up:
            indexing.catch_up(self.folder)
            self.caught_up = True
        try:
            found = SearchIndex(self.folder.index_file).search(
                words,
                now=self.now,
                timezone=self.person.timezone,
                person=self.person.name,
                limit=limit,
                exclude=[self.current],
            )
        except NoIndex:
            return []
        known = {hit.slice_id for hit in self.hits}
        self.hits += [hit for hit in found if hit.slice_id not in known]
        return found


def _read_strand(colleague: Colleague, given: dict[str, Any]) -> str:
    woven = colleague.folder.strands()
    key = strands.key_for(given["name"], colleague.folder.merges(), woven)
    paths = [path for path in reversed(woven.get(key, ())) if id_of(path) != colleague.current]
    colleague.searched.append(f"strand {key}")
    if not paths:
        raise RefusedError("no such strand, or nothing on it yet")
    page = given.get("page", 1)
    shown = paths[(page - 1) * PAGE : page * PAGE]
    if not shown:
        raise RefusedError(f"this strand has {-(-len(paths) // PAGE)} pages")
    lines = timeline.lines_for(colleague.folder.root, map(id_of, shown))
    told = [_line(lines.get(id_of(path)), path, colleague.person) for path in shown]
    head = f"{len(paths)} slices, newest first; page {page} of {-(-len(paths) // PAGE)}"
    return f"{head}\n{fenced('strand', told)}\n{QUOTED}"


def _timeline_window(colleague: Colleague, given: dict[str, Any]) -> str:
    since, until = _day(given["from"]), _day(given["to"])
    if until < since:
        raise RefusedError("`to` lies before `from`")
    if (until - since).days > MOST_DAYS:
        raise RefusedError(f"at most {MOST_DAYS} days at once")
    colleague.searched.append(f"timeline {since} to {until}")
    told: list[str] = []
    more = 0
    # Slice ids are UTC minutes; a local day may begin the day before and end the day after.
    before = f"{until + timedelta(days=2)}-0000"
    for line in timeline.newest_first(colleague.folder.root, before=before):
        if line.id < f"{since - timedelta(days=2)}-0000":
            break
        if isinstance(line, timeline.DamagedSlice) or line.id == colleague.current:
            continue
        if since <= local_day(line.start, line.timezone) <= until:
            if len(told) == MOST_LINES:
                more += 1
            else:
                told.append(_line(line, line.path, colleague.person))
    if not told:
        return "Nothing was said between these days."
    rest = f"\n{more} more; ask for fewer days." if more else ""
    return f"{fenced('timeline', told)}\n{QUOTED}{rest}"


def _search_memory(colleague: Colleague, given: dict[str, Any]) -> str:
    words = given["words"].strip()
    if not words:
        raise RefusedError("words is empty")
    colleague.searched.append(f"words: {quoted_line(words, 80)}")
    found = colleague.search(words)
    return found_lines(colleague, found) if found else "Nothing was found for these words."


def found_lines(colleague: Colleague, found: list[Hit]) -> str:
    """What a search found, as a model reads it: the slices, dated, each with its best turns quoted."""
    lines = timeline.lines_for(colleague.folder.root, [hit.slice_id for hit in found])
    told = []
    for hit in found:
        told.append(_line(lines.get(hit.slice_id), path_of(hit.slice_id), colleague.person))
        for turn in hit.turns:
            who = "the person" if turn.role == "user" else "the companion"
            said = quoted_line(turn.snippet.text, SNIPPET_CHARACTERS)
            told.append(f"  [{path_of(hit.slice_id)}#{turn.turn_id}] {who}: “{said}”")
    return f"{fenced('found', told)}\n{QUOTED}"


def _read_slice_marks(colleague: Colleague, given: dict[str, Any]) -> str:
    found = find_slice(colleague.folder, given["slice_id"])
    return f"{fenced(f'slice {found.slice_id}', marks_of(found, colleague.person, colleague.now))}\n{QUOTED}"


def _read_slice(colleague: Colleague, given: dict[str, Any]) -> str:
    found = find_slice(colleague.folder, given["slice_id"])
    if found.slice_id == colleague.current:
        raise RefusedError("this slice is the conversation going on now; the one who asked you knows it")
    if not given.get("turn_ids"):
        if colleague.full_reads == MOST_FULL_READS:
            raise RefusedError(f"at most {MOST_FULL_READS} whole slices; ask for single turns")
        colleague.full_reads += 1
    colleague.searched.append(f"slice {found.path}")
    return read_slice(colleague.folder, given, colleague.person, colleague.now)


def _line(line: timeline.Line | timeline.DamagedSlice | None, path: str, person: Person) -> str:
    if not isinstance(line, timeline.Line):
        return f"- [{path}] cannot be read"
    told = " — ".join(quoted_line(part, LINE_CHARACTERS) for part in (line.focus, line.summary) if part)
    return f"- {anchors.full_time(line.start, line.timezone, person.language)} [{path}] {told or '…'}"


def _day(given: str) -> date:
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise RefusedError("a day is written 2026-08-10") from None


_RUN: dict[str, Callable[[Colleague, dict[str, Any]], str]] = {
    "read_strand": _read_strand,
    "timeline_window": _timeline_window,
    "search_memory": _search_memory,
    "read_slice_marks": _read_slice_marks,
    "read_slice": _read_slice,
}


def strand_lines(colleague: Colleague, limit_tokens: int) -> list[str]:
    """The topics there are, the most recent first, as far as there is room for them."""
    woven = colleague.folder.strands()
    lines: list[str] = []
    for key in sorted(woven, key=lambda key: (woven[key][-1], key), reverse=True):
        newest = local_day(minute_of(id_of(woven[key][-1])), colleague.person.timezone)
        line = f"- {quoted_line(key, 100)} ({len(woven[key])}, last {newest})"
        limit_tokens -= window.tokens(line)
        if limit_tokens < 0:
            break
        lines.append(line)
    return lines
