"""The card changed by its owner: edited as Markdown, or put back to an earlier version. The worker commits it later.

Whoever edits says which bytes they had before them. When the card has changed since (another tab, a close pass under
way) nothing is written, and the caller shows both. What the person writes needs no receipts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memory.conversation.person import Person
from memory.folder import frontmatter
from memory.folder.card import empty_card, parse_card, problems
from memory.folder.card_edits import stamped
from memory.folder.clock import stamp
from memory.folder.errors import Damaged
from memory.folder.git import blob_id
from memory.folder.paths import CARD
from memory.folder.store import MemoryFolder, Moved, Write
from memory.folder.touched import CARD_OWNER
from memory.folder.turns import clean

CARD_CHARACTERS = 50_000
"""How long a card may be as a whole: twice what its sections can hold."""


@dataclass(frozen=True)
class Written:
    """The card is on disk and waits for its commit."""


@dataclass(frozen=True)
class Unchanged:
    """The card says so already."""


@dataclass(frozen=True)
class Overtaken:
    """The card has changed since: nothing was written. `current` are its bytes, None when the file is gone."""

    current: bytes | None


@dataclass(frozen=True)
class Problem:
    """What is wrong with the shape: a code of `card.PROBLEMS`, the line of the text as typed, and that line."""

    code: str
    line: int
    words: str


@dataclass(frozen=True)
class Misshapen:
    """The text is no card, and was not written."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class TooLong:
    """The text has so many characters too many, and was not written."""

    over: int


def version_of(data: bytes | None) -> str:
    """What names the bytes of a card to a form: their blob id, '' when there is no card."""
    return "" if data is None else blob_id(data)


def editable(card_text: str) -> str:
    """What of a card its owner edits: all but the front matter; all of it while the front matter cannot be read."""
    try:
        parse_card(card_text)
    except Damaged:
        return card_text
    return frontmatter.split(card_text)[1]


def blank(person: Person) -> str:
    """What the owner edits while there is no card."""
    return editable(empty_card(person.name, ""))


def check(typed: str) -> tuple[Problem, ...]:
    """What is wrong with a card as typed, with or without its front matter, in the order of the lines."""
    text = _lines(typed)
    own = _has_front_matter(text)
    head = "" if own else _header("", stamp_text="2000-01-01T00:00:00.000Z")
    before = head.count("\n")
    lines = text.split("\n")
    found = []
    for problem in problems(head + text):
        code, _, number = problem.rpartition(":")
        line = max(int(number) - before, 1)
        if code != "bad-updated":  # it is made anew in any case
            found.append(Problem(code, line, lines[line - 1].strip()))
    return tuple(found)


def save_card(
    folder: MemoryFolder, typed: str, *, made_from: str, person: Person, now: datetime
) -> Written | Unchanged | Overtaken | Misshapen | TooLong:
    """Write the card as its owner typed it; makes the folder if there is none. `made_from` is what `version_of` gave.

    Front matter that was not typed is kept from the card as it stands; `updated` is always made new. Raises
    LockTimeout, Outside, and OSError when the disk does not take it.
    """
    text = _lines(typed)
    if (over := len(text) - CARD_CHARACTERS) > 0:
        return TooLong(over)
    if wrong := check(text):
        return Misshapen(wrong)

    def new(current: bytes | None) -> bytes:
        there = (current or b"").decode("utf-8", "replace")
        if current is not None and text in (there, editable(there)):
            return current
        if _has_front_matter(text):
            return stamped(text, at=now).encode()
        return (_header(there, stamp_text=stamp(now)) + text).encode()

    return _write(folder, new, made_from=made_from, person=person, now=now)


def restore_card(
    folder: MemoryFolder, version: bytes, *, made_from: str, person: Person, now: datetime
) -> Written | Unchanged | Overtaken:
    """Write the bytes of an earlier version as a new edit; raises as `save_card` does."""
    return _write(folder, lambda _: version, made_from=made_from, person=person, now=now)


def _write(
    folder: MemoryFolder,
    new: Callable[[bytes | None], bytes],
    *,
    made_from: str,
    person: Person,
    now: datetime,
) -> Written | Unchanged | Overtaken:
    folder.state.mark_pending()
    with folder.files_lock():
        current = folder.read(CARD)
        data = new(current)
        if data == current:
            return Unchanged()
        if version_of(current) != made_from:
            return Overtaken(current)
        # A close pass may have changed the card and not be through yet: what it wrote stays a version of its own.
        folder.keep_uncommitted(CARD)
        folder.create(name=person.name, now=now, owner=CARD_OWNER)
        try:
            folder.apply([Write(path=CARD, found=folder.read(CARD), data=data)], owner=CARD_OWNER)
        except Moved:
            return Overtaken(folder.read(CARD))  # an editor saved the file at this very moment
    return Written()


def _lines(typed: str) -> str:
    """The text with LF line ends, the last line closed."""
    text = clean(typed)
    return text if not text or text.endswith("\n") else f"{text}\n"


def _has_front_matter(text: str) -> bool:
    return text.split("\n", 1)[0].rstrip() == "---"


def _header(card_text: str, *, stamp_text: str) -> str:
    """Front matter for a body: the other keys of the card as it stands, as far as they can be read."""
    try:
        card = parse_card(card_text)
    except Damaged:
        return frontmatter.render({"updated": stamp_text})
    kept = frontmatter.parse(frontmatter.split(card_text)[0] or "", ("updated", "slice")).extra
    return frontmatter.render({"updated": stamp_text, "slice": card.slice}, kept)
