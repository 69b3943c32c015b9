"""From a question to the slices that may answer it: a few dozen, found by words, characters and dates."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date

from memory.folder.search import dates, tokens
from memory.folder.search.database import Totals
from memory.folder.search.document import minute_number
from memory.folder.search.scoring import Asked, Candidate

COMMON_SHARE, COMMON_SLICES = 0.08, 1000
"""A token in more than this share of the slices and in more than so many does not bring candidates."""

ALWAYS = 2
"""But the rarest so many do."""

MOST_TERMS = 10
MOST_SCORED = 32
BY_WORDS = 30
IN_WINDOW = 15
OTHERS_IN_WINDOW = 15


@dataclass(frozen=True, kw_only=True)
class Only:
    """Which slices may be found: those of these minutes (None: all) and local days, less the excluded."""

    minutes: frozenset[int] | None = None
    since: date | None = None
    until: date | None = None
    exclude: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was asked, as the index knows it: its tokens, or its characters when it has none, and the days it names."""

    terms: tuple[str, ...]
    characters: tuple[str, ...]
    windows: tuple[dates.Window, ...]


def question(text: str, *, today: date) -> Question:
    """Read a question. Characters of unspaced scripts are asked for one by one only when there is no other token."""
    found = dict.fromkeys(tokens.terms(text))
    letters = tokens.characters(text)
    if letters.issuperset(found):
        return Question(terms=(), characters=tuple(sorted(letters)), windows=dates.windows(text, today))
    return Question(terms=tuple(found), characters=(), windows=dates.windows(text, today))


def asked(database: sqlite3.Connection, terms: Sequence[str]) -> list[Asked]:
    """Return those of the tokens that the index has, rarest first."""
    found = []
    for term in terms:
        row = database.execute("SELECT slices, entries FROM terms WHERE term = ?", (term,)).fetchone()
        if row:
            found.append(Asked(term, *row))
    return sorted(found, key=lambda one: (one.slices, one.term))[:MOST_SCORED]


def candidates(
    database: sqlite3.Connection,
    question: Question,
    known: Sequence[Asked],
    totals: Totals,
    only: Only,
) -> list[Candidate]:
    """Return the slices worth scoring."""
    scope = _Scope(database, only)
    minutes: dict[int, None] = {}
    match = _match([one.term for one in _telling(known, totals)])
    if match:
        minutes |= dict.fromkeys(scope.best("words", match, limit=BY_WORDS))
    if question.characters:
        match = " AND ".join(f'"{character}"' for character in question.characters)
        minutes |= dict.fromkeys(scope.best("letters", match, limit=BY_WORDS))
    for window in question.windows:
        inside = _Scope(database, _within(only, window))
        if match:
            minutes |= dict.fromkeys(inside.best("letters" if question.characters else "words", match, limit=IN_WINDOW))
        minutes |= dict.fromkeys(inside.others(minutes, limit=OTHERS_IN_WINDOW))
    rows = [
        database.execute("SELECT day, length, title, body, roles FROM slices WHERE minute = ?", (minute,)).fetchone()
        for minute in minutes
    ]
    return [
        Candidate(minute, length, title, body, roles, dates.nearness(question.windows, date.fromordinal(day)))
        for minute, (day, length, title, body, roles) in zip(minutes, rows, strict=True)
        if only.since is None or day >= only.since.toordinal()
        if only.until is None or day <= only.until.toordinal()
    ]


def _telling(known: Sequence[Asked], totals: Totals) -> Sequence[Asked]:
    most = max(COMMON_SHARE * totals.slices, COMMON_SLICES)
    rare = [one for one in known if one.slices <= most]
    return (rare if len(rare) >= ALWAYS else known[:ALWAYS])[:MOST_TERMS]


def _match(terms: Sequence[str]) -> str:
    # Tokens have no quotation marks in them, nor anything else that is no letter, digit or mark.
    return " OR ".join(f'"{term}"' for term in terms)


def _within(only: Only, window: dates.Window) -> Only:
    return Only(
        minutes=only.minutes,
        since=max(only.since or window.first, window.first),
        until=min(only.until or window.last, window.last),
        exclude=only.exclude,
    )


class _Scope:
    """The slices that may be found, as a condition on their minutes that is looked at before anything is ranked."""

    def __init__(self, database: sqlite3.Connection, only: Only) -> None:
        self.database = database
        self.condition = ""
        self.parameters: list[int] = []
        if only.since or only.until:
            first, last = database.execute(
                "SELECT min(minute), max(minute) FROM slices WHERE day BETWEEN ? AND ?",
                ((only.since or date.min).toordinal(), (only.until or date.max).toordinal()),
            ).fetchone()
            self.condition += " AND {minute} BETWEEN ? AND ?"
            self.parameters += [1, 0] if first is None else [first, last]
        if only.minutes is not None:
            # The plus keeps SQLite from asking the word index once a minute.
            self.condition += f" AND +{{minute}} IN ({', '.join(map(str, sorted(only.minutes)))})"
        if only.exclude:
            self.condition += f" AND +{{minute}} NOT IN ({', '.join(map(str, sorted(only.exclude)))})"

    def best(self, table: str, match: str, *, limit: int) -> list[int]:
        """The best by the index's own ranking; of characters, which it does not rank, the newest."""
        order = "rank" if table == "words" else "rowid DESC"
        sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ?{self.condition.format(minute='rowid')} ORDER BY {order} LIMIT ?"
        return [minute for (minute,) in self.database.execute(sql, (match, *self.parameters, limit))]

    def others(self, minutes: Collection[int], *, limit: int) -> list[int]:
        """The first in time that are not among the minutes."""
        sql = f"SELECT minute FROM slices WHERE true{self.condition.format(minute='minute')} ORDER BY minute LIMIT ?"
        found = self.database.execute(sql, (*self.parameters, limit + len(minutes)))
        return [minute for (minute,) in found if minute not in minutes][:limit]


def minutes_of(slice_ids: Collection[str]) -> frozenset[int]:
    """Return slice ids as minutes; raises BadId."""
    return frozenset(map(minute_number, slice_ids))
