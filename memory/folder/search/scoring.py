"""Which of the candidates come first: BM25 over slices and over entries, their neighbours, and the dates named.

Pure functions over the candidates. Each part is divided by its best before it is added, so no part drowns another.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.folder.search.database import Totals

SLICE_K1, SLICE_B = 1.2, 0.75
ENTRY_K1, ENTRY_B = 0.9, 0.4
TITLE_WEIGHT = 2.0
"""How often a token in the title counts."""

BEST_ENTRY = 0.5
ENTRY_BEFORE, ENTRY_AFTER = 0.3, 0.2
"""The one before counts more than the one after: an answer rarely repeats the words of what it answers."""

OWN_SLICE = 0.5
DATE = 0.8
SECOND = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A token of the question, and how many slices and entries have it.

    A token of the person's name stands in every entry of theirs, as it were, so it tells one entry from another a
    little and one slice from another not at all.
    """

    term: str
    slices: int
    entries: int
    is_name: bool = False


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
    padded = [0.0, *entries, 0.0]
    return [
        own + ENTRY_BEFORE * before + ENTRY_AFTER * after
        for before, own, after in zip(padded, padded[1:], padded[2:], strict=False)
    ]


def _bm25(candidate: Candidate, asked: Sequence[Asked], totals: Totals) -> tuple[float, list[float]]:
    """The score of the slice as a whole, and of each entry."""
    lines = candidate.body.split("\n")[: len(candidate.roles)]
    entries = [0.0] * len(lines)
    norms: dict[int, float] = {}
    whole = 0.0
    slice_norm = SLICE_K1 * _length_norm(candidate.length, totals.slice_tokens, totals.slices, SLICE_B)
    for one in asked:
        spaced = f" {one.term} "
        in_body = 0
        if one.is_name:
            # Whoever answers a person may call them by name: that tells nothing, and the length of an entry neither.
            own = _idf(one.entries, totals.entries) * _saturated(1, ENTRY_K1, ENTRY_K1)
            entries = [score + own * (role == "u") for score, role in zip(entries, candidate.roles, strict=True)]
            continue
        if spaced in candidate.body:
            idf = _idf(one.entries, totals.entries)
            for number, line in enumerate(lines):
                if spaced not in line:
                    continue
                count = _count(line, spaced)
                in_body += count
                if number not in norms:
                    # A space stands before and after each token.
                    length = line.count(" ") - 1
                    norms[number] = ENTRY_K1 * _length_norm(length, totals.entry_tokens, totals.entries, ENTRY_B)
                entries[number] += idf * _saturated(count, ENTRY_K1, norms[number])
        weight = in_body + TITLE_WEIGHT * _count(candidate.title, spaced)
        if weight:
            whole += _idf(one.slices, totals.slices) * _saturated(weight, SLICE_K1, slice_norm)
    return whole, entries


def _count(text: str, spaced: str) -> int:
    found = text.count(spaced)
    if found and spaced + spaced[1:] in text:
        # Two side by side share the space between them, and `count` counts nothing twice.
        return text.split().count(spaced.strip())
    return found


def _saturated(count: float, k1: float, norm: float) -> float:
    return count * (k1 + 1) / (count + norm)


def _length_norm(length: int, tokens: int, count: int, b: float) -> float:
    average = tokens / max(count, 1) or 1.0
    return 1 - b + b * length / average


def _idf(having: int, of: int) -> float:
    return math.log(1 + (of - having + 0.5) / (having + 0.5))
