"""Marks that code can give without a model: the floor under every closed slice, and tags named in a text.

No slice closes empty. What no model has written is filled from the record itself, in the person's language; a summary
of the floor's shape is how a slice that still waits for better marks is known.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import islice

from wcwidth import iter_graphemes

from memory.folder.clock import local_day
from memory.folder.slices import Slice
from memory.folder.strands import fold, normalise

LANGUAGES = ("en", "zh-hans")

FOCUS_CHARACTERS = 60
SUMMARY_CHARACTERS = 100
FLOOR_TONE = "neutral"

_TAGS_IN_FOCUS = 3
_TAG_IN_FOCUS_CHARACTERS = 30
_MOST_TAGS = 20
_LONGEST_HASHTAG = 100
_MORE = "…"


@dataclass(frozen=True, kw_only=True)
class _Wording:
    conversation: str
    with_tags: str
    between_tags: str
    one_turn: str
    turns: str
    and_tags: str
    months: tuple[str, ...]


_ENGLISH_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_WORDING = {
    "en": _Wording(
        conversation="Conversation of {day} {month} {year}",
        with_tags="{line} ({tags})",
        between_tags=", ",
        one_turn="1 turn",
        turns="{count} turns",
        and_tags="{turns} · {tags}",
        months=_ENGLISH_MONTHS,
    ),
    "zh-hans": _Wording(
        conversation="{year}年{month}{day}日的对话",
        with_tags="{line}（{tags}）",
        between_tags="、",
        one_turn="1 轮对话",
        turns="{count} 轮对话",
        and_tags="{turns} · {tags}",
        months=tuple(f"{month}月" for month in range(1, 13)),
    ),
}

_FLOOR_SUMMARY = re.compile(r"(?:1 turn|(?:0|[2-9]|[1-9][0-9]+) turns|(?:0|[1-9][0-9]*) 轮对话)(?: · [^\n]+)?")

# Scripts that put no spaces between words: Han, kana, bopomofo and hangul (whose particles are glued on), and Thai,
# Lao, Tibetan, Burmese and Khmer.
_UNSPACED = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)
_CJK_PUNCTUATION = "\u3001-\u3003\u3008-\u3020\u3030\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’…—·"

_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_PIECE = re.compile(f"[{_UNSPACED}]+|[^\\W{_UNSPACED}]+")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_FENCE = re.compile(r"^ {0,3}(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)\n(?s:.*?)(?:^ {0,3}(?:\1`*|\2~*)[ \t]*$|\Z)", re.M)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]+?(?<!`)\1(?!`)")
_URL = re.compile(rf"(?:\b[A-Za-z][A-Za-z0-9+.-]{{0,20}}://|\bwww\.)[^\s<>\"{_CJK_PUNCTUATION}]*")
_HASH = re.compile(rf"(?:^|(?<=[\s{_CJK_PUNCTUATION}]))[#＃]", re.M)


def plain_line(text: str) -> str:
    """Return the text as a single line: no control characters, no direction overrides, white space collapsed."""
    return " ".join(_BIDI.sub("", _CONTROLS.sub(" ", text)).split())


def cut(text: str, limit: int) -> str:
    """Return the text if it has at most `limit` characters, else as many whole graphemes as leave room for `…`.

    A script that spaces its words is cut between words, unless that would give up more than half. A grapheme that is
    longer than the limit gives `…` alone.
    """
    return text if len(text) <= limit else _head(text, limit - len(_MORE)) + _MORE


def floor_focus(slice_: Slice, *, language: str) -> str:
    """Return the focus of a slice that no model has described, one line.

    The first non-blank line of the first thing the person said, at most 60 characters (then `…`), and up to three tags
    in brackets: `Training plan for the race (running, sleep)`. With no such line: `Conversation of 10 August 2026`, the
    day in the slice's zone.
    """
    wording = _wording(language)
    line = _first_line(slice_)
    if not line:
        return _conversation_of(local_day(slice_.start, slice_.timezone), wording)
    if len(line) > FOCUS_CHARACTERS:
        line = _head(line, FOCUS_CHARACTERS) + _MORE
    tags = [cut(tag, _TAG_IN_FOCUS_CHARACTERS) for tag in _shown(slice_.tags)[:_TAGS_IN_FOCUS]]
    return wording.with_tags.format(line=line, tags=wording.between_tags.join(tags)) if tags else line


def floor_summary(slice_: Slice, *, language: str) -> str:
    """Return the summary of a slice that no model described, at most 100 characters: `12 turns · running, sleep`."""
    wording = _wording(language)
    count = slice_.turn_count
    turns = wording.one_turn if count == 1 else wording.turns.format(count=count)
    tags = wording.between_tags.join(_shown(slice_.tags))
    return cut(wording.and_tags.format(turns=turns, tags=tags), SUMMARY_CHARACTERS) if tags else turns


def is_floor_summary(text: str) -> bool:
    """Whether the summary has the floor's shape, in either language. Nothing else tells floor marks from a model's."""
    return len(text) <= SUMMARY_CHARACTERS and _FLOOR_SUMMARY.fullmatch(text) is not None


def floor_tags(text: str, strand_keys: Iterable[str]) -> tuple[str, ...]:
    """Return the tags a text gives itself, at most 20: its `#hashtags`, then the existing strands it names."""
    found = dict.fromkeys((*hashtags(text), *named_strands(text, strand_keys)))
    return tuple(islice(found, _MOST_TAGS))


def hashtags(text: str) -> tuple[str, ...]:
    """Return the `#hashtags` of a text as normalised tags, in order, each once.

    One begins a line or follows white space or CJK punctuation, and runs over letters, digits, `_` and `-`, with at
    least one letter. Code, fenced or inline, and addresses hold none.
    """
    # Not a space, which would let a hash sign right after code begin a hashtag.
    prose = _INLINE_CODE.sub("`", _URL.sub("/", _FENCE.sub("", text)))
    found = (_hashtag_at(prose, match.end()) for match in _HASH.finditer(prose))
    return tuple(dict.fromkeys(tag for tag in found if tag))


def named_strands(text: str, strand_keys: Iterable[str]) -> tuple[str, ...]:
    """Return the strands that a text names, in order of first mention, the longer first where two begin together.

    Fenced code and addresses do not count. Case is ignored. In scripts that space their words the name has to stand as
    whole words; in those that do not (Chinese, Japanese, Korean, Thai, …) it may stand anywhere and has at least two
    characters.
    """
    folded = _folded(_URL.sub(" ", _FENCE.sub("", text)))
    pieces = set(_pieces(folded))
    found = []
    for key in strand_keys:
        name, first = _name(key)
        # The first piece is looked up in a set, so that thousands of keys cost no search each.
        if (not first or first in pieces) and (at := _mention(folded, name)) >= 0:
            found.append((at, -len(key), key))
    return tuple(key for _, _, key in sorted(found))


def _wording(language: str) -> _Wording:
    return _WORDING.get(language, _WORDING["en"])


def _conversation_of(day: date, wording: _Wording) -> str:
    return wording.conversation.format(day=day.day, month=wording.months[day.month - 1], year=day.year)


def _first_line(slice_: Slice) -> str:
    for entry in slice_.person_entries[:1]:
        for line in entry.content.splitlines():
            # What is cut off here could not be shown anyway; a line may be a megabyte.
            shown = plain_line(line.lstrip()[: 20 * FOCUS_CHARACTERS])
            if any(unicodedata.category(character)[0] not in "ZC" for character in shown):
                return shown
    return ""


def _shown(tags: Iterable[str]) -> list[str]:
    return [shown for tag in tags if (shown := plain_line(tag))]


def _head(text: str, room: int) -> str:
    """Return as many whole graphemes from the start of a longer text as fit in `room` characters."""
    end = 0
    # Whether a grapheme ends somewhere depends on nothing further right than the next character.
    for grapheme in iter_graphemes(text[: max(room, 0) + 1]):
        if end + len(grapheme) > room:
            break
        end += len(grapheme)
    if _spaced(text[end - 1 : end]) and _spaced(text[end : end + 1]):
        end = max((at for at in range(room // 2, end) if text[at].isspace()), default=end)
    return text[:end].rstrip()


def _spaced(character: str) -> bool:
    return _in_word(character) and not _UNSPACED_CHARACTER.match(character)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or (character != "" and unicodedata.category(character)[0] == "M")


def _hashtag_at(text: str, begin: int) -> str:
    end = begin
    while end < len(text) and (_in_word(text[end]) or text[end] in "-\u200c\u200d"):
        end += 1
    name = text[begin:end].strip("-_\u200c\u200d")
    if len(name) > _LONGEST_HASHTAG or not any(character.isalpha() for character in name):
        return ""
    return normalise(name)


def _folded(text: str) -> str:
    return " ".join(fold(text).split()).casefold()


def _pieces(folded: str) -> Iterator[str]:
    """Yield what the first piece of a name can be found in: the words, and each pair of unspaced characters."""
    for match in _PIECE.finditer(folded):
        piece = match[0]
        if _UNSPACED_CHARACTER.match(piece):
            yield from (piece[at : at + 2] for at in range(len(piece) - 1))
            yield from piece
        else:
            yield piece


@lru_cache(maxsize=65536)
def _name(key: str) -> tuple[str, str]:
    """Return the key as it is looked for, and its first piece: a word, or up to two unspaced characters."""
    name = _folded(key)
    match = _PIECE.search(name)
    if match is None:
        return name, ""
    return name, match[0][:2] if _UNSPACED_CHARACTER.match(match[0]) else match[0]


def _mention(folded: str, name: str) -> int:
    """Return where the name is first mentioned, -1 for nowhere."""
    if len(name) < 2 and (not name or _UNSPACED_CHARACTER.match(name)):
        return -1
    at = folded.find(name)
    while at >= 0:
        end = at + len(name)
        begins = not (_spaced(name[0]) and _spaced(folded[at - 1 : at]))
        ends = not (_spaced(name[-1]) and _spaced(folded[end : end + 1]))
        if begins and ends:
            return at
        at = folded.find(name, at + 1)
    return -1
