"""From scored candidates to what is shown: slices with their best entries, or entries."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from memory.folder.search.candidates import Only, Question, asked, candidates
from memory.folder.search.database import totals
from memory.folder.search.document import entries_of, line, slice_id_of
from memory.folder.search.scoring import Asked, EntryKey, Scored, scored
from memory.folder.search.snippets import Snippet, snippet
from memory.folder.search.tokens import character_tokens
from memory.folder.turns import Entry, Role

Unit = Literal["slice", "turn"]

ENTRIES_A_SLICE = 3


@dataclass(frozen=True, kw_only=True)
class TurnHit:
    """One entry of a hit: what it says where it matched, and its score, comparable within one answer only."""

    turn_id: str
    role: Role
    at: datetime
    snippet: Snippet
    score: float


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A slice that was found and its best entries, best first; none when only its marks or its day matched."""

    slice_id: str
    score: float
    turns: tuple[TurnHit, ...]


@dataclass(frozen=True)
class EntryRef:
    """Which entry, for a second scorer: as the record names it."""

    slice_id: str
    turn_id: str
    role: Role


SecondScorer = Callable[[Sequence[EntryRef]], Sequence[float]]
"""A second opinion on the entries of the candidates: 0 to 1 each, in the order given."""


def answer(
    database: sqlite3.Connection,
    question: Question,
    only: Only,
    *,
    unit: Unit,
    limit: int,
    second: SecondScorer | None,
) -> list[Hit]:
    """Find, score and show; inside one read transaction."""
    counts = totals(database)
    known = asked(database, question, counts)
    found = candidates(database, question, known, counts, only)
    shown = _Shown(database, question)
    if question.characters:
        known = [Asked(character, 1, 1) for character in question.characters]
        found = [replace(one, body=shown.characters(one.minute)) for one in found]
    ranked = scored(found, known, counts, second=_by_key(shown, second) if second else None)
    return _turns(shown, ranked, limit) if unit == "turn" else [shown.slice(one) for one in ranked[:limit]]


def _turns(shown: "_Shown", ranked: Sequence[Scored], limit: int) -> list[Hit]:
    places = [(-score, -one.minute, number) for one in ranked for number, score in enumerate(one.entries) if score > 0]
    return [
        Hit(slice_id=slice_id_of(-minute), score=-score, turns=(shown.turn(-minute, number, -score),))
        for score, minute, number in sorted(places)[:limit]
    ]


def _by_key(shown: "_Shown", second: SecondScorer) -> Callable[[Sequence[EntryKey]], Sequence[float]]:
    def opinions(keys: Sequence[EntryKey]) -> Sequence[float]:
        refs = []
        for key in keys:
            entry = shown.entries(key.minute)[key.number]
            refs.append(EntryRef(slice_id_of(key.minute), entry.turn_id, entry.role))
        return second(refs)

    return opinions


class _Shown:
    """Reads the entries of the slices that are shown, each slice once."""

    def __init__(self, database: sqlite3.Connection, question: Question) -> None:
        self.database = database
        self.question = question
        self._entries: dict[int, tuple[Entry, ...]] = {}

    def entries(self, minute: int) -> tuple[Entry, ...]:
        if minute not in self._entries:
            row = self.database.execute("SELECT packed FROM entries WHERE minute = ?", (minute,)).fetchone()
            self._entries[minute] = entries_of(row[0])
        return self._entries[minute]

    def characters(self, minute: int) -> str:
        """The entries as lines of characters instead of tokens: a scan of what was written."""
        texts = (entry.content for entry in self.entries(minute))
        return "\n".join(line(token.term for token in character_tokens(text)) for text in texts)

    def turn(self, minute: int, number: int, score: float) -> TurnHit:
        entry = self.entries(minute)[number]
        words = self.question.terms or self.question.characters
        shown = snippet(entry.content, frozenset(words), characters=not self.question.terms)
        return TurnHit(turn_id=entry.turn_id, role=entry.role, at=entry.at, snippet=shown, score=score)

    def slice(self, one: Scored) -> Hit:
        best = sorted((-score, number) for number, score in enumerate(one.entries) if one.matched[number])
        turns = tuple(self.turn(one.minute, number, -score) for score, number in best[:ENTRIES_A_SLICE])
        return Hit(slice_id=slice_id_of(one.minute), score=one.score, turns=turns)
