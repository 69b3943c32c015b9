"""What a model meant to say, found in what it said.

Asked for one JSON object, models wrap it in a fence or in chatter, think aloud before it, write two of them, or write
YAML. `readings` finds every object that can be read without guessing at its words.
"""

import json
import re
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from memory.llm import lenient, yamlish
from memory.llm.names import plain_name

Reading = dict[str, Any]

LONGEST = 400_000  # characters that are looked at; an answer is a few thousand
MOST_TRIES = 60  # opening brackets that are tried as the beginning of an object
_MOST_WRAPPERS = 3

_THINKING = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
_REASONING_BEGINS = re.compile(rf"\s*(?:<(?:{_THINKING})>|\[think\]|◁think▷)", re.IGNORECASE)
_REASONING_ENDS = re.compile(rf"</(?:{_THINKING})>|\[/think\]|◁/think▷", re.IGNORECASE)
_FENCED = re.compile(r"^[ \t>]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t>]*\1|\Z)", re.DOTALL | re.MULTILINE)


def readings(text: str, names: Collection[str]) -> Iterator[Reading]:
    """Every object in `text` that has at least one of `names`, the likeliest first, other names left out.

    Likelier is what is proper JSON from end to end, then what stands in a fence, then what stands anywhere, the later
    before the earlier; objects that complete each other count as one. Names are compared without regard to case,
    hyphens and spaces. Nothing comes of text that is all reasoning, whether its end is marked or not.
    """
    text = text[:LONGEST].removeprefix("\ufeff").strip()
    whole = _strictly(text)
    if whole is not None:
        yield from _named(whole, names)
        return
    text = _after_reasoning(text)
    fences = [match[2] for match in _FENCED.finditer(text)][-5:]
    for part in (*reversed(fences), text):
        found = [reading for value in _values(part) for reading in _named(value, names)]
        if len(found) > 1 and sum(map(len, found)) == len(set(chain.from_iterable(found))):
            yield {name: value for reading in found for name, value in reading.items()}
        yield from reversed(found)
    for part in (*reversed(fences), text):
        if reading := yamlish.read(part, names):
            yield reading


def _after_reasoning(text: str) -> str:
    ends = [match.end() for match in _REASONING_ENDS.finditer(text)]
    if ends:
        return text[ends[-1] :]
    return "" if _REASONING_BEGINS.match(text) else text


def _strictly(text: str) -> Any:
    """The value of a text that is JSON and nothing else; None when it is not, or is null."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _values(text: str) -> Iterator[Any]:
    """The objects and lists in a text, outermost only, in order."""
    at = 0
    for _ in range(MOST_TRIES):
        begin = min((found for found in (text.find("{", at), text.find("[", at)) if found >= 0), default=-1)
        if begin < 0:
            return
        try:
            value, at = json.JSONDecoder().raw_decode(text, begin)
        except (ValueError, RecursionError):
            try:
                value, at = lenient.parse(text, begin)
            except lenient.Unreadable:
                at = begin + 1
                continue
        yield value


def _named(value: Any, names: Collection[str], wrappers: int = 0) -> Iterator[Reading]:
    """The readings in a value: itself, or what it wraps, such as `{"answer": {…}}`, `[{…}]` or JSON as a text."""
    if isinstance(value, dict):
        known = {plain_name(str(key)): inner for key, inner in value.items()}
        reading = {name: known[name] for name in names if name in known}
        if reading:
            yield reading
            return
    if wrappers == _MOST_WRAPPERS:
        return
    if isinstance(value, str) and "{" in value:
        yield from _named(_strictly(value), names, wrappers + 1)
    elif isinstance(value, dict | list):
        inner_values = list(value.values()) if isinstance(value, dict) else value
        found = [reading for inner in inner_values[:MOST_TRIES] for reading in _named(inner, names, wrappers + 1)]
        yield from found
        if isinstance(value, list) and not found and len(names) == 1:
            yield dict.fromkeys(names, value)
