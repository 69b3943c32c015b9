"""Bringing an index up to its folder: slice by slice as git says they changed, or made anew beside the old file."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memory.folder.errors import Damaged, HeadBusy, NotThere
from memory.folder.paths import core_file, newest_slice_ids, slice_ids, slice_of_file
from memory.folder.search import database as db
from memory.folder.search.document import Document, document, minute_number, slice_id_of, term_counts
from memory.folder.store import MemoryFolder

Progress = Callable[[int, int], None]
"""Told now and then how many slices are done, and of how many."""

NEWEST = 3
"""So many newest slices are looked at on disk each time, whatever git says."""

A_REPORT = 100


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What an index has yet to learn: slices to be read again, and the commit it reflects then.

    `loose` are those that git may not have as they are on disk; they are looked at again next time.
    """

    commit: str | None
    again: tuple[int, ...]
    loose: frozenset[int]


def behind(folder: MemoryFolder, reflected: str | None, loose: Collection[int]) -> Behind | None:
    """Return what an index that reflects a commit has yet to learn; None when it cannot be said and it is made anew.

    While HEAD names no branch the index goes on from the commit it has. Slices with uncommitted writes of ours and the
    newest ones are always read again, and so are those that were uncommitted the last time.
    """
    uncommitted = _uncommitted(folder)
    again = {*uncommitted, *loose}
    head = _head(folder, reflected)
    if head != reflected:
        if reflected is None or head is None or not folder.repository.is_ancestor(reflected, head):
            return None
        again |= _minutes(folder.repository.changed(reflected, head))
    return Behind(commit=head, again=tuple(sorted(again)), loose=frozenset(uncommitted))


def read(folder: MemoryFolder, minute: int) -> Document | None:
    """Return the document of a slice as it is on disk; None when there is no such slice or it cannot be read."""
    try:
        return document(folder.slice(slice_id_of(minute)))
    except (NotThere, Damaged):
        return None


def build(folder: MemoryFolder, file: Path, *, progress: Progress | None) -> None:
    """Fill a new file with every slice of the folder as it is on disk."""
    head = _head(folder, None)
    loose = frozenset(_uncommitted(folder))
    fill(file, _documents(folder, progress), commit=head, loose=loose)


def fill(file: Path, documents: Iterable[Document], *, commit: str | None, loose: Collection[int]) -> None:
    """Fill a new file with these documents, each slice once."""
    slices: Counter[str] = Counter()
    entries: Counter[str] = Counter()
    counts = db.Totals()
    with closing(db.create(file)) as database, db.transaction(database):
        for found in documents:
            db.insert(database, found, loose=found.minute in loose)
            terms = term_counts(found.title, found.body)
            slices.update(terms.keys())
            entries.update(terms)
            counts = counts.plus(db.totals_of(found))
        db.add_terms(database, {term: (count, entries[term]) for term, count in slices.items()})
        db.save_totals(database, counts)
        db.set_meta(database, commit=commit)
        database.execute("INSERT INTO words (words) VALUES ('optimize')")


def _documents(folder: MemoryFolder, progress: Progress | None) -> Iterator[Document]:
    ids = list(slice_ids(folder.root))
    for done, slice_id in enumerate(ids):
        if progress and done % A_REPORT == 0:
            progress(done, len(ids))
        found = read(folder, minute_number(slice_id))
        if found:
            yield found
    if progress:
        progress(len(ids), len(ids))


def _head(folder: MemoryFolder, otherwise: str | None) -> str | None:
    try:
        return folder.repository.head()
    except (HeadBusy, NotThere):
        return otherwise


def _uncommitted(folder: MemoryFolder) -> set[int]:
    newest = {minute_number(slice_id) for slice_id in newest_slice_ids(folder.root, NEWEST)}
    return newest | _minutes(folder.state.touched())


def _minutes(files: Collection[str]) -> set[int]:
    """The slices whose core.md is among the files."""
    found = ((slice_of_file(file), file) for file in files)
    return {minute_number(slice_id) for slice_id, file in found if slice_id and file == core_file(slice_id)}
