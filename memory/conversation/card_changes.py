"""Changes to the card on their way into it: whoever proposes them, each is checked and applied alone, and told of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from memory.folder.card_edits import Add, MoveToPast, Operation, Refusal, Remove, Replace, Rules, apply, stamped
from memory.folder.card_rules import MANNER, Refused, checked_text
from memory.folder.errors import BadId, Damaged, NotThere
from memory.folder.marks import cut, plain_line
from memory.folder.paths import CARD, id_of
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.turns import clean

SUMMARY_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Evolved:
    """The card after the operations. `applied` are those that changed it; `summary` is '' when none did."""

    card_text: str
    applied: tuple[Operation, ...]
    refused: tuple[Refusal, ...]
    summary: str


@dataclass(frozen=True, kw_only=True)
class _Wording:
    noted: str
    to_past: str
    gone: str
    between: str
    end: str


_WORDING = {
    "en": _Wording(
        noted="noted: {entries}",
        to_past="moved to the past: {entries}",
        gone="taken off the card: {entries}",
        between="; ",
        end=".",
    ),
    "zh-hans": _Wording(
        noted="已记下：{entries}",
        to_past="移到过去：{entries}",
        gone="从卡片上去掉：{entries}",
        between="；",
        end="。",
    ),
}


def read_card(folder: MemoryFolder) -> str:
    """The live card's text, '' when there is none; raises Damaged for bytes that are no UTF-8."""
    try:
        return (folder.read(CARD) or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(CARD, "it is not UTF-8") from error


def rules_for(folder: MemoryFolder, *, asked_by_person: bool = False) -> Rules:
    """The rules of a change to this person's card; receipts are looked up in the folder, each slice once."""

    @cache
    def slice_at(path: str) -> Slice | None:
        try:
            return folder.slice(id_of(path))
        except (BadId, NotThere, Damaged):
            return None

    return Rules(slice_at=slice_at, asked_by_person=asked_by_person)


def apply_to(
    card_text: str,
    operations: Iterable[Operation | Refusal],
    *,
    rules: Rules,
    at: datetime,
    slice_id: str,
    language: str,
    evolution_summary: str = "",
) -> Evolved:
    """Apply operations one by one, each alone; a card that changed is stamped with `at` and the slice.

    Applying the same again changes nothing. The model's sentence is taken when all it proposed was applied; else the
    summary tells what was.
    """
    text = card_text
    applied: list[Operation] = []
    refused: list[Refusal] = []
    for operation in operations:
        outcome = operation if isinstance(operation, Refusal) else apply(text, operation, rules=rules)
        if isinstance(outcome, Refusal):
            refused.append(outcome)
        elif not isinstance(operation, Refusal) and outcome != text:
            applied.append(operation)
            text = outcome
    if not applied:
        return Evolved(card_text=card_text, applied=(), refused=tuple(refused), summary="")
    told = "" if refused else sentence(evolution_summary)
    return Evolved(
        card_text=stamped(text, at=at, slice_id=slice_id),
        applied=tuple(applied),
        refused=tuple(refused),
        summary=told or _told(applied, _WORDING[language]),
    )


def sentence(value: object) -> str:
    """Return a model's sentence as one line that may stand in a prompt; '' when it gave none, or one that may not."""
    line = cut(plain_line(clean(value)), SUMMARY_CHARACTERS) if isinstance(value, str) else ""
    try:
        return checked_text(MANNER, line) if line else ""
    except Refused:
        return ""


def _told(applied: Sequence[Operation], wording: _Wording) -> str:
    """What was applied, told without a model: `Noted: Lives in Berlin; moved to the past: Lived in Lisbon.`"""
    noted = [operation.text for operation in applied if isinstance(operation, Add | Replace)]
    past = [operation.text or operation.old for operation in applied if isinstance(operation, MoveToPast)]
    past += [operation.past for operation in applied if isinstance(operation, Replace) and operation.past]
    gone = [operation.old for operation in applied if isinstance(operation, Remove)]
    parts = [
        pattern.format(entries=wording.between.join(map(plain_line, entries)))
        for pattern, entries in ((wording.noted, noted), (wording.to_past, past), (wording.gone, gone))
        if entries
    ]
    told = wording.between.join(parts)
    return cut(told[:1].upper() + told[1:], SUMMARY_CHARACTERS - len(wording.end)) + wording.end
