"""How much of a conversation fits into one request.

Sizes are estimated in tokens, on the high side, without the model's own tokeniser: servers differ, and a request that
is refused as too long costs more than a turn left out early.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.folder.turns import Entry

_SHORT = 1_000  # characters up to which the size of a text is remembered
PER_MESSAGE = 8  # tokens a request spends on the frame of each message
_LEAST_ROOM = 512  # tokens for the history, however large the system message is

# Kinds of bytes in UTF-8. A character is told by its first byte: two bytes are the alphabets beside Latin, three mostly
# Han, kana, hangul and the scripts of India, four emoji.
_LETTERS = (string.ascii_letters + "".join(map(chr, range(33)))).encode()
_SIGNS = bytes(set(range(128)) - set(_LETTERS))
_TWO_BYTES = bytes(range(0xC0, 0xE0))
_THREE_BYTES = bytes(range(0xE0, 0xF0))
_FOUR_BYTES = bytes(range(0xF0, 0xF8))

# Longer than any word: base64, a hash, an address. It is split into about two characters a token.
_UNBROKEN = 60

_DATA = re.compile(
    r"(data:[\w.+-]{1,60}/[\w.+-]{1,60}(?:;[\w=.+-]{1,60}){0,4};base64,[A-Za-z0-9+/=_-]{64})([A-Za-z0-9+/=_-]{936,})"
)

Key = tuple[str, str]


@dataclass(frozen=True)
class Room:
    """Tokens there are for the history: of all of it, and of one message."""

    history: int

    @property
    def message(self) -> int:
        """The most one message may take: half, so that two long ones still fit side by side."""
        return self.history // 2


def room(system: str, context_tokens: int) -> Room:
    """What a context of that many tokens leaves for the history; a quarter is kept for the reply and its tools."""
    return Room(max(_LEAST_ROOM, context_tokens * 3 // 4 - tokens(system) - PER_MESSAGE))


def tokens(text: str) -> int:
    """About how many tokens `text` is: 4 Latin letters or 2 signs a token, 1 for a CJK character, 3 for an emoji."""
    return _remembered(text) if len(text) <= _SHORT else _measured(text)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> int:
    """The same turns are weighed again in every request of a slice."""
    return _measured(text)


def _measured(text: str) -> int:
    data = text.encode("utf-8", "replace")
    unbroken = "".join(word for word in text.split() if len(word) >= _UNBROKEN).encode("utf-8", "replace")
    split = _count(unbroken, _LETTERS)
    quarters = _count(data, _LETTERS) - split
    halves = _count(data, _SIGNS) + _count(data, _TWO_BYTES) + split
    return (quarters + 2 * halves + 3) // 4 + _count(data, _THREE_BYTES) + 3 * _count(data, _FOUR_BYTES)


def shortened(text: str, limit: int) -> str:
    """`text` as it is sent: exactly as it is when it fits into `limit` tokens, else without its middle.

    The payload of a long `data:` address says nothing to a model as text, so only its beginning is ever sent. Both
    gaps carry a note of how much is missing. The same text and limit always give the same result.
    """
    text = _DATA.sub(lambda data: f"{data[1]}[… {len(data[2]):,} characters of data not shown …]", text)
    if tokens(text) <= limit:
        return text
    words = max(0, limit - 32)
    head = text[: _fitting(text[: words * 4], words * 2 // 3)]
    rest = text[len(head) :]
    backwards = rest[::-1][: words * 4]
    tail = backwards[: _fitting(backwards, words // 3)][::-1]
    missing = len(rest) - len(tail)
    return f"{head}\n\n[… {missing:,} characters in the middle of this message are not shown …]\n\n{tail}"


def left_out(order: Sequence[Key], cost: Callable[[Key], int], limit: int) -> frozenset[str]:
    """The turns, oldest first, that the request for the last message of `order` has to do without.

    `order` is every message up to and including that one. When they no longer fit, turns go until half of the room is
    free again, so that the next requests find the same beginning and a server's cache of it holds. Every request
    before this one is replayed to know where those steps fell; the last turn itself always stays.
    """
    gone: set[str] = set()
    turns: list[str] = []
    costs: dict[str, int] = {}
    total = 0
    for turn_id, role in order:
        if turn_id in gone:
            continue
        size = cost((turn_id, role))
        costs[turn_id] = costs.get(turn_id, 0) + size
        total += size
        if role != "user":
            continue
        turns.append(turn_id)
        if total > limit:
            while turns[0] != turn_id and total > limit // 2:
                total -= costs[turns[0]]
                gone.add(turns.pop(0))
    return frozenset(gone)


def in_order(entries: Sequence[Entry], turn_id: str, sent: Sequence[Key]) -> tuple[Key, ...]:
    """The order of a slice's messages, at least up to the person's entry of `turn_id`, which is to be among them.

    Turns follow each other as the person spoke, each answer after its message. But what was sent before, `sent`, keeps
    its place: an answer that came after later requests had shown its message as unanswered follows behind those, so
    that every request begins with the one before.
    """
    keys = dict.fromkeys(entry.key for entry in entries)
    order = dict.fromkeys(key for key in sent if key in keys)
    if (turn_id, "user") in order:
        return tuple(order)
    order |= dict.fromkeys((turn, role) for turn, role in keys if role == "agent" and (turn, "user") in order)
    for turn, role in keys:
        if role != "user":
            continue
        order[turn, role] = None
        if turn == turn_id:
            break
        if (turn, "agent") in keys:
            order[turn, "agent"] = None
    return tuple(order)


def _count(data: bytes, kind: bytes) -> int:
    return len(data) - len(data.translate(None, kind))


def _fitting(text: str, limit: int) -> int:
    """The length of the longest beginning of `text` within `limit` tokens."""
    return bisect_right(range(1, len(text) + 1), limit, key=lambda length: tokens(text[:length]))
