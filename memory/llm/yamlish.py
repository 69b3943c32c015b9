"""An answer in lines, `focus: A walk by the river`, as models write when they take JSON for YAML or for a form.

A value goes to the end of its line, colons included, so that `Tire specs (cold): Front 36` is one text, which a YAML
parser would refuse.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

from memory.llm import lenient
from memory.llm.names import plain_name

MOST_LINES = 2_000

_FIELD = re.compile(
    r"[ \t]{0,4}(?:[-*+•][ \t]+|\d{1,2}[.)][ \t]+|#{1,6}[ \t]+)?[*_\"'`]{0,3}([A-Za-z][A-Za-z _-]{0,30}?)[*_\"'`]{0,3}"
    r"[ \t]*[:：][ \t]*(?:\*{1,2}|_{1,2})?[ \t]*(.*)"
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+(.*)")
_BLOCK = ("|", ">", "|-", ">-", "|+", ">+")
_NOTHING = ("null", "~", "none")


def read(text: str, names: Collection[str]) -> dict[str, Any]:
    """The fields of `names` in a text; empty when there are fewer than two of them, which may be mere prose.

    Where only one name is possible, one field is enough.
    """
    found: dict[str, Any] = {}
    for name, first, following in _fields(text.splitlines()[:MOST_LINES], names):
        found.setdefault(name, _value(first, following))
    return found if len(found) >= min(2, len(names)) else {}


def _fields(lines: list[str], names: Collection[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Each field with the rest of its line and the lines that belong to it."""
    name, first = "", ""
    following: list[str] = []
    for line in lines:
        field = _FIELD.fullmatch(line.rstrip())
        if field and plain_name(field[1]) in names:
            if name:
                yield name, first, following
            name, first, following = plain_name(field[1]), field[2], []
        elif line.strip() and not line[0].isspace() and not _ITEM.match(line):
            if name:
                yield name, first, following
            name = ""  # prose after the fields belongs to none of them
        else:
            following.append(line)
    if name:
        yield name, first, following


def _value(first: str, following: list[str]) -> Any:
    first = first.strip()
    if first[:1] in ("[", "{"):
        try:
            return lenient.parse("\n".join([first, *following]))[0]
        except lenient.Unreadable:
            return first
    if first in ("", *_BLOCK):
        return _items(following) if any(map(_ITEM.match, following)) else _joined("", following)
    return _scalar(_joined(first, following))


def _items(lines: list[str]) -> list[Any]:
    items: list[str] = []
    for line in lines:
        if item := _ITEM.fullmatch(line):
            items.append(item[1])
        elif items and line.strip():
            items[-1] = f"{items[-1]} {line.strip()}"
    return [_scalar(item) for item in items]


def _joined(first: str, following: list[str]) -> str:
    return " ".join(part for part in (first, *(line.strip() for line in following)) if part)


def _scalar(text: str) -> Any:
    text = text.strip().removesuffix("**").rstrip()
    if text[:1] == '"':
        text = text.removesuffix(",")  # a line of JSON that was broken elsewhere
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in _NOTHING:
        return None
    return text
