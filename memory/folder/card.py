"""The user card, previously.md: what the agent knows of a person, entry by entry, each with receipts into the record.

The person may edit it with any editor, so reading is tolerant: sections we do not know are kept, a line that is no list
item is still an entry. `problems` says what a hand edit should mend.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from memory.folder import frontmatter
from memory.folder.clock import parse_stamp
from memory.folder.errors import BadId, Damaged, FrontMatterError
from memory.folder.marks import plain_line
from memory.folder.paths import CARD, parse_slice_id, parse_slice_path, parse_turn_id, path_of

SECTIONS = {"Identity": 8, "Past": 12, "Now": 7, "Horizon": 7, "How to be with them": 10}
"""The sections in their order, each with the number of entries it may hold."""

ENTRY_CHARACTERS = 300
"""How long an entry may be, its receipts not counted."""

NAME_CHARACTERS = 100

PROBLEMS = (
    "no-front-matter",
    "bad-front-matter",
    "bad-updated",
    "bad-slice",
    "no-title",
    "unknown-section",
    "section-twice",
    "outside-section",
    "not-an-entry",
    "empty-entry",
    "entry-too-long",
    "too-many-entries",
    "bad-receipt",
)

_TITLE = re.compile(r"# +(\S.*)")
_SECTION = re.compile(r"## +(\S.*)")
_ITEM = re.compile(r" {0,3}[-*+](?:[ \t]+|$)")
_RECEIPT = re.compile(r"\[([0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9]{4})#([A-Za-z0-9_-]+)\]")
_LIKE_RECEIPT = re.compile(r"\[[0-9]{4}[/-][0-9]{1,2}[/-][^\[\]#]{0,40}#[^\[\]]{0,40}\]")


@dataclass(frozen=True)
class Receipt:
    """Where an entry comes from: the slice path and the turn."""

    path: str
    turn_id: str

    def __str__(self) -> str:
        return f"[{self.path}#{self.turn_id}]"


@dataclass(frozen=True, kw_only=True)
class CardEntry:
    """One entry: its words without the receipts at their end, and its lines in the file, counted from 1.

    `item` is False for a line of text that is no list item.
    """

    text: str
    receipts: tuple[Receipt, ...] = ()
    line: int
    last_line: int
    item: bool = True


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section as it stands, its heading's line counted from 1. The name is empty for what stands above the first."""

    name: str
    entries: tuple[CardEntry, ...] = ()
    line: int


@dataclass(frozen=True, kw_only=True)
class Card:
    """The card as read. `updated` and `slice` (an id) are None and empty when missing or unreadable."""

    updated: datetime | None
    slice: str
    title: str
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section | None:
        """Return the section of that name, the first if the file has it twice."""
        return next((section for section in self.sections if section.name == name), None)


def empty_card(name: str, updated: str) -> str:
    """Return the card a folder begins with: headings only, English in every language; `updated` is a stamp."""
    called = plain_line(name)[:NAME_CHARACTERS].rstrip()
    headings = "".join(f"\n## {section}\n" for section in SECTIONS)
    title = f"# Previously on {called}" if called else "# Previously"
    return f"{frontmatter.render({'updated': updated})}{title}\n{headings}"


def render_entry(text: str, receipts: Iterable[Receipt] = ()) -> str:
    """Return an entry as its line in the card, without the line break: `- text — [receipt] [receipt]`."""
    proof = " ".join(map(str, receipts))
    return f"- {plain_line(text)} — {proof}" if proof else f"- {plain_line(text)}"


def entry_words(line: str) -> str:
    """Return the words of an entry given as its line: the list mark and the receipts are taken off."""
    item = _ITEM.match(line)
    return _split_receipts((line[item.end() :] if item else line).strip())[0]


def names_receipt(text: str) -> bool:
    """Whether the text holds anything that reads, or was meant to read, as a receipt."""
    return _LIKE_RECEIPT.search(text) is not None or _RECEIPT.search(text) is not None


def parse_card(text: str | bytes) -> Card:
    """Read a card. Raises Damaged for bytes that are no UTF-8 and for front matter that cannot be parsed."""
    try:
        whole = text if isinstance(text, str) else text.decode("utf-8")
        source, _ = frontmatter.split(whole)
        fields = frontmatter.parse(source).fields if source is not None else {}
    except UnicodeDecodeError as error:
        raise Damaged(CARD, "it is not UTF-8") from error
    except FrontMatterError as error:
        raise Damaged(CARD, error.why) from error
    title, sections = _read_body(whole)
    return Card(
        updated=_instant(fields.get("updated")), slice=_slice(fields.get("slice")), title=title, sections=sections
    )


