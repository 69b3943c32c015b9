"""The card evolves: a colleague reads a slice that has closed and proposes changes, entry by entry, with receipts.

`propose` asks the model and writes nothing. By the time `apply_to` makes a card of its operations the person may have
edited the card, so every check is made again then.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from memory import prompts
from memory.conversation import anchors, window
from memory.conversation.analyzer import dates
from memory.conversation.card_changes import Evolved, apply_to, read_card, rules_for, sentence
from memory.conversation.person import Person
from memory.conversation.phrases import phrases
from memory.conversation.quoting import card_lines, fenced, quoted_lines
from memory.folder.card import SECTIONS, parse_card
from memory.folder.card_edits import Operation, Refusal, Rules, apply, parse_operations, told
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry
from memory.llm import structured
from memory.llm.client import ModelServer
from memory.llm.structured import Called, Failure

__all__ = ["Evolved", "Proposal", "apply_to", "build_messages", "propose", "read_card", "rules_for"]

KIND = "evolve_card"
REPLY_TOKENS = 300
"""How much of a reply is shown: it is there only to make the person's words understood."""

_TEXT = {"type": "string"}
_RECEIPT = {
    "type": "object",
    "properties": {"receipt": _TEXT, "quote": _TEXT},
    "required": ["receipt", "quote"],
    "additionalProperties": False,
}
_OPERATIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["add", "replace", "remove", "move_to_past"]},
            "section": {"type": "string", "enum": list(SECTIONS)},
            "old": _TEXT,
            "text": _TEXT,
            "past": _TEXT,
            "receipts": {"type": "array", "items": _RECEIPT},
        },
        "required": ["op", "section", "old", "text", "past", "receipts"],
        "additionalProperties": False,
    },
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"operations": _OPERATIONS, "evolution_summary": _TEXT},
    "required": ["operations", "evolution_summary"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What the model would change: operations that passed on the card as it was, and its sentence, '' for none."""

    operations: tuple[Operation, ...]
    evolution_summary: str = ""


@dataclass(frozen=True, kw_only=True)
class _Wording:
    person: str
    agent: str
    left_out: str


_WORDING = {
    "en": _Wording(
        person="the person",
        agent="the companion",
        left_out="[… {count} turns in the middle are not shown …]",
    ),
    "zh-hans": _Wording(person="这个人", agent="陪伴者", left_out="[……中间 {count} 轮未显示……]"),
}


def propose(
    model: ModelServer,
    folder: MemoryFolder,
    slice_: Slice,
    *,
    person: Person,
    called: Callable[[Called], object] = structured.nobody,
) -> Proposal | Failure:
    """Ask what the card should take over from a closed slice: one request, or two when operations were refused.

    Those that pass on the card as it is now are kept; the others go back to the model once, each with the reason.
    Raises Damaged for a card that cannot be read, before anything is asked.
    """
    card_text = read_card(folder)
    messages = build_messages(card_text, slice_, person=person, context_tokens=model.settings.context)
    answers = _Answers(card_text, slice_, rules_for(folder))

    def hear(call: Called) -> None:
        answers.next()
        called(call)

    outcome = structured.ask(model, messages, schema=_SCHEMA, check=answers.check, kind=KIND, called=hear)
    if isinstance(outcome, Failure) and not answers.operations:
        return outcome
    return Proposal(operations=tuple(answers.operations), evolution_summary=answers.summary)


def build_messages(card_text: str, slice_: Slice, *, person: Person, context_tokens: int) -> list[dict[str, str]]:
    """The request: the colleague's task, then card and conversation as quoted record. Raises Damaged."""
    words = phrases(person.language)
    system = prompts.load("evolve_card", person.language)
    lines, _ = card_lines(parse_card(card_text), context_tokens // 4)
    around = anchors.anchors(slice_.start, slice_.timezone)

    def asked(conversation: str) -> str:
        return prompts.load(
            "evolve_card_slice",
            person.language,
            card=fenced("card", lines) if lines else words.card_empty,
            began=anchors.full_time(slice_.start, slice_.timezone, person.language),
            today=anchors.full_day(around.today, person.language),
            yesterday=anchors.full_day(around.yesterday, person.language),
            this_week=anchors.days_from_to(around.this_week, person.language),
            last_week=anchors.days_from_to(around.last_week, person.language),
            conversation=conversation,
        )

    room = window.room(system + asked(""), context_tokens).history
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": asked(fenced("conversation", _turns(slice_, room, _WORDING[person.language])))},
    ]


def _turns(slice_: Slice, room: int, wording: _Wording) -> list[str]:
    """The turns of a slice under their references: the first, and as many of the last as there is room for."""
    limit = room // 2
    blocks = [
        "\n".join(_said(slice_, entry, limit, wording) for entry in entries)
        for _, entries in groupby(slice_.entries, key=lambda entry: entry.turn_id)
    ]
    left = room - sum(map(window.tokens, blocks[:1]))
    shown: list[str] = []
    for block in reversed(blocks[1:]):
        left -= window.tokens(block)
        if left < 0:
            break
        shown.insert(0, block)
    missing = len(blocks) - 1 - len(shown)
    gap = [wording.left_out.format(count=missing)] if missing > 0 else []
    return [*blocks[:1], *gap, *shown]


def _said(slice_: Slice, entry: Entry, limit: int, wording: _Wording) -> str:
    mine = entry.role == "user"
    text = window.shortened(entry.content, limit if mine else min(limit, REPLY_TOKENS))
    return f"[{slice_.path}#{entry.turn_id}] {wording.person if mine else wording.agent}:\n{quoted_lines(text)}"


class _Answers:
    """What the model's answers come to: at most two, the second in the place of what was refused in the first."""

    def __init__(self, card_text: str, slice_: Slice, rules: Rules) -> None:
        self.operations: list[Operation] = []
        self.summary = ""
        self._card = card_text
        self._slice = slice_
        self._rules = rules
        self._dates = dates.said(_with_card(slice_, card_text))
        self._last = False
        self._objection = ""

    def next(self) -> None:
        """One request is over."""
        self._last, self._objection = True, ""

    def check(self, answer: dict[str, Any]) -> None:
        """Take what passes; raise ValueError when something was refused that can still be mended."""
        if self._objection:
            raise ValueError(self._objection)  # another reading of the same answer
        if "operations" not in answer:
            raise ValueError("`operations` is missing; it is a list, and empty when nothing changes.")
        refused = []
        for operation in parse_operations(answer["operations"], here=self._slice.path):
            outcome = self._applied(operation)
            if isinstance(outcome, Refusal):
                refused.append(outcome.sentence)
            elif not isinstance(operation, Refusal) and outcome != self._card:
                self.operations.append(operation)
                self._card = outcome
        self.summary = "" if refused else sentence(answer.get("evolution_summary"))
        if refused and not self._last:
            self._objection = (
                "Every operation that is not named here is kept. Give others only in the place of these, or none, "
                f"and a summary of all. {'. '.join(refused)}."
            )
            raise ValueError(self._objection)

    def _applied(self, operation: Operation | Refusal) -> str | Refusal:
        if isinstance(operation, Refusal):
            return operation
        texts = (getattr(operation, name, "") for name in ("text", "past"))
        if any(dates.is_invented(text, self._dates) for text in texts):
            return Refusal("date", f"{told(operation)}: it states a date that nobody said")
        return apply(self._card, operation, rules=self._rules)


def _with_card(slice_: Slice, card_text: str) -> Slice:
    """The slice as if the card had been read out at its beginning, for the dates that may be repeated from it."""
    read_out = Entry("card", slice_.start, "agent", card_text)
    return replace(slice_, entries=(read_out, *slice_.entries))
