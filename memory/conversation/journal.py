"""The reply when no model is configured: what in the person's own record is closest to what they wrote.

The search index says what is close; while there is none, strands that the text names and words that it shares do.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from memory.folder import marks
from memory.folder.errors import BadId, Damaged, FolderError, LockTimeout, NotThere
from memory.folder.paths import id_of, path_of
from memory.folder.search import Hit, NoIndex, SearchIndex, tokens
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry

from . import anchors, indexing
from .person import Person
from .phrases import phrases
from .quoting import quoted_line

SHOWN = 3
LOOKED_AT = 30
SHARED_WORDS = 2
FOCUS_CHARS = 120
QUOTE_CHARS = 200

# Words long enough to mean something; runs of Han, kana or hangul as overlapping pairs, split at function characters.
_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{5,}")
_RUN = re.compile("(?:(?![的了是在有我你他她它们这那就也都和吗呢吧啊很不])[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])+")

# Whatever may begin markup anywhere in a line, and what may only at its beginning.
_MARKUP = re.compile(r"[\\`*_\[\]<>&~|!$:@]")
_OPENING = re.compile(r"^(?:\d{1,9}(?=[.)])|(?=[#+=-]))")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A place in the record that is close to some text; `quote` is a line of what the person said there."""

    slice_id: str
    turn_id: str
    at: datetime
    timezone: str
    focus: str
    quote: str


def moments(folder: MemoryFolder, text: str, *, person: Person, now: datetime) -> list[Moment]:
    """The closest moments of the record, at most three, the closest first; found without a model.

    A moment is something that the person said in a slice that has closed. The text itself, which is on record already,
    is none.
    """
    indexing.caught_up(folder)
    try:
        return _searched(folder, text, person, now)
    except (NoIndex, LockTimeout):
        return _named_or_shared(folder, text)


def _searched(folder: MemoryFolder, text: str, person: Person, now: datetime) -> list[Moment]:
    """By the index, a moment a slice: of the closest places those that have two of the text's words, or half of fewer.

    Words of the slice's focus and tags count: a strand that the text names is among them.
    """
    wanted = set(tokens.terms(text))
    enough = min(SHARED_WORDS, (len(wanted) + 1) // 2)
    current = [slice_.slice_id for slice_ in folder.newest(LOOKED_AT) if isinstance(slice_, Slice) and slice_.active]
    hits = SearchIndex(folder.index_file).search(
        text,
        now=now,
        timezone=person.timezone,
        person=person.name,
        limit=LOOKED_AT,
        unit="turn",
        exclude=current,
    )
    found: dict[str, Moment] = {}
    for hit in hits:
        if hit.slice_id in found or hit.turns[0].role != "user":
            continue
        slice_, entry = _entry(folder, hit)
        if slice_ is None or entry is None or entry.content == text:
            continue
        about = "\n".join((entry.content, slice_.focus, *slice_.tags))
        if len(wanted.intersection(tokens.terms(about))) < enough:
            continue
        found[hit.slice_id] = _moment(slice_, entry, hit.turns[0].snippet.text)
        if len(found) == SHOWN:
            break
    return list(found.values())


def _entry(folder: MemoryFolder, hit: Hit) -> tuple[Slice | None, Entry | None]:
    try:
        slice_ = folder.slice(hit.slice_id)
    except (NotThere, Damaged):
        return None, None
    return slice_, slice_.entry(hit.turns[0].turn_id, "user")


def _named_or_shared(folder: MemoryFolder, text: str) -> list[Moment]:
    """Without an index: closed slices on the strands that the text names, those on most of them first, then the newest;
    after them newer slices where the person used at least two of the text's longer words."""
    words = _words(text)
    found: dict[str, Moment] = {}
    for slice_, named in _candidates(folder, text):
        entries = [entry for entry in slice_.person_entries if entry.content.strip() and entry.content != text]
        if slice_.active or not entries or slice_.slice_id in found:
            continue
        shared, best = max(((len(words & _words(entry.content)), entry) for entry in entries), key=lambda pair: pair[0])
        if not named and shared < SHARED_WORDS:
            continue
        found[slice_.slice_id] = _moment(slice_, best, best.content.strip().splitlines()[0])
        if len(found) == SHOWN:
            break
    return list(found.values())


def _moment(slice_: Slice, entry: Entry, quote: str) -> Moment:
    return Moment(
        slice_id=slice_.slice_id,
        turn_id=entry.turn_id,
        at=entry.at,
        timezone=slice_.timezone,
        focus=quoted_line(slice_.focus, FOCUS_CHARS),
        quote=quoted_line(quote, QUOTE_CHARS),
    )


def journal_reply(folder: MemoryFolder, text: str, *, person: Person, now: datetime) -> str:
    """The reply to `text` as Markdown: that there is no model and the words are kept, then the closest moments."""
    words = phrases(person.language)
    close = moments(folder, text, person=person, now=now)
    if not close:
        return f"{words.journal}\n\n{words.journal_nothing}"
    return "\n\n".join((words.journal, words.journal_moments, *(_told(moment, person, now) for moment in close)))


def escaped(line: str) -> str:
    """One line of text so that Markdown shows it exactly as it is: no link, emphasis, heading or list comes of it."""
    return _OPENING.sub(r"\g<0>\\", _MARKUP.sub(r"\\\g<0>", line))


def _told(moment: Moment, person: Person, now: datetime) -> str:
    day = anchors.full_time(moment.at, moment.timezone, person.language)
    ago = anchors.days_ago(anchors.days_between(moment.at, now, moment.timezone), person.language)
    link = f"[{day}](/slices/{path_of(moment.slice_id)}/#{moment.turn_id})"
    about = f" · {escaped(moment.focus)}" if moment.focus else ""
    return f"{link} · {ago}{about}\n\n> {escaped(moment.quote)}"


def _candidates(folder: MemoryFolder, text: str) -> Iterator[tuple[Slice, bool]]:
    """Slices to look at, in order of preference, each with whether the text names a strand of it."""
    for slice_id in islice(_named(folder, text), LOOKED_AT):
        try:
            yield folder.slice(slice_id), True
        except (NotThere, Damaged):
            continue
    for slice_ in folder.newest(LOOKED_AT):
        if isinstance(slice_, Slice):
            yield slice_, False


def _named(folder: MemoryFolder, text: str) -> Iterator[str]:
    """The slices on strands that the text names: those on most of them first, then the newest."""
    try:
        strands = folder.strands()
    except FolderError:
        return
    times = Counter(path for tag in marks.floor_tags(text, strands) for path in strands.get(tag, ()))
    for path in sorted(times, key=lambda path: (times[path], path), reverse=True):
        try:
            yield id_of(path)
        except BadId:
            continue


def _words(text: str) -> set[str]:
    runs = _RUN.findall(text)
    return set(_WORD.findall(text.casefold())) | {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