def problems(text: str) -> list[str]:
    """Return what is wrong with a card's shape, as `code:line` with a code of PROBLEMS, in the order of the lines."""
    found = [*_front_matter_problems(text)]
    title, sections = _read_body(text)
    if not title:
        found.append((1, "no-title"))
    seen: Counter[str] = Counter()
    for section in sections:
        seen[section.name] += 1
        found += _section_problems(section, twice=seen[section.name] > 1)
    return [f"{code}:{line}" for line, code in sorted(found)]


def _front_matter_problems(text: str) -> Iterator[tuple[int, str]]:
    source, _ = frontmatter.split(text)
    if source is None:
        yield 1, "no-front-matter"
        return
    try:
        fields = frontmatter.parse(source).fields
    except FrontMatterError:
        yield 1, "bad-front-matter"
        return
    if _instant(fields.get("updated")) is None:
        yield 1, "bad-updated"
    if "slice" in fields and not _slice(fields["slice"]):
        yield 1, "bad-slice"


def _section_problems(section: Section, *, twice: bool) -> Iterator[tuple[int, str]]:
    if not section.name:
        yield section.entries[0].line, "outside-section"
        return
    if section.name not in SECTIONS:
        yield section.line, "unknown-section"
    elif twice:
        yield section.line, "section-twice"
    most = SECTIONS.get(section.name, len(section.entries))
    for number, entry in enumerate(section.entries, start=1):
        if number == most + 1:
            yield entry.line, "too-many-entries"
        if not entry.item:
            yield entry.line, "not-an-entry"
        if not entry.text:
            yield entry.line, "empty-entry"
        if len(entry.text) > ENTRY_CHARACTERS:
            yield entry.line, "entry-too-long"
        if any(_receipt(match[0]) is None for match in _LIKE_RECEIPT.finditer(entry.text)):
            yield entry.line, "bad-receipt"


def _read_body(text: str) -> tuple[str, tuple[Section, ...]]:
    """Return the title and the sections of a whole card, whatever it holds; line numbers are the file's."""
    whole = frontmatter.normalised(text)
    _, body = frontmatter.split(whole)
    first = whole[: len(whole) - len(body)].count("\n") + 1
    title = ""
    headings = [("", first)]
    drafts: list[list[_Draft]] = [[]]
    for number, line in enumerate(map(str.rstrip, body.split("\n")), start=first):
        under = drafts[-1]
        if heading := _SECTION.fullmatch(line):
            headings.append((heading[1].rstrip("# "), number))
            drafts.append([])
        elif not title and (named := _TITLE.fullmatch(line)):
            title = named[1]
        elif item := _ITEM.match(line):
            under.append(_Draft(number, [line[item.end() :]]))
        elif line[:1].isspace() and under and under[-1].line + len(under[-1].lines) == number:
            under[-1].lines.append(line.strip())
        elif line:
            under.append(_Draft(number, [line.strip()], item=False))
    sections = (
        Section(name=name, line=line, entries=tuple(map(_entry, under)))
        for (name, line), under in zip(headings, drafts, strict=True)
    )
    return title, tuple(section for section in sections if section.name or section.entries)


@dataclass(frozen=True)
class _Draft:
    line: int
    lines: list[str]
    item: bool = True


def _entry(draft: _Draft) -> CardEntry:
    words, receipts = _split_receipts(" ".join(draft.lines))
    last_line = draft.line + len(draft.lines) - 1
    return CardEntry(text=words, receipts=receipts, line=draft.line, last_line=last_line, item=draft.item)


def _split_receipts(text: str) -> tuple[str, tuple[Receipt, ...]]:
    """Take the receipts off the end of an entry, with the dash before them."""
    receipts: list[Receipt] = []
    end = len(text)
    while text.endswith("]", 0, end) and (begin := text.rfind("[", 0, end)) >= 0:
        receipt = _receipt(text[begin:end])
        if receipt is None:
            break
        receipts.append(receipt)
        end = begin
        while end and text[end - 1] in " ,;\t":
            end -= 1
    if not receipts:
        return text, ()
    return text[:end].removesuffix("—").removesuffix("–").rstrip(), tuple(reversed(receipts))


def _receipt(text: str) -> Receipt | None:
    match = _RECEIPT.fullmatch(text)
    try:
        return Receipt(path_of(parse_slice_path(match[1])), parse_turn_id(match[2])) if match else None
    except BadId:
        return None


def _instant(value: frontmatter.Value | None) -> datetime | None:
    try:
        return parse_stamp(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _slice(value: frontmatter.Value | None) -> str:
    try:
        return parse_slice_id(value) if isinstance(value, str) else ""
    except BadId:
        return ""
