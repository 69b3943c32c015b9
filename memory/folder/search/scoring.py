"""Which of the candidates come first: BM25 over slices and over entries, their neighbours, and the dates named.

Pure functions over the candidates. Each part is divided by its best before it is added, so no part drowns another.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory.folder.search.database import Totals

SLICE_K1, SLICE_B = 1.2, 0.75
ENTRY_K1, ENTRY_B = 0.9, 0.4
TITLE_WEIGHT = 2.0
"""How often a token in the title counts."""

BEST_ENTRY = 0.5
NEIGHBOUR = 0.2
OWN_SLICE = 0.3
DATE = 0.8
SECOND = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A token of the question, and how many slices and entries have it."""

    term: str
    slices: int
    entries: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice that may be an answer: its tokens as the index keeps them, and how near it is to the dates named."""

    minute: int
    length: int
    title: str
    body: str
    roles: str
    nearness: float


@dataclass(frozen=True, slots=True)
class EntryKey:
    """Which entry: the slice's minute and the entry's place in it."""

    minute: int
    number: int


SecondScorer = Callable[[Sequence[EntryKey]], Sequence[float]]
"""A second opinion on entries, 0 to 1 each in the order given, such as how near their meaning is to the question's."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate's score and those of its entries, in their order; an entry that matches nothing may have one too."""

    minute: int
    score: float
    entries: tuple[float, ...]
    matched: tuple[bool, ...]


def scored(
    candidates: Sequence[Candidate],
    asked: Sequence[Asked],
    totals: Totals,
    *,
    second: SecondScorer | None = None,
) -> list[Scored]:
    """Score every candidate, best first; equal ones newest first."""
    slice_scores = []
    entry_scores = []
    for candidate in candidates:
        whole, entries = _bm25(candidate, asked, totals)
        slice_scores.append(whole)
        entry_scores.append(entries)
    matched = [[score > 0 for score in entries] for entries in entry_scores]
    best_slice = max(slice_scores, default=0.0) or 1.0
    best_entry = max((max(entries, default=0.0) for entries in entry_scores), default=0.0) or 1.0
    slice_scores = [score / best_slice for score in slice_scores]
    entry_scores = [[score / best_entry for score in entries] for entries in entry_scores]
    if second is not None:
        keys = [EntryKey(one.minute, number) for one in candidates for number in range(len(one.roles))]
        opinions = iter(second(keys))
        entry_scores = [[score + SECOND * next(opinions) for score in entries] for entries in entry_scores]
    results = []
    for candidate, whole, entries, hits in zip(candidates, slice_scores, entry_scores, matched, strict=True):
        near = DATE * candidate.nearness
        results.append(
            Scored(
                candidate.minute,
                whole + BEST_ENTRY * max(entries, default=0.0) + near,
                tuple(score + OWN_SLICE * whole + near for score in _with_neighbours(entries)),
                tuple(hits),
            )
        )
    return sorted(results, key=lambda one: (-one.score, -one.minute))


def _with_neighbours(entries: list[float]) -> list[float]:
    before = [0.0, *entries[:-1]]
    after = [*entries[1:], 0.0]
    return [
        own + NEIGHBOUR * (left + right) for own, left, right in zip(entries, before, after, strict=True)
    ]


def _bm25(candidate: Candidate, asked: Sequence[Asked], totals: Totals) -> tuple[float, list[float]]:
    lines = candidate.body.split("\n")[: len(candidate.roles)]
    entries = [0.0] * len(lines)
    norms: dict[int, float] = {}
    whole = 0.0
    slice_norm = _norm(candidate.length, totals.slice_tokens, totals.slices, SLICE_K1, SLICE_B)
    entry_average = totals.entry_tokens / max(totals.entries, 1)
    for one in asked:
        spaced = f" {one.term} "
        # Two of a kind side by side share the space between them; count it from each side's own.
        in_title = _count(candidate.title, spaced)
        in_body = 0
        if spaced in candidate.body:
            idf = _idf(one.entries, totals.entries)
            for number, line in enumerate(lines):
                if spaced in line:
                    count = _count(line, spaced)
                    in_body += count
                    norm = norms.get(number)
                    if norm is None:
                        norm = norms[number] = ENTRY_K1 * (
                            1 - ENTRY_B + ENTRY_B * (line.count(" ") - 1) / entry_average
                        )
                    entries[number] += idf * count * (ENTRY_K1 + 1) / (count + norm)
        count_all = in_body + TITLE_WEIGHT * in_title
        if count_all:
            whole += _idf(one.slices, totals.slices) * count_all * (SLICE_K1 + 1) / (count_all + slice_norm)
    return whole, entries


def _count(text: str, spaced: str) -> int:
    found = text.count(spaced)
    if found and spaced + spaced[1:] in text:
        found = text.split().count(spaced.strip())
    return found


def _norm(length: int, tokens: int, count: int, k1: float, b: float) -> float:
    average = tokens / max(count, 1) or 1.0
    return k1 * (1 - b + b * length / average)


def _idf(having: int, all_: int) -> float:
    return math.log(1 + (all_ - having + 0.5) / (having + 0.5))
