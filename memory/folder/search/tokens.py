"""The words of a text as the index knows them: one tokeniser for what is kept and for what is asked.

Every token stands for a stretch of the text as it was written, so a match can be shown where it is. A stretch is
folded by itself (NFKC, case), hence composed and decomposed, full-width and half-width forms of a word are one token.
Words of spaced scripts are tokens whole, words of Latin letters by their English stem. Scripts that put no spaces
between words are cut into overlapping pairs of characters. Combining marks stay with their letter.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import snowballstemmer  # type: ignore[import-untyped]

VERSION = 1
"""Goes up with every change of what a text's tokens are: an index made by another version is made anew."""

LONGEST_WORD = 64
"""Longer runs of letters (a key, an encoded file) are known by their first characters."""

# Han, kana, bopomofo, hangul, and the scripts of Thai, Lao, Tibetan, Burmese and Khmer.
_UNSPACED = (
    "\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0fff\u1000-\u103f\u1050-\u108f\u109a-\u109f\u1100-\u11ff"
    "\u1780-\u17d3\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\uff66-\uff9f\uffa0-\uffdc\U00020000-\U0003ffff"
)


def _marks() -> str:
    """All combining marks, as the inside of a character class."""
    spans: list[list[int]] = []
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if unicodedata.category(chr(code))[0] == "M":
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in spans)


_MARKS = _marks()
_TOKEN = re.compile(
    rf"(?P<run>[{_UNSPACED}][{_UNSPACED}{_MARKS}]*)"
    rf"|(?P<word>[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*)(?:['’](?:s|t|re|ve|ll|d|m|S|T|RE|VE|LL|D|M)\b)?"
)
_PLAIN = re.compile(r"([A-Za-z0-9]+)(?:'(?:s|t|re|ve|ll|d|m|S|T|RE|VE|LL|D|M)\b)?")
_CLUSTER = re.compile(rf".[{_MARKS}]*", re.DOTALL)
_STEMMED = re.compile(r"[a-z\u00df-\u024f]+")

# What is left of don't, isn't and the like stands at the end.
_STOP_WORDS = """
    a an the and or but if so than that this these those there here of to in on at by for from with as into about over
    out up down off then just also too very more most some any all both each other another such own same only not no nor
    i me my mine myself we us our ours you your yours he him his she her hers it its they them their theirs
    am is are was were be been being do does did doing done have has had having will would shall should can could may
    might must what which who whom whose when where why how
    don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn mustn ain
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_FUNCTION = frozenset(
    "的了是我你您他她它们在有和与就不也都很吗呢吧啊呀嘛哦嗯着过得地之其这那哪个么什怎一到要会把被让给对从"
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token and the characters of the text it stands for."""

    term: str
    begin: int
    finish: int


def terms(text: str) -> list[str]:
    """Return the tokens of a text, in order."""
    return terms_and_characters(text)[0]


def terms_and_characters(text: str) -> tuple[list[str], set[str]]:
    """Return the tokens of a text, in order, and its characters of unspaced scripts, each with its combining marks."""
    if text.isascii():
        return [term for word in _PLAIN.findall(text) if (term := _word_term(word))], set()
    found: list[str] = []
    characters: set[str] = set()
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "word":
            if term := _word_term(match["word"]):
                found.append(term)
        else:
            clusters = _clusters(_folded(match["run"]))
            found += _pairs(clusters)
            characters.update(clusters)
    return found, characters


def tokens(text: str, among: Collection[str] | None = None) -> Iterator[Token]:
    """Yield the tokens of a text with their places; only those among some when these are given.

    A run whose characters change in number when it is folded stands at each of its tokens as a whole.
    """
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "word":
            term = _word_term(match["word"])
            if term and (among is None or term in among):
                yield Token(term, *match.span("word"))
            continue
        run = match["run"]
        clusters = _clusters(_folded(run))
        whole = sum(map(len, clusters)) != len(run)
        at = match.start("run")
        # The last character begins no pair, unless it is the only one.
        for number in range(max(len(clusters) - 1, 1)):
            for term in _pairs(clusters[number : number + 2]):
                if among is None or term in among:
                    yield Token(term, *match.span("run")) if whole else Token(term, at, at + len(term))
            at += len(clusters[number])


def character_tokens(text: str) -> Iterator[Token]:
    """Yield each character of unspaced scripts by itself with its place, as `tokens` does for pairs."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "run":
            at = match.start("run")
            clusters = _clusters(_folded(match["run"]))
            whole = sum(map(len, clusters)) != len(match["run"])
            for cluster in clusters:
                yield Token(cluster, *match.span("run")) if whole else Token(cluster, at, at + len(cluster))
                at += len(cluster)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _clusters(run: str) -> list[str]:
    # Without combining marks, all are letters, each character stands for itself.
    return list(run) if run.isalpha() else _CLUSTER.findall(run)


def _pairs(clusters: list[str]) -> list[str]:
    """The overlapping pairs of a run, and a lone character as itself; none that are made of function characters."""
    if len(clusters) == 1:
        return [] if clusters[0] in _FUNCTION else clusters
    return [first + second for first, second in pairwise(clusters) if first not in _FUNCTION or second not in _FUNCTION]


@lru_cache(maxsize=200_000)
def _word_term(written: str) -> str:
    """The token of a word of a spaced script, empty for a stop word."""
    # Folding may leave a space in it, and the index takes a space for the end of a token.
    word = "".join(_folded(written).split())[:LONGEST_WORD]
    if word in STOP_WORDS:
        return ""
    if _STEMMED.fullmatch(word):
        # A stemmer keeps the word it works on in itself, so threads must not share one.
        return str(snowballstemmer.stemmer("english").stemWord(word))
    return word
