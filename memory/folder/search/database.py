"""The SQLite file of one person's index: its tables, and one document in or out at a time.

`slices` holds the documents, by minute; `words` is the FTS5 index over their tokens and `letters` the one over their
characters, both without a copy of the text. `terms` counts, for each token, the slices and the entries that have it.
Everything in it can be made anew from the folder.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory.folder.search import tokens
from memory.folder.search.document import Document, term_counts

VERSION = f"1.{tokens.VERSION}"
"""Of the tables and of the tokeniser: a file of another version is made anew."""

BUSY_SECONDS = 5.0

# The ascii tokeniser takes every character above 127 for part of a word, so it only splits where we put spaces.
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE slices (
    minute INTEGER PRIMARY KEY, day INTEGER NOT NULL, length INTEGER NOT NULL, loose INTEGER NOT NULL,
    digest BLOB NOT NULL, roles TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, characters TEXT NOT NULL
);
CREATE INDEX days ON slices (day, minute);
CREATE INDEX loose_slices ON slices (minute) WHERE loose;
CREATE TABLE entries (minute INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE terms (term TEXT PRIMARY KEY, slices INTEGER NOT NULL, entries INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    title, body, content='slices', content_rowid='minute', tokenize='ascii'
);
CREATE VIRTUAL TABLE letters USING fts5 (
    characters, content='slices', content_rowid='minute', tokenize='ascii', detail='none'
);
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(2.0, 1.0)');
"""


class Unusable(Exception):
    """The file is missing, of another version, or damaged: it has to be made anew."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """How much there is: slices and their tokens, entries and their tokens, and how many entries are the person's."""

    slices: int = 0
    slice_tokens: int = 0
    entries: int = 0
    entry_tokens: int = 0
    person_entries: int = 0

    def plus(self, other: "Totals", sign: int = 1) -> "Totals":
        """With the other's added, or taken away by the sign -1."""
        return Totals(**{name: value + sign * getattr(other, name) for name, value in vars(self).items()})


def create(file: Path) -> sqlite3.Connection:
    """Make a new file, to be filled and then renamed into place: a crash may leave anything, since nobody reads it."""
    database = sqlite3.connect(file, isolation_level=None)
    database.executescript("PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA)
    set_meta(database, version=VERSION, commit=None)
    save_totals(database, Totals())
    return database


def open_(file: Path) -> sqlite3.Connection:
    """Open the file; raises Unusable when it is missing or of another version, sqlite3.DatabaseError when damaged.

    It is kept with a rollback journal, not a write-ahead log: a file that is replaced by renaming must not leave a
    log behind that would be taken for its successor's.
    """
    try:
        database = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BUSY_SECONDS
        )
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN:
            raise Unusable("there is no index") from error
        raise
    try:
        database.executescript("PRAGMA mmap_size=1073741824; PRAGMA synchronous=NORMAL;")
        if meta(database).get("version") != VERSION:
            raise Unusable("the index is of another version")
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing of what is written inside."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def meta(database: sqlite3.Connection) -> dict[str, str | int | None]:
    """What the file says about itself: version, commit, and the totals by name."""
    return dict(database.execute("SELECT key, value FROM meta"))


def set_meta(database: sqlite3.Connection, **values: str | int | None) -> None:
    """Change what the file says about itself."""
    database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def totals(database: sqlite3.Connection) -> Totals:
    """How much there is."""
    found = meta(database)
    return Totals(**{name: int(found[name] or 0) for name in Totals.__dataclass_fields__})


def save_totals(database: sqlite3.Connection, changed: Totals) -> None:
    """Keep how much there is now."""
    set_meta(database, **vars(changed))


def put(database: sqlite3.Connection, minute: int, document: Document | None, *, loose: bool = False) -> None:
    """Make `document` (None: nothing) what the file holds of the slice of that minute; inside a transaction.

    `loose` says that git may not have it yet: the slice is compared with the disk again next time.
    """
    select = "SELECT digest, title, body, characters, roles FROM slices WHERE minute = ?"
    before = database.execute(select, (minute,)).fetchone()
    if before and document and before[0] == document.digest:
        database.execute("UPDATE slices SET loose = ? WHERE minute = ? AND loose <> ?", (loose, minute, loose))
        return
    old = new = Totals()
    changes = dict[str, tuple[int, int]]()
    if before:
        _, title, body, characters, roles = before
        # The word index keeps no copy of the text, so it has to be told what it is to forget.
        delete = "INSERT INTO words (words, rowid, title, body) VALUES ('delete', ?, ?, ?)"
        database.execute(delete, (minute, title, body))
        if characters:
            delete = "INSERT INTO letters (letters, rowid, characters) VALUES ('delete', ?, ?)"
            database.execute(delete, (minute, characters))
        database.execute("DELETE FROM slices WHERE minute = ?", (minute,))
        database.execute("DELETE FROM entries WHERE minute = ?", (minute,))
        old = _totals_of(title, body, roles)
        changes = {term: (-1, -entries) for term, entries in term_counts(title, body).items()}
    if document:
        insert(database, document, loose=loose)
        new = totals_of(document)
        for term, entries in term_counts(document.title, document.body).items():
            less = changes.get(term, (0, 0))
            changes[term] = (less[0] + 1, less[1] + entries)
    add_terms(database, {term: change for term, change in changes.items() if change != (0, 0)})
    save_totals(database, totals(database).plus(old, -1).plus(new))


def insert(database: sqlite3.Connection, document: Document, *, loose: bool) -> None:
    """Add a document that is not there yet; terms and totals are the caller's."""
    database.execute(
        "INSERT INTO slices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.minute,
            document.day,
            document.length,
            loose,
            document.digest,
            document.roles,
            document.title,
            document.body,
            document.characters,
        ),
    )
    database.execute("INSERT INTO entries VALUES (?, ?)", (document.minute, document.entries))
    database.execute(
        "INSERT INTO words (rowid, title, body) VALUES (?, ?, ?)", (document.minute, document.title, document.body)
    )
    if document.characters:
        database.execute(
            "INSERT INTO letters (rowid, characters) VALUES (?, ?)", (document.minute, document.characters)
        )


def add_terms(database: sqlite3.Connection, changes: Mapping[str, tuple[int, int]]) -> None:
    """Count (slices, entries) more or fewer for each of these tokens; one that is in no slice any more goes."""
    database.executemany(
        "INSERT INTO terms VALUES (?, ?, ?) ON CONFLICT (term) DO UPDATE SET"
        " slices = slices + excluded.slices, entries = entries + excluded.entries",
        ((term, slices, entries) for term, (slices, entries) in sorted(changes.items())),
    )
    gone = [(term,) for term, (slices, _) in changes.items() if slices < 0]
    database.executemany("DELETE FROM terms WHERE term = ? AND slices = 0", gone)


def loose_minutes(database: sqlite3.Connection) -> list[int]:
    """The slices that git may not have had yet when they were indexed."""
    return [minute for (minute,) in database.execute("SELECT minute FROM slices WHERE loose")]


def totals_of(document: Document) -> Totals:
    """What one document adds to the totals."""
    return _totals_of(document.title, document.body, document.roles)


def _totals_of(title: str, body: str, roles: str) -> Totals:
    length = len(body.split())
    return Totals(
        slices=1,
        slice_tokens=length + len(title.split()),
        entries=len(roles),
        entry_tokens=length,
        person_entries=roles.count("u"),
    )
