"""The turn form: what one turn adds to the memory."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory import prompts
from memory.conversation import anchors
from memory.conversation.analyzer import dates, fields, shown
from memory.conversation.analyzer.topics import Topics, topics, twin_form
from memory.conversation.person import Person
from memory.conversation.quoting import card_lines, fenced
from memory.folder.card import Card
from memory.folder.errors import NotThere
from memory.folder.quotes import occurs, own_words
from memory.folder.slices import Slice
from memory.folder.strands import Merge, Strands
from memory.llm.client import ModelServer
from memory.llm.structured import Called, Failure, ask, nobody

MOST_CREATED = 3
MOST_LOOPS_SHOWN = 40
MOST_OPERATIONS = 10

_ASK = {
    "en": "Fill in the form for the last turn above. Answer with the JSON object alone.",
    "zh-hans": "请为上面最后一轮填写表单。只回答那个 JSON 对象。",
}
_NUMBER = re.compile(r"\s*[#(]?(\d{1,3})[.)]?\s*")
_TEXTS = {"type": "array", "items": {"type": "string"}}
_OPERATION = {
    "type": "object",
    "properties": {
        "op": {"type": "string", "enum": ["add", "replace", "remove", "move_to_past"]},
        **{name: {"type": "string"} for name in ("section", "old", "text", "past", "quote")},
    },
    "required": ["op", "section", "old", "text", "past", "quote"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "worth_remembering": {"type": "boolean"},
        "reuse": _TEXTS,
        "create": _TEXTS,
        "loops_opened": _TEXTS,
        "loops_resolved": {"type": "array", "items": {"type": "integer"}},
        "decisions": _TEXTS,
        "card_operations": {"type": "array", "items": _OPERATION},
    },
    "required": [
        "worth_remembering", "reuse", "create", "loops_opened", "loops_resolved", "decisions", "card_operations",
    ],
    "additionalProperties": False,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TurnMarks:
    """What one turn adds.

    `reuse` are keys of strands that exist, `create` at most three new keys. `loops_resolved` are open loops exactly as
    they were given. `card_operations` are JSON objects as `card_operations.parse_operations` reads them, each resting
    on words of this turn in which the person asked for the change.
    """

    reuse: tuple[str, ...] = ()
    create: tuple[str, ...] = ()
    loops_opened: tuple[str, ...] = ()
    loops_resolved: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    worth_remembering: bool = False
    card_operations: tuple[dict[str, Any], ...] = ()


def analyse_turn(
    model: ModelServer,
    slice_: Slice,
    turn_id: str,
    *,
    strands: Strands,
    merges: Mapping[str, tuple[Merge, ...]],
    person: Person,
    open_loops: Sequence[str] = (),
    card: Card | None = None,
    called: Callable[[Called], object] = nobody,
) -> TurnMarks | Failure:
    """Ask the model what this turn adds: one structured call of the kind `turn`.

    `open_loops` are those still open from earlier slices, newest first; the slice's own are known. Without `card` no
    change of it can name an entry. Times are the turn's own, so that it does not matter when it is analysed.
    Raises NotThere when the person said nothing in this turn.
    """
    entry = slice_.entry(turn_id, "user")
    if entry is None:
        raise NotThere(f"no message {turn_id} in slice {slice_.slice_id}")
    context = model.settings.context
    text = "\n".join(one.content for one in slice_.entries if one.turn_id == turn_id)
    known = topics(text, strands, merges, limit=context // 8)
    loops = tuple(dict.fromkeys((*slice_.open_loops, *open_loops)))[:MOST_LOOPS_SHOWN]
    system = prompts.load(
        "analyse_turn",
        person.language,
        when=anchors.full_time(entry.at, slice_.timezone, person.language),
        strands=fenced("strands", known.lines) if known.lines else "–",
        tags=shown.listed("tags", slice_.tags),
        loops=shown.listed("open loops", loops, numbered=True),
        card=_card(card, context // 8),
    )
    earlier = shown.before(slice_, turn_id, min(1_500, context // 16))
    this = shown.turn(slice_, turn_id, min(8_000, context // 4))
    asked = [
        {"role": "system", "content": system},
        {"role": "user", "content": "\n\n".join(filter(None, (earlier, this, _ASK[person.language])))},
    ]
    said, receipt = dates.said(slice_), f"{slice_.path}#{turn_id}"

    def check(answer: Any) -> TurnMarks:
        return turn_marks(answer, known=known, loops=loops, said=said, told=entry.content, receipt=receipt)

    return ask(model, asked, schema=SCHEMA, check=check, kind="turn", called=called)


def turn_marks(
    answer: Any, *, known: Topics, loops: Sequence[str], said: dates.Said, told: str, receipt: str
) -> TurnMarks:
    """The marks in an answer, whatever JSON it is; a field that cannot be used is empty.

    `told` is what the person said in the turn, `receipt` its `path#turn`. Raises ValueError when no field of the
    answer can be used.
    """
    if not isinstance(answer, dict):
        raise ValueError("It has to be one JSON object.")
    reused, created = fields.tags(answer.get("reuse")), fields.tags(answer.get("create"))
    opened, decided = fields.items(answer.get("loops_opened")), fields.items(answer.get("decisions"))
    worth = fields.yes_or_no(answer.get("worth_remembering"))
    if all(value is None for value in (reused, created, opened, decided, worth)):
        raise ValueError("Every field has to be there: worth_remembering is true or false, the others are lists.")
    existing = (known.existing(tag) for tag in (*(reused or ()), *(created or ())))
    found = TurnMarks(
        reuse=tuple(dict.fromkeys(key for key in existing if key)),
        create=known.keys(tag for tag in created or () if not known.existing(tag))[:MOST_CREATED],
        loops_opened=tuple(loop for loop in _sound(opened, said) if not _numbers([loop], loops)),
        loops_resolved=tuple(loops[number] for number in _numbers(answer.get("loops_resolved"), loops)),
        decisions=_sound(decided, said),
        card_operations=_card_operations(answer.get("card_operations"), told, receipt),
    )
    if worth is False:
        return replace(found, reuse=(), create=())
    noted = found.reuse or found.create or found.loops_opened or found.decisions
    return replace(found, worth_remembering=bool(worth or noted))


def _sound(items: Sequence[str] | None, said: dates.Said) -> tuple[str, ...]:
    return tuple(item for item in items or () if not dates.is_invented(item, said))


def _numbers(value: Any, loops: Sequence[str]) -> list[int]:
    """Which of the loops a list names, by the numbers they were shown with, counted from 1, or by their words."""
    by_words = {twin_form(loop): number for number, loop in enumerate(loops)}
    found: dict[int, None] = {}
    for item in value if isinstance(value, list) else ():
        number = by_words.get(twin_form(item), -1) if isinstance(item, str) else -1
        if number < 0 and (written := _NUMBER.fullmatch(str(item)[:20])):
            number = int(written[1]) - 1
        if 0 <= number < len(loops):
            found[number] = None
    return list(found)


def _card_operations(value: Any, told: str, receipt: str) -> tuple[dict[str, Any], ...]:
    """The operations that rest on the person's own words of this turn, each with its receipt.

    What stands in a message as somebody else's words, a quotation or a fenced block, asks for nothing.
    """
    own = own_words(told)
    found = []
    for item in value[:MOST_OPERATIONS] if isinstance(value, list) else ():
        if not isinstance(item, dict) or not isinstance(item.get("quote"), str) or not occurs(item["quote"], own):
            continue
        named = ("op", "section", "old", "text", "past")
        given = {name: item[name] for name in named if isinstance(item.get(name), str)}
        found.append({**given, "receipts": [{"receipt": receipt, "quote": item["quote"]}]})
    return tuple(found)


def _card(card: Card | None, limit: int) -> str:
    lines = card_lines(card, limit)[0] if card else []
    return fenced("card", lines) if lines else "–"
