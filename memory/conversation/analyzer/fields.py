"""The fields of an answer, each checked alone: any JSON value goes in, what can be used of it comes out, else None."""

import re
from typing import Any

from memory.folder.marks import cut, plain_line
from memory.folder.slices import MAX_ITEM_CHARS, MAX_ITEMS
from memory.folder.turns import clean

LONGEST = 20_000  # characters of one text that are looked at

_NOTHING = frozenset((
    "", "none", "null", "nil", "n/a", "undefined", "unknown", "nothing", "empty", "string",
    "无", "空", "没有", "暂无", "未知", "不适用",
))  # fmt: skip
_REASONING = re.compile(r"</?\s*(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)\b", re.IGNORECASE)
_BETWEEN_TAGS = re.compile(r"[,，、;；\n]+")
_BETWEEN_ITEMS = re.compile(r"\n+")


def line(value: Any, limit: int) -> str | None:
    """A text as one line of at most `limit` characters.

    None for what is no text, says nothing (blank, `None`, `null`), or holds a model's reasoning.
    """
    if not isinstance(value, str) or _REASONING.search(value[:LONGEST]):
        return None
    told = _unwrapped(plain_line(clean(value[:LONGEST])))
    return None if _says_nothing(told) else cut(told, limit)


def items(value: Any) -> tuple[str, ...] | None:
    """A list of texts, each one line, each once, at most 20 of 300 characters; a text alone is a list, by its lines.

    An empty list is one; None when there was something but nothing of it can be used.
    """
    if isinstance(value, str):
        value = _BETWEEN_ITEMS.split(value[:LONGEST])
    if not isinstance(value, list | tuple):
        return None
    read = [line(item, MAX_ITEM_CHARS) for item in value[: 10 * MAX_ITEMS]]
    kept = tuple(dict.fromkeys(item for item in read if item))[:MAX_ITEMS]
    return kept if kept or not value else None


def tags(value: Any) -> tuple[str, ...] | None:
    """A list of tags as written, at most 20; a text is split at its commas. None as for `items`.

    In a list, the words `null` and `none` are tags like any other.
    """
    if isinstance(value, str):
        value = None if _says_nothing(value) else _BETWEEN_TAGS.split(value[:LONGEST])
    if not isinstance(value, list | tuple):
        return None
    read = [_tag(item) for item in value[: 10 * MAX_ITEMS]]
    kept = tuple(dict.fromkeys(tag for tag in read if tag))[:MAX_ITEMS]
    return kept if kept or not value else None


def yes_or_no(value: Any) -> bool | None:
    """True or False, however it was written."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "是": True, "false": False, "no": False, "否": False}.get(
            value.strip().casefold()
        )
    return value if isinstance(value, bool) else None


def _tag(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**12:
        return str(value)
    if not isinstance(value, str) or _REASONING.search(value[:LONGEST]):
        return ""
    tag = plain_line(clean(value[:LONGEST])).lstrip("#＃").strip()
    return tag if len(tag) <= MAX_ITEM_CHARS else ""


def _says_nothing(text: str) -> bool:
    return text.strip(" \n.。…-–—").casefold() in _NOTHING or not any(map(str.isprintable, text))


def _unwrapped(text: str) -> str:
    """The text without a pair of quotation marks or asterisks around all of it."""
    for opening, closing in (('"', '"'), ("“", "”"), ("「", "」"), ("**", "**"), ("`", "`")):
        inner = text[len(opening) : -len(closing)]
        if len(text) > len(opening + closing) and text == f"{opening}{inner}{closing}" and opening not in inner:
            return inner.strip()
    return text
