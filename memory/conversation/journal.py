"""The reply when no model is configured: what in the person's own record is closest to what they wrote."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from memory.folder import marks
from memory.folder.errors import BadId, Damaged, FolderError, NotThere
from memory.folder.paths import id_of, path_of
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder

from . import anchors
from .person import Person
from .phrases import phrases
from .record import quoted_line

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
    """A place in the record that is close to some text; `quote` is the first line of what the person said there."""

    slice_id: str
    turn_id: str
    at: datetime
    timezone: str
    focus: str
    quote: str


def moments(folder: MemoryFolder, text: str) -> list[Moment]:
    """The closest moments of the record, at most three, the closest first; found without a model.

    Closed slices on the strands that the text names come first, those on most of them and then the newest before
    others; after them newer slices where the person used at least two of the text's longer words. The text itself,
    which is on record already, is no moment.
    """
    words = _words(text)
    found: dict[str, Moment] = {}
    for slice_, named in _candidates(folder, text):
        entries = [entry for entry in slice_.person_entries if entry.content.strip() and entry.content != text]
        if slice_.active or not entries or slice_.slice_id in found:
            continue
        shared, best = max(((len(words & _words(entry.content)), entry) for entry in entries), key=lambda pair: pair[0])
        if not named and shared < SHARED_WORDS:
            continue
        found[slice_.slice_id] = Moment(
            slice_id=slice_.slice_id,
            turn_id=best.turn_id,
            at=best.at,
            timezone=slice_.timezone,
            focus=quoted_line(slice_.focus, FOCUS_CHARS),
            quote=quoted_line(best.content.strip().splitlines()[0], QUOTE_CHARS),
        )
        if len(found) == SHOWN:
            break
    return list(found.values())


def journal_reply(folder: MemoryFolder, text: str, *, person: Person, now: datetime) -> str:
    """The reply to `text` as Markdown: that there is no model and the words are kept, then the closest moments."""
    words = phrases(person.language)
    close = moments(folder, text)
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
