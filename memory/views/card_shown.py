"""A card as its pages show it: sections and entries, each receipt a link to the turn it comes from."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext_lazy

from memory.conversation.own_card import CARD_CHARACTERS
from memory.folder.card import SECTIONS, CardEntry, Section, parse_card
from memory.folder.errors import Damaged
from memory.folder.paths import CARD, id_of, minute_of, path_of

from .links import OwnLinks

_NAMES = {
    "Identity": gettext_lazy("Identity"),
    "Past": gettext_lazy("Past"),
    "Now": gettext_lazy("Now"),
    "Horizon": gettext_lazy("Horizon"),
    "How to be with them": gettext_lazy("How to be with them"),
}


@dataclass(frozen=True, kw_only=True)
class ReceiptLink:
    """Where an entry comes from: the turn, and when its slice began."""

    url: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class ShownEntry:
    """An entry's words and its receipts."""

    words: str
    receipts: tuple[ReceiptLink, ...]


@dataclass(frozen=True, kw_only=True)
class ShownSection:
    """A section; its name is '' for what stands above the first, `most` is None for one that is not ours."""

    name: str
    entries: tuple[ShownEntry, ...]
    most: int | None


@dataclass(frozen=True, kw_only=True)
class ShownCard:
    """A card as read. `slice_url` leads to the slice that changed it last, '' when none did."""

    title: str
    sections: tuple[ShownSection, ...]
    updated: datetime | None
    slice_url: str
    slice_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class UnreadableCard:
    """A card that cannot be read, as text, and what is wrong with it."""

    why: str
    raw: str
    path: str = CARD


def shown(data: bytes, links: OwnLinks) -> ShownCard | UnreadableCard:
    """The card in these bytes, whatever they are."""
    raw = data.decode("utf-8", "replace")
    if len(raw) > 4 * CARD_CHARACTERS:
        return UnreadableCard(why="it is far too long for a card", raw=raw)
    try:
        card = parse_card(data)
    except Damaged as damage:
        return UnreadableCard(why=damage.why, raw=raw)
    return ShownCard(
        title=card.title,
        sections=tuple(_section(section, links) for section in card.sections),
        updated=card.updated,
        slice_url=links.slice_url(path_of(card.slice)) if card.slice else "",
        slice_at=minute_of(card.slice) if card.slice else None,
    )


def section_name(name: str) -> str:
    """A section's name in words; the file has it in English in every language."""
    return str(_NAMES.get(name, name))


def _section(section: Section, links: OwnLinks) -> ShownSection:
    return ShownSection(
        name=section_name(section.name),
        entries=tuple(_entry(entry, links) for entry in section.entries),
        most=SECTIONS.get(section.name),
    )


def _entry(entry: CardEntry, links: OwnLinks) -> ShownEntry:
    receipts = tuple(
        ReceiptLink(url=links.turn_url(receipt.path, receipt.turn_id), at=minute_of(id_of(receipt.path)))
        for receipt in entry.receipts
    )
    return ShownEntry(words=entry.text, receipts=receipts)
