"""What may be asked of the card, entry by entry, and the reading of such requests from whatever a model answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.folder.card import SECTIONS, Receipt, entry_words
from memory.folder.errors import BadId
from memory.folder.marks import cut
from memory.folder.paths import parse_slice_id, parse_slice_path, parse_turn_id, path_of
from memory.folder.turns import clean

MOST_OPERATIONS = 20
MOST_RECEIPTS = 5


@dataclass(frozen=True)
class Proof:
    """A receipt, with the person's words in that turn which the entry rests on; no words for a receipt kept."""

    receipt: Receipt
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class Add:
    """A new entry at the end of its section."""

    section: str
    text: str
    receipts: tuple[Proof, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Replace:
    """New words in the place of an entry. `past` is what becomes of the old fact: an entry of Past, or nothing."""

    section: str
    old: str
    text: str
    past: str = ""
    receipts: tuple[Proof, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Remove:
    """An entry goes."""

    section: str
    old: str


@dataclass(frozen=True, kw_only=True)
class MoveToPast:
    """An entry goes to Past with its receipts, in new words if `text` gives any."""

    section: str
    old: str
    text: str = ""
    receipts: tuple[Proof, ...] = ()


Operation = Add | Replace | Remove | MoveToPast


@dataclass(frozen=True)
class Refusal:
    """Why an operation was not applied: a stable code, and a sentence that whoever proposed it can act on."""

    code: str
    sentence: str


_KINDS: dict[str, type[Add | Replace | Remove | MoveToPast]] = {
    "add": Add,
    "replace": Replace,
    "update": Replace,
    "remove": Remove,
    "delete": Remove,
    "forget": Remove,
    "move": MoveToPast,
    "movetopast": MoveToPast,
}
_SECTION_NAMES = {"".join(filter(str.isalpha, name.casefold())): name for name in SECTIONS}


def told(operation: Operation) -> str:
    """Return the operation in a few words, for the sentence that refuses it."""
    match operation:
        case Add():
            return f'add to {operation.section}: "{cut(operation.text, 60)}"'
        case Replace():
            return f'replace in {operation.section}: "{cut(operation.old, 60)}"'
        case Remove():
            return f'remove from {operation.section}: "{cut(operation.old, 60)}"'
        case MoveToPast():
            return f'move to Past from {operation.section}: "{cut(operation.old, 60)}"'


def parse_operations(value: Any, *, here: str = "") -> list[Operation | Refusal]:
    """Read operations from any JSON value; what is none becomes a Refusal in its place. Never raises.

    The shape is a list (or `{"operations": […]}`, or one operation alone) of
    `{"op": "add" | "replace" | "remove" | "move_to_past", "section", "old", "text", "past", "receipts"}`, each receipt
    `{"receipt": "2026/08/10/2130#mVhV2g", "quote": "…"}`. With `here`, a slice path, a turn id alone is one of that
    slice. Texts may carry the `- ` and the receipts that entries have in the card; both are taken off.
    """
    if isinstance(value, Mapping):
        value = value.get("operations", [value] if "op" in value else [])
    if not isinstance(value, list | tuple):
        return [] if value is None else [Refusal("not-a-list", "operations: a list is expected")]
    read = [_operation(item, here) for item in value[:MOST_OPERATIONS]]
    if len(value) > MOST_OPERATIONS:
        read.append(Refusal("too-many", f"operations: only the first {MOST_OPERATIONS} were looked at"))
    return read


def _operation(item: Any, here: str) -> Operation | Refusal:
    if not isinstance(item, Mapping):
        return Refusal("not-an-operation", "an operation is an object with op, section and text or old")
    kind = _KINDS.get("".join(filter(str.isalpha, _text(item, "op").casefold())))
    if kind is None:
        return Refusal("no-such-op", f'"{cut(_text(item, "op"), 40)}": op is add, replace, remove or move_to_past')
    named = _text(item, "section")
    section = _SECTION_NAMES.get("".join(filter(str.isalpha, named.casefold())), "")
    if not section:
        return Refusal("no-such-section", f'"{cut(named, 40)}" is no section; they are {", ".join(SECTIONS)}')
    old, words, past = (_words(item, key) for key in ("old", "text", "past"))
    if kind is not Add and not old:
        return Refusal("no-old", f"{kind.__name__} in {section}: old has to give the entry's exact text")
    if kind in (Add, Replace) and not words:
        return Refusal("empty", f"{kind.__name__} in {section}: text has to give the new entry")
    receipts = _receipts(item.get("receipts"), here)
    if kind is Add:
        return Add(section=section, text=words, receipts=receipts)
    if kind is Replace:
        return Replace(section=section, old=old, text=words, past=past, receipts=receipts)
    if kind is MoveToPast:
        return MoveToPast(section=section, old=old, text=words or past, receipts=receipts)
    return Remove(section=section, old=old)


def _text(item: Mapping[Any, Any], key: str) -> str:
    value = item.get(key)
    return clean(value).strip() if isinstance(value, str) else ""


def _words(item: Mapping[Any, Any], key: str) -> str:
    """The text of an entry as it may have been copied from the card: without list mark and receipts."""
    text = _text(item, key)
    return text if "\n" in text else entry_words(text)


def _receipts(value: Any, here: str) -> tuple[Proof, ...]:
    """The receipts that can be read, each once. One that cannot proves nothing, so it is left out."""
    items = value if isinstance(value, list | tuple) else [value]
    read = (_proof(item, here) for item in items[:MOST_RECEIPTS])
    return tuple(dict.fromkeys(proof for proof in read if proof))


def _proof(item: Any, here: str) -> Proof | None:
    if isinstance(item, str):
        item = {"receipt": item}
    if not isinstance(item, Mapping):
        return None
    named = next((text for key in ("receipt", "turn", "turn_id") if (text := _text(item, key))), "")
    slice_, _, turn_id = named.strip("[] ").rpartition("#")
    slice_ = slice_ or _text(item, "slice") or here
    try:
        path = path_of(parse_slice_path(slice_) if "/" in slice_ else parse_slice_id(slice_))
        return Proof(Receipt(path, parse_turn_id(turn_id)), _text(item, "quote"))
    except BadId:
        return None
