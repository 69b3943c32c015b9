"""The close form: the marks of a whole slice, once it has closed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memory import prompts
from memory.conversation import anchors
from memory.conversation.analyzer import dates, fields, shown
from memory.conversation.analyzer.tone import tone
from memory.conversation.analyzer.topics import Topics, topics
from memory.conversation.person import Person
from memory.conversation.quoting import fenced
from memory.conversation.window import tokens
from memory.folder.marks import SUMMARY_CHARACTERS, hashtags, is_floor_summary
from memory.folder.slices import MAX_ITEMS, Slice
from memory.folder.strands import Merge, Strands
from memory.llm.client import ModelServer
from memory.llm.structured import Called, Failure, ask, nobody

FOCUS_CHARACTERS = 200
_LEAST_TOKENS = 1_000  # of the conversation, however small the model's context is

_ASK = {
    "en": "Fill in the form for this conversation. Answer with the JSON object alone.",
    "zh-hans": "请为这次谈话填写表单。只回答那个 JSON 对象。",
}
_TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "focus": {"type": "string"},
        "summary": {"type": "string"},
        "tags": _TEXTS,
        "emotional_tone": {"type": "string", "enum": ["positive", "neutral", "negative", "mixed"]},
        "open_loops": _TEXTS,
        "decisions": _TEXTS,
    },
    "required": ["focus", "summary", "tags", "emotional_tone", "open_loops", "decisions"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class CloseMarks:
    """The marks of a slice; None where the answer had nothing usable and what the slice has is to stay.

    `tags` are keys of strands, existing or new, the person's own `#hashtags` before the model's.
    """

    focus: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    emotional_tone: str | None = None
    open_loops: tuple[str, ...] | None = None
    decisions: tuple[str, ...] | None = None

    @property
    def usable(self) -> int:
        """How many of the marks there are."""
        return sum(value is not None for value in self.__dict__.values())


def analyse_close(
    model: ModelServer,
    slice_: Slice,
    *,
    strands: Strands,
    merges: Mapping[str, tuple[Merge, ...]],
    person: Person,
    kind: str = "close",
    called: Callable[[Called], object] = nobody,
) -> CloseMarks | Failure:
    """Ask the model for the marks of a slice: one structured call, counted as of the given kind.

    An answer without a focus or a summary is asked for once more; when the second is no better, what was usable of
    the better one is returned. All dates are the slice's own, so that it does not matter when it is analysed.
    A slice without an entry is a Failure of the reason `nothing_said`, without a call.
    """
    if not slice_.entries:
        return Failure(reason="nothing_said", reached=True)
    context = model.settings.context
    text = "\n".join(entry.content for entry in slice_.entries)
    known = topics(text, strands, merges, limit=context // 8)
    system = prompts.load(
        "analyse_close",
        person.language,
        began=anchors.full_time(slice_.start, slice_.timezone, person.language),
        ended=anchors.full_time(slice_.last_at, slice_.timezone, person.language),
        strands=fenced("strands", known.lines) if known.lines else "–",
        tags=shown.listed("tags", slice_.tags),
        loops=shown.listed("open loops", slice_.open_loops),
        decisions=shown.listed("decisions", slice_.decisions),
    )
    room = max(_LEAST_TOKENS, min(shown.MOST_TOKENS, context * 3 // 4 - tokens(system)))
    asked = [
        {"role": "system", "content": system},
        {"role": "user", "content": f"{shown.conversation(slice_, room)}\n\n{_ASK[person.language]}"},
    ]
    said = dates.said(slice_)
    own_tags = tuple(tag for entry in slice_.person_entries for tag in hashtags(entry.content))
    partial: list[CloseMarks] = []

    def check(answer: Any) -> CloseMarks:
        found = close_marks(answer, known=known, said=said, own_tags=own_tags)
        if found.focus is None or found.summary is None:
            partial.append(found)
            raise ValueError(_MISSING)
        return found

    answered = ask(model, asked, schema=SCHEMA, check=check, kind=kind, called=called)
    if isinstance(answered, Failure) and partial:
        return max(partial, key=lambda marks: marks.usable)
    return answered


_MISSING = (
    "It needs a focus (one sentence) and a summary (one line of at most 100 characters), both texts, and no date in "
    "them that the conversation does not give."
)


def close_marks(answer: Any, *, known: Topics, said: dates.Said, own_tags: tuple[str, ...]) -> CloseMarks:
    """The marks in an answer, whatever JSON it is, each field checked alone; other fields are ignored.

    Raises ValueError when no field can be used.
    """
    if not isinstance(answer, dict):
        raise ValueError("It has to be one JSON object.")
    tags = fields.tags(answer.get("tags"))
    found = CloseMarks(
        focus=_dated(fields.line(answer.get("focus"), FOCUS_CHARACTERS), said),
        summary=_summary(answer.get("summary"), said),
        tags=None if tags is None else known.keys((*own_tags, *tags))[:MAX_ITEMS],
        emotional_tone=tone(answer.get("emotional_tone")),
        open_loops=_all_dated(fields.items(answer.get("open_loops")), said),
        decisions=_all_dated(fields.items(answer.get("decisions")), said),
    )
    if not found.usable:
        raise ValueError(_MISSING)
    return found


def _summary(value: Any, said: dates.Said) -> str | None:
    """None, too, for what has the floor's shape: by that alone a slice is known to wait for better marks."""
    summary = _dated(fields.line(value, SUMMARY_CHARACTERS), said)
    return None if summary is not None and is_floor_summary(summary) else summary


def _dated(text: str | None, said: dates.Said) -> str | None:
    return None if text is None or dates.is_invented(text, said) else text


def _all_dated(items: tuple[str, ...] | None, said: dates.Said) -> tuple[str, ...] | None:
    """The items without those that state a date nobody gave; None when that leaves none of some."""
    if not items:
        return items
    return tuple(item for item in items if not dates.is_invented(item, said)) or None
