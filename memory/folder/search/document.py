"""What the index keeps of one slice: its tokens, line by line, and its entries as they were written."""

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory.folder.clock import local_day, parse_stamp, stamp
from memory.folder.marks import is_floor_summary
from memory.folder.paths import minute_of, slice_id_at
from memory.folder.search import tokens
from memory.folder.slices import Slice
from memory.folder.turns import Entry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Document:
    """One slice as the index keeps it.

    `minute` is the slice id as a number, minutes since 1970; `day` the ordinal of its local day, by the slice's own
    time zone. `title` has the tokens of its marks, `body` a line of tokens an entry; a space stands before and after
    each token. `roles` has a letter an entry, u or a. `characters` are those of unspaced scripts, each once. `digest`
    is the same for documents that are the same.
    """

    minute: int
    day: int
    title: str
    body: str
    roles: str
    characters: str
    entries: bytes
    digest: bytes

    @property
    def length(self) -> int:
        """The number of tokens in title and body."""
        return len(self.title.split()) + len(self.body.split())


def document(slice_: Slice) -> Document:
    """Return what the index keeps of a slice. A summary that only counts the turns says nothing and is left out."""
    summary = "" if is_floor_summary(slice_.summary) else slice_.summary
    marks = (slice_.focus, summary, *slice_.tags, *slice_.open_loops, *slice_.decisions)
    titles = [tokens.terms_and_characters(mark) for mark in marks]
    lines = [tokens.terms_and_characters(entry.content) for entry in slice_.entries]
    rows = [[entry.turn_id, stamp(entry.at), entry.role, entry.content] for entry in slice_.entries]
    day = local_day(slice_.start, slice_.timezone).toordinal()
    packed = json.dumps(rows, ensure_ascii=False).encode()
    return Document(
        minute=minute_number(slice_.slice_id),
        day=day,
        title=line(term for terms, _ in titles for term in terms),
        body="\n".join(line(terms) for terms, _ in lines),
        roles="".join(entry.role[0] for entry in slice_.entries),
        characters=" ".join(sorted(set().union(*(characters for _, characters in (*titles, *lines))))),
        entries=zlib.compress(packed, 1),
        digest=hashlib.blake2b(json.dumps([day, *marks]).encode() + packed, digest_size=16).digest(),
    )


def line(terms: Iterable[str]) -> str:
    """Return tokens with a space before and after each."""
    return " ".join(("", *terms, ""))


def entries_of(packed: bytes) -> tuple[Entry, ...]:
    """Return the entries of a document."""
    rows = json.loads(zlib.decompress(packed))
    return tuple(Entry(turn_id, parse_stamp(at), role, content) for turn_id, at, role, content in rows)


def term_counts(title: str, body: str) -> Counter[str]:
    """Return each token of a document with the number of entries that have it; 0 for those of the title alone."""
    counts: Counter[str] = Counter(dict.fromkeys(title.split(), 0))
    for entry in body.split("\n"):
        counts.update(set(entry.split()))
    return counts


def minute_number(slice_id: str) -> int:
    """Return a slice id as minutes since 1970; raises BadId."""
    return (minute_of(slice_id) - _EPOCH) // _MINUTE


def slice_id_of(minute: int) -> str:
    """Return the slice id that the number stands for."""
    return slice_id_at(_EPOCH + minute * _MINUTE)
