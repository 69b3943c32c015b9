"""The merge pass proposes: which strands are one topic written in two ways.

The model proposes, code keeps what cannot be wrong by its form. Precision over recall: a merge that was missed is
proposed again some day, a wrong one mixes two histories until somebody undoes it.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from memory import prompts
from memory.conversation.analyzer.topics import newest_first, twin_form
from memory.conversation.quoting import fenced, quoted_line
from memory.conversation.window import tokens
from memory.folder.strands import Merge, Merges, Strands, follow, normalise, record_merges
from memory.llm.client import ModelServer
from memory.llm.structured import Called, Failure, ask, nobody

MOST_KEYS = 400
MOST_PAIRS = 30
MOST_INTO_ONE = 3
"""How many keys may flow into one key in a pass."""
MOST_MERGED_BEFORE = 8
"""How many keys, over all passes, one key may have taken in; more is a heap, not a topic, and left to a person."""
_LOOKED_AT = 1_000
_LONGEST_SHOWN = 100

Pair = tuple[str, str]

_ASK = "Which of these keys are the same topic? Answer with the JSON object alone."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "merges": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
                "required": ["from", "to"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["merges"],
    "additionalProperties": False,
}

_ARROW = re.compile(r"\s*(?:->|→|=>|⇒)\s*")
_FROM_TO = re.compile(r"from\s*[:：]\s*(.+?)[\s,;]+to\s*[:：]\s*(.+)", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # of the trial merges, which are never written


def propose(
    model: ModelServer,
    *,
    strands: Strands,
    merges: Mapping[str, tuple[Merge, ...]],
    called: Callable[[Called], object] = nobody,
) -> tuple[Pair, ...] | Failure:
    """Ask the model for the (from, to) pairs to merge: one structured call of the kind `merge`, at most 30 pairs.

    The model sees the keys with the number of their slices, at most 400, the most recent first.
    """
    shown = _shown(strands, model.settings.context // 2)
    lines = [f"- {line} ({len(strands[key])})" for line, key in shown.items()]
    asked = [
        {"role": "system", "content": prompts.load("merge_strands", "en")},
        {"role": "user", "content": f"{fenced('keys', lines)}\n\n{_ASK}"},
    ]

    def check(answer: Any) -> tuple[Pair, ...]:
        return sound_pairs(answer, shown=shown, merges=merges)

    return ask(model, asked, schema=SCHEMA, check=check, kind="merge", called=called)


def sound_pairs(answer: Any, *, shown: Mapping[str, str], merges: Mapping[str, tuple[Merge, ...]]) -> tuple[Pair, ...]:
    """The pairs of an answer, whatever JSON it is, that may be merged, the first 30 in its order.

    `shown` gives for each line that was shown its key. Raises ValueError when the answer is no list of pairs.

    Left out are: keys that were not shown, a key into itself, a key named a second time as `from`, a pair that with an
    earlier one makes a chain or a cycle, a pair that `record_merges` refuses (undone once, or a cycle with recorded
    merges), a key that has itself taken in others (so nothing snowballs from pass to pass), more than a few keys into
    one, keys whose numbers differ (`taxes 2025`, `taxes 2026`), and names of several words that share none
    (`alice chen`, `sarah kim`).
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("merges"), list | dict):
        raise ValueError('It has to be {"merges": [{"from": "a key", "to": "another key"}]}, an empty list if none.')
    taken_in = _taken_in(merges)
    trial: Merges = dict(merges)
    pairs: dict[str, str] = {}
    for proposed in _proposed(answer["merges"]):
        from_key, to_key = (_key(text, shown) for text in proposed)
        if not from_key or not to_key or from_key == to_key or from_key in pairs or to_key in pairs:
            continue
        received = [*pairs.values()].count(to_key)
        if (
            from_key in pairs.values()
            or taken_in.get(from_key)
            or received == MOST_INTO_ONE
            or received + taken_in.get(to_key, 0) >= MOST_MERGED_BEFORE
            or not _may_be_one(from_key, to_key)
        ):
            continue
        tried = record_merges(trial, [(from_key, to_key)], at=_ANY_TIME, by="trial")
        if tried == trial:
            continue
        trial = tried
        pairs[from_key] = to_key
        if len(pairs) == MOST_PAIRS:
            break
    return tuple(pairs.items())


def _shown(strands: Strands, limit: int) -> dict[str, str]:
    shown: dict[str, str] = {}
    for key in newest_first(strands):
        line = quoted_line(key, _LONGEST_SHOWN)
        limit -= tokens(line) + 4
        if len(shown) == MOST_KEYS or limit < 0:
            break
        # A key that is no normalised tag was written by hand, and no merge can be recorded for it.
        if line and normalise(key) == key:
            shown.setdefault(line, key)
    return shown


def _proposed(value: list[Any] | dict[Any, Any]) -> list[Pair]:
    """The pairs of texts in a list of objects, of pairs or of `a → b`, or in an object from one to the other."""
    items = list(value.items()) if isinstance(value, dict) else value
    pairs = (_pair(item) for item in items[:_LOOKED_AT])
    return [pair for pair in pairs if pair]


def _pair(item: Any) -> Pair | None:
    if isinstance(item, str):
        split = _FROM_TO.fullmatch(item.strip())
        item = split.groups() if split else _ARROW.split(item)
    match item:
        case {"from": str(from_text), "to": str(to_text)}:
            return from_text, to_text
        case [str(from_text), str(to_text)]:
            return from_text, to_text
    return None


def _key(text: str, shown: Mapping[str, str]) -> str:
    """The key that was shown as this line, its count or case perhaps changed; empty when there is none."""
    line = text.strip().strip("\"'`")
    for candidate in (line, normalise(line), re.sub(r"\s*\(\d+\)$", "", normalise(line))):
        if candidate in shown:
            return shown[candidate]
    return ""


def _taken_in(merges: Mapping[str, tuple[Merge, ...]]) -> dict[str, int]:
    """How many other keys each key holds through the merges that stand."""
    held: dict[str, int] = {}
    for key in merges:
        if (end := follow(key, merges)) != key:
            held[end] = held.get(end, 0) + 1
    return held


def _may_be_one(one: str, other: str) -> bool:
    """Whether the words of two keys leave it possible that they name one thing."""
    numbers = [[digits.lstrip("0") for digits in _DIGITS.findall(key)] for key in (one, other)]
    if all(numbers) and numbers[0] != numbers[1]:
        return False
    words = [twin_form(key).split() for key in (one, other)]
    if min(map(len, words)) < 2 or not (one + other).isascii():
        return True
    return any(_alike(first, second) for first in words[0] for second in words[1])


def _alike(one: str, other: str) -> bool:
    """Whether two words may be one, misspelt or inflected: they begin alike for most of the longer one."""
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    return one == other or common >= max(3, 0.6 * max(len(one), len(other)))
