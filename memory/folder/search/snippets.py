"""The part of an entry to show for a match, and which characters of it matched."""

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from memory.folder.search import tokens

LENGTH = 240
"""Characters of a snippet at most, the signs of what was left out not counted."""

_LEAD = 40
_MORE = "…"


@dataclass(frozen=True)
class Snippet:
    """Plain text, with `…` where more stands before or after; `matches` are (begin, finish) in it, ascending."""

    text: str
    matches: tuple[tuple[int, int], ...] = ()


def snippet(content: str, asked: Collection[str], *, characters: bool = False) -> Snippet:
    """Return the stretch of an entry where most of the asked tokens stand together, the first of several such.

    `characters`: the question was characters, not words, and the tokens asked are those.
    """
    read = tokens.character_tokens(content) if characters else tokens.tokens(content, asked)
    places = [(token.term, token.begin, token.finish) for token in read if token.term in asked]
    begin = _begin(content, places)
    finish = _finish(content, begin)
    before = _MORE if begin else ""
    text = before + content[begin:finish].rstrip() + (_MORE if content[finish:].strip() else "")
    inside = [(place[1], place[2]) for place in places if begin <= place[1] and place[2] <= finish]
    moved = len(before) - begin
    return Snippet(text, tuple((first + moved, last + moved) for first, last in _joined(inside)))


def _begin(content: str, places: list[tuple[str, int, int]]) -> int:
    """Where the snippet begins: a little before its first match, at a word."""
    if len(content) <= LENGTH or not places:
        return 0
    best, most, last = 0, 0, 0
    counts: dict[str, int] = {}
    for first, (term, begin, _) in enumerate(places):
        while last < len(places) and places[last][2] <= begin + LENGTH - _LEAD:
            counts[places[last][0]] = counts.get(places[last][0], 0) + 1
            last += 1
        if len(counts) > most:
            best, most = first, len(counts)
        if last > first:
            counts[term] -= 1
            if not counts[term]:
                del counts[term]
        else:
            last = first + 1
    begin = max(places[best][1] - _LEAD, 0)
    if begin == 0:
        return 0
    space = content.find(" ", begin, places[best][1])
    return space + 1 if space >= 0 else min(_whole(content, begin), places[best][1])


def _finish(content: str, begin: int) -> int:
    finish = begin + LENGTH
    if finish >= len(content):
        return len(content)
    space = content.rfind(" ", finish - _LEAD, finish)
    return space if space > begin else _whole(content, finish)


def _whole(content: str, at: int) -> int:
    """The nearest place from there on that parts no mark or joined emoji from its character, within reason."""
    for place in range(at, min(at + _LEAD, len(content))):
        joined = "\u200d" in content[place - 1 : place + 1]
        if not joined and unicodedata.category(content[place])[0] != "M":
            return place
    return at


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap or touch as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
