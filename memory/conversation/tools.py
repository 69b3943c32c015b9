"""The tools of the agent that only look at the person's own folder.

Arguments come from a model and are checked to the letter before anything is looked up; a mistake is answered with a
sentence that the model can act on. What a tool returns is quoted record. The agent's own line, agent.md, is never read.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from memory.conversation import anchors, toolbox
from memory.conversation.person import Person
from memory.conversation.quoting import card_lines, fenced
from memory.conversation.reading import QUOTED, read_slice
from memory.conversation.toolbox import RefusedError, ToolResult
from memory.folder.card import parse_card
from memory.folder.errors import Damaged, FolderError
from memory.folder.store import MemoryFolder

CARD_TOKENS = 8_000

RECALL = toolbox.tool(
    "recall",
    "Ask your memory about anything ever said. A colleague searches the record along topics and time, and reports what "
    "was said and when, with quotations that were checked. Ask one whole question, with names, words and dates in it.",
    {"question": toolbox.text("What you want to know, as a question that makes sense by itself.")},
    ("question",),
)
THINK_DEEP = toolbox.tool(
    "think_deep",
    "Think long and by itself about a hard question. Nothing of this conversation and no memory is known there: the "
    "question has to carry every fact.",
    {
        "question": toolbox.text("The whole question with all facts, wishes and limits."),
        "effort": toolbox.text("low, medium or high"),
    },
    ("question",),
)
READ_SLICE = toolbox.tool(
    "read_slice",
    "Read one conversation word for word: its marks and its turns, with local times. Use it when you know which slice "
    "you need. Of a long slice the first turns come, and the ids of the others to ask for.",
    {
        "slice_id": toolbox.text("2026-08-10-2130, or as it stands in a reference: 2026/08/10/2130"),
        "turn_ids": toolbox.texts("Only these turns; in [2026/08/10/2130#mVhV2g] the turn is mVhV2g."),
    },
    ("slice_id",),
)
TOOLS: list[dict[str, Any]] = [
    RECALL,
    READ_SLICE,
    toolbox.tool(
        "read_card", "Read the whole card as it is now: what is known of the person, and where each entry is from.", {}
    ),
    toolbox.tool("current_time", "The date and time now, where the person is.", {}),
    THINK_DEEP,
]


def run(
    folder: MemoryFolder, name: str, arguments: dict[str, Any] | None, *, person: Person, now: datetime
) -> ToolResult:
    """Carry out one call of a tool that only looks; `arguments` is None when they were no JSON object.

    Never raises for what a model may ask or a folder may hold: the error comes back as text.
    """
    try:
        offered = next((one for one in TOOLS if one["function"]["name"] == name), None)
        if offered is None or name not in _RUN:
            raise RefusedError(f"no such tool; there are: {', '.join(_RUN)}")
        text = _RUN[name](folder, toolbox.checked(offered, arguments), person, now)
    except RefusedError as refusal:
        return ToolResult(text=f"Error: {refusal}", error=str(refusal))
    except (FolderError, OSError):
        return ToolResult(text="Error: the record cannot be read just now", error="the record cannot be read just now")
    return ToolResult(text=text)


def _read_card(folder: MemoryFolder, arguments: dict[str, Any], person: Person, now: datetime) -> str:
    try:
        card = parse_card(folder.card())
    except Damaged:
        raise RefusedError("the card is damaged and cannot be read") from None
    lines, complete = card_lines(card, CARD_TOKENS)
    if not lines:
        return "The card is empty."
    rest = "" if complete else "\nThe card goes on; the rest does not fit here."
    return f"{fenced('card', lines)}\n{QUOTED}{rest}"


def _current_time(folder: MemoryFolder, arguments: dict[str, Any], person: Person, now: datetime) -> str:
    return f"{anchors.full_time(now, person.timezone, person.language)} ({anchors.zone_words(now, person.timezone)})"


_RUN: dict[str, Callable[[MemoryFolder, dict[str, Any], Person, datetime], str]] = {
    "read_slice": read_slice,
    "read_card": _read_card,
    "current_time": _current_time,
}
