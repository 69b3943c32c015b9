"""The card changed entry by entry: one checked operation at a time on its text, every other line left as it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.folder import frontmatter
from memory.folder.card import SECTIONS, Card, CardEntry, Receipt, Section, parse_card, render_entry
from memory.folder.card_operations import (
    Add,
    MoveToPast,
    Operation,
    Proof,
    Refusal,
    Remove,
    Replace,
    parse_operations,
    told,
)
from memory.folder.card_rules import Refused, Rules, check_owner, checked_receipts, checked_text
from memory.folder.clock import stamp
from memory.folder.errors import Damaged
from memory.folder.paths import parse_slice_id
from memory.folder.quotes import fold

__all__ = [
    "Add",
    "MoveToPast",
    "Operation",
    "Proof",
    "Refusal",
    "Remove",
    "Replace",
    "Rules",
    "apply",
    "parse_operations",
    "stamped",
    "told",
]

IDENTITY = "Identity"
PAST = "Past"


def apply(card_text: str, operation: Operation, *, rules: Rules) -> str | Refusal:
    """Return the card with the operation applied, or why it was not. Never raises.

    `old` has to be an entry of that section as it stands now, white space and the shape of quotation marks aside.
    What is there already (the same words added twice, a change made before) leaves the text as it is. A card that
    cannot be read is refused; line ends come back as LF.
    """
    text = frontmatter.normalised(card_text)
    try:
        edits = _edits(parse_card(text), operation, rules)
    except Damaged as damage:
        return Refusal("damaged", f"the card cannot be read: {damage.why}")
    except Refused as refused:
        return Refusal(refused.code, f"{told(operation)}: {refused.sentence}")
    return _with(text, edits) if edits else card_text


def stamped(card_text: str, *, at: datetime, slice_id: str = "") -> str:
    """Return the card with `updated` made new, and `slice` if one is given; other keys and the body keep their bytes.

    Raises Damaged for a card that cannot be read, BadId for what is no slice id.
    """
    parse_card(card_text)
    source, body = frontmatter.split(card_text)
    header = frontmatter.parse(source or "", ("updated", "slice"))
    kept = header.fields.get("slice", "")
    fields = {"updated": stamp(at), "slice": parse_slice_id(slice_id) if slice_id else kept}
    return frontmatter.render(fields, header.extra) + body


@dataclass(frozen=True)
class _Edit:
    """Lines `first` to `last`, counted from 1, become `line` or go; with `last` before `first` it is put in there."""

    first: int
    last: int
    line: str | None


def _edits(card: Card, operation: Operation, rules: Rules) -> list[_Edit]:
    """The lines to change, none when the card says so already; raises Refused."""
    match operation:
        case Add(section=section, text=text, receipts=proofs):
            words = checked_text(section, text)
            if _find(card, section, words):
                return []
            return [_put_in(card, section, words, _receipts(proofs, words, section, card, None, rules))]
        case Remove(section=section, old=old):
            return _taken_out(_open_entries(card, section, old, rules))
        case Replace():
            return _replaced(card, operation, rules)
        case MoveToPast():
            return _moved(card, operation, rules)


def _replaced(card: Card, operation: Replace, rules: Rules) -> list[_Edit]:
    section, proofs = operation.section, operation.receipts
    words = checked_text(section, operation.text)
    past = checked_text(PAST, operation.past) if operation.past else ""
    if past and section == PAST:
        raise Refused("past-already", "what stands in Past has no past of its own")
    twin = _find(card, section, words)
    if twin and not _find(card, section, operation.old):
        return []
    entry, *others = entries = _open_entries(card, section, operation.old, rules)
    receipts = _receipts(proofs, words, section, card, entry, rules)
    if twin and twin not in entries:
        edits = _taken_out(entries)
    else:
        edits = [_Edit(entry.line, entry.last_line, render_entry(words, receipts)), *_taken_out(others)]
    if past and not _find(card, PAST, past):
        edits.append(_put_in(card, PAST, past, _united(entries, receipts)))
    return edits


def _moved(card: Card, operation: MoveToPast, rules: Rules) -> list[_Edit]:
    section, proofs = operation.section, operation.receipts
    if section == PAST:
        raise Refused("past-already", "it stands in Past already")
    anew = fold(operation.text) not in ("", fold(operation.old))
    words = checked_text(PAST, operation.text) if anew else ""
    if _find(card, PAST, words or operation.old) and not _find(card, section, operation.old):
        return []
    entries = _open_entries(card, section, operation.old, rules)
    if not anew:  # its own receipts go with it anyway
        proofs = tuple(proof for proof in proofs if proof.receipt not in entries[0].receipts)
    receipts = _receipts(proofs, words, PAST, card, entries[0], rules) if anew or proofs else ()
    edits = _taken_out(entries)
    if not _find(card, PAST, words or entries[0].text):
        edits.append(_put_in(card, PAST, words or entries[0].text, _united(entries, receipts)))
    return edits


def _receipts(
    proofs: Sequence[Proof], words: str, section: str, card: Card, kept: CardEntry | None, rules: Rules
) -> tuple[Receipt, ...]:
    if section == IDENTITY and rules.asked_by_person and not proofs:
        return ()  # what they ask to be called needs no proof
    return checked_receipts(proofs, words, card=card, kept=kept, rules=rules)


def _sections(card: Card, name: str) -> list[Section]:
    found = [section for section in card.sections if section.name == name and name in SECTIONS]
    if not found:
        raise Refused("no-such-section", f"the card has no section {name}")
    return found


def _find_all(card: Card, section: str, words: str) -> list[CardEntry]:
    wanted = fold(words)
    entries = (entry for found in _sections(card, section) for entry in found.entries)
    return [entry for entry in entries if fold(entry.text) == wanted]


def _find(card: Card, section: str, words: str) -> CardEntry | None:
    return next(iter(_find_all(card, section, words)), None)


def _open_entries(card: Card, section: str, old: str, rules: Rules) -> list[CardEntry]:
    """The entry with these words, more than one if it stands there twice, if it may be changed; raises Refused."""
    entries = _find_all(card, section, old)
    if not entries:
        raise Refused("no-such-entry", f"no entry of {section} has exactly these words")
    for entry in entries:
        check_owner(entry, rules)
    return entries


def _united(entries: Iterable[CardEntry], receipts: Iterable[Receipt]) -> tuple[Receipt, ...]:
    """The receipts of the old entry and those of the change, each once."""
    return tuple(dict.fromkeys((*(receipt for entry in entries for receipt in entry.receipts), *receipts)))


def _put_in(card: Card, section: str, words: str, receipts: Iterable[Receipt]) -> _Edit:
    """A new entry after the last one of its section; raises Refused when there is no room."""
    sections = _sections(card, section)
    if sum(len(found.entries) for found in sections) >= SECTIONS[section]:
        raise Refused("full", f"{section} holds {SECTIONS[section]} entries, the most it may: make room there first")

    first = sections[0]
    after = first.entries[-1].last_line if first.entries else first.line
    return _Edit(after + 1, after, render_entry(words, receipts))


def _taken_out(entries: Iterable[CardEntry]) -> list[_Edit]:
    return [_Edit(entry.line, entry.last_line, None) for entry in entries]


def _with(text: str, edits: Iterable[_Edit]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: edit.first, reverse=True):
        lines[edit.first - 1 : edit.last] = [] if edit.line is None else [edit.line]
    return "\n".join(lines if not lines[-1] else [*lines, ""])
