"""From a question to the slices that may answer it: a few dozen, found by words, characters and dates."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from memory.folder.search import dates, tokens
from memory.folder.search.database import Totals
from memory.folder.search.document import minute_number
from memory.folder.search.scoring import Asked, Candidate

COMMON_SHARE, COMMON_SLICES = 0.08, 1000
"""A token in more than this share of the slices and in more than so many is common: it tells little of a slice."""

ALWAYS, NEWEST = 2, 2000
"""Yet the question's rarest so many bring candidates, where those that are not common bring too few: the best of the
newest so many slices that have them."""

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
    """What was asked, as the index knows it: its tokens, or its characters when it has none, and the days it names.

    `name` are the tokens of the person's name.
    """

    terms: tuple[str, ...]
    characters: tuple[str, ...]
    windows: tuple[dates.Window, ...]
    name: frozenset[str]


def question(text: str, *, today: date, person: str) -> Question:
    """Read a question. Characters of unspaced scripts are asked for one by one only when there is no other token."""
    terms, letters = tokens.terms_and_characters(text)
    return Question(
        terms=() if letters.issuperset(terms) else tuple(dict.fromkeys(terms)),
        characters=tuple(sorted(letters)) if letters.issuperset(terms) else (),
        windows=dates.windows(text, today),
        name=frozenset(tokens.terms(person)),
    )


def asked(database: sqlite3.Connection, question: Question, totals: Totals) -> list[Asked]:
    """Return those of the question's tokens that the index has, rarest first."""
    found = []
    for term in question.terms:
        row = database.execute("SELECT slices, entries FROM terms WHERE term = ?", (term,)).fetchone()
        if term in question.name:
            found.append(Asked(term, totals.slices, totals.person_entries, is_name=True))
        elif row:
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
    telling, common = _telling(known, totals)
    minutes = dict.fromkeys(scope.matching(question, telling, common, limit=BY_WORDS))
    for window in question.windows:
        inside = _Scope(database, _within(only, window))
        minutes |= dict.fromkeys(inside.matching(question, telling, common, limit=IN_WINDOW))
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


_Order = Literal["words", "newest", "letters"]
_FIRST, _LAST = -(2**62), 2**62

# The plus keeps SQLite from asking the word index once for each minute of a list.
_FOUND: dict[_Order, str] = {
    "words": """
        SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?
        AND (? IS NULL OR +rowid IN (SELECT value FROM json_each(?)))
        AND +rowid NOT IN (SELECT value FROM json_each(?)) ORDER BY rank LIMIT ?""",
    "newest": """
        SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?
        AND (? IS NULL OR +rowid IN (SELECT value FROM json_each(?)))
        AND +rowid NOT IN (SELECT value FROM json_each(?)) ORDER BY rowid DESC LIMIT ?""",
    "letters": """
        SELECT rowid FROM letters WHERE letters MATCH ? AND rowid BETWEEN ? AND ?
        AND (? IS NULL OR +rowid IN (SELECT value FROM json_each(?)))
        AND +rowid NOT IN (SELECT value FROM json_each(?)) ORDER BY rowid DESC LIMIT ?""",
}
_OTHERS = """
    SELECT minute FROM slices WHERE minute BETWEEN ? AND ? AND (? IS NULL OR minute IN (SELECT value FROM json_each(?)))
    AND minute NOT IN (SELECT value FROM json_each(?)) ORDER BY minute LIMIT ?"""


def _telling(known: Sequence[Asked], totals: Totals) -> tuple[list[str], list[str]]:
    """The tokens that bring candidates, and the common ones, names last, that do where those bring too few."""
    most = max(COMMON_SHARE * totals.slices, COMMON_SLICES)
    telling = [one.term for one in known if one.slices <= most and not one.is_name]
    others = [one.term for one in known if one.slices > most or one.is_name]
    return telling[:MOST_TERMS], others[: max(ALWAYS - len(telling), 0)]


def _quoted(term: str) -> str:
    # Tokens have no quotation marks in them, nor anything else that is no letter, digit or mark.
    return f'"{term}"'


def _any(terms: Sequence[str]) -> str:
    return " OR ".join(map(_quoted, terms))


def _within(only: Only, window: dates.Window) -> Only:
    return Only(
        minutes=only.minutes,
        since=max(only.since or window.first, window.first),
        until=min(only.until or window.last, window.last),
        exclude=only.exclude,
    )


class _Scope:
    """The slices that may be found, as a condition on their minutes that holds before anything is ranked."""

    def __init__(self, database: sqlite3.Connection, only: Only) -> None:
        self.database = database
        self.range: tuple[int, int] = (_FIRST, _LAST)
        if only.since or only.until:
            first, last = database.execute(
                "SELECT min(minute), max(minute) FROM slices WHERE day BETWEEN ? AND ?",
                ((only.since or date.min).toordinal(), (only.until or date.max).toordinal()),
            ).fetchone()
            self.range = (1, 0) if first is None else (first, last)
        self.only = json.dumps(sorted(only.minutes)) if only.minutes is not None else None
        self.exclude = json.dumps(sorted(only.exclude))

    def matching(self, question: Question, telling: Sequence[str], common: Sequence[str], *, limit: int) -> list[int]:
        """The best by the index's own ranking; by characters, which it does not rank, the newest."""
        if question.characters:
            return self._find("letters", " AND ".join(map(_quoted, question.characters)), self.range, limit)
        found = self._find("words", _any(telling), self.range, limit) if telling else []
        if len(found) < limit and common:
            newest = self._find("newest", _any(common), self.range, NEWEST)
            if newest:
                among = (newest[-1], newest[0])
                found = list(dict.fromkeys((*found, *self._find("words", _any(common), among, limit))))[:limit]
        return found

    def others(self, minutes: Collection[int], *, limit: int) -> list[int]:
        """The first in time that are not among the minutes."""
        exclude = json.dumps(sorted({*minutes, *json.loads(self.exclude)}))
        return self._minutes(_OTHERS, *self.range, self.only, self.only, exclude, limit)

    def _find(self, order: _Order, match: str, among: tuple[int, int], limit: int) -> list[int]:
        return self._minutes(_FOUND[order], match, *among, self.only, self.only, self.exclude, limit)

    def _minutes(self, sql: str, *parameters: str | int | None) -> list[int]:
        return [minute for (minute,) in self.database.execute(sql, parameters)]


def minutes_of(slice_ids: Collection[str]) -> frozenset[int]:
    """Return slice ids as minutes; raises BadId."""
    return frozenset(map(minute_number, slice_ids))
