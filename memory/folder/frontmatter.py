"""Front matter: the YAML between two `---` lines at the top of a file.

Every scalar is a string: what looks like a number, a date or a truth value comes back as it is written. What we write
reads as the same strings in any YAML 1.1 or 1.2 parser.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import yaml

from memory.folder.errors import FrontMatterError

MAX_BYTES = 256 * 1024

_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"\n---[ \t]*\r?(?:\n|\Z)")
_NOT_AT_BEGINNING = "it has a key that does not stand at the beginning of its line"
# `? key`, with the key perhaps on the next line; whatever continues a value is indented.
_EXPLICIT_KEY = re.compile(r"(?:\A|[\r\n\x85\u2028\u2029])\?(?:[ \t\r\n\x85\u2028\u2029]|\Z)")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")

# Words that YAML 1.1 parsers take for a truth value or for nothing.
_YAML_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_PLAIN_DIGITS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{4}|[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9]{4}")
# Everything outside YAML's printable set, and the printable characters that a parser may fold, strip or take for a
# line break: these survive only as escapes.
_ESCAPED = re.compile(r"[^ -~\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

Value = str | tuple[str, ...]


@dataclass(frozen=True)
class Header:
    """Front matter as read: known fields by key, and the raw source of every other key in file order."""

    fields: dict[str, Value]
    extra: tuple[tuple[str, str], ...]


def split(text: str) -> tuple[str | None, str]:
    """Split a file into the source of its front matter and its body.

    The source is None when the file does not begin with front matter; the body is then the whole text. A byte order
    mark is dropped, and all CRLF become LF when the first line ends with one. The closing line may carry trailing
    blanks and may be the end of the file.
    """
    text = normalised(text)
    opening = _OPEN.match(text)
    closing = _CLOSE.search(text, opening.end() - 1) if opening else None
    if not opening or not closing:
        return None, text
    return text[opening.end() : closing.start() + 1], text[closing.end() :]


def normalised(text: str) -> str:
    """Return the text without a byte order mark and, when its first line ends with CRLF, with LF line ends."""
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if has_crlf(text) else text


def has_crlf(text: str) -> bool:
    """Whether the first line ends with CRLF, so that all line breaks of the file are taken to be CRLF."""
    end = text.find("\n")
    return end > 0 and text[end - 1] == "\r"


def parse(source: str, known: Collection[str] | None = None) -> Header:
    """Parse the source of front matter; keys outside `known` are kept as raw source (None: every key is known).

    Values are strings or tuples of strings. A mapping, or a list inside a list, reads as its source text on one line.
    Raises FrontMatterError for what is not YAML, is no mapping of unindented keys, names a key twice, uses anchors,
    aliases or tags, or is larger than MAX_BYTES.
    """
    source = source.removeprefix("\ufeff")
    try:
        if len(source.encode()) > MAX_BYTES:
            raise FrontMatterError("it is larger than 256 KiB")
        pairs = list(_pairs(source))
    except yaml.YAMLError as error:
        raise FrontMatterError(_first_line(error)) from error
    except UnicodeEncodeError as error:
        raise FrontMatterError("it holds half a character") from error

    fields: dict[str, Value] = {}
    extra: dict[str, str] = {}
    ends = [begin for _, _, begin in pairs[1:]] + [len(source)]
    for (key, value, begin), end in zip(pairs, ends, strict=False):
        if key in fields or key in extra:
            raise FrontMatterError(f"it has {key[:80]!r} twice")
        if known is None or key in known:
            fields[key] = value
        else:
            extra[key] = source[begin:end]
    return Header(fields, tuple(extra.items()))


def render(fields: Mapping[str, Value], extra: Iterable[tuple[str, str]] = ()) -> str:
    """Write front matter, both `---` lines included: the fields in their order, then the raw source of other keys.

    An empty string is left out, an empty list is written `key: []`.
    """
    lines = ["---\n"]
    for key, value in fields.items():
        if isinstance(value, tuple):
            lines.append(f"{key}:\n" if value else f"{key}: []\n")
            lines.extend(f"- {quote(item)}\n" for item in value)
        elif value:
            lines.append(f"{key}: {quote(value)}\n")
    lines.extend(raw if raw.endswith("\n") else raw + "\n" for _, raw in extra)
    lines.append("---\n")
    return "".join(lines)


def quote(text: str) -> str:
    """Write a string as a YAML scalar on one line; a line break becomes a space, half a character U+FFFD.

    Plain only where every YAML 1.1 and 1.2 parser reads that very string, else in single quotes, or in double quotes
    where characters need an escape.
    """
    text = _SURROGATE.sub("\ufffd", one_line(text))
    if _ESCAPED.search(text):
        return '"' + _ESCAPED.sub(_escape, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'
    return text if _is_plain(text) else "'" + text.replace("'", "''") + "'"


def one_line(text: str) -> str:
    """Return the text with every line break (CRLF, CR or LF) turned into a space."""
    return _LINE_BREAK.sub(" ", text)


def _is_plain(text: str) -> bool:
    if _PLAIN_DIGITS.fullmatch(text):
        return True
    return (
        text[:1].isalpha()
        and not text[-1].isspace()
        and ":" not in text
        and "#" not in text
        and text.lower() not in _YAML_WORDS
    )


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _pairs(source: str) -> Iterator[tuple[str, Value, int]]:
    """Yield (key, value, where the key begins) from the one mapping that the source must be."""
    if _EXPLICIT_KEY.search(source):
        raise FrontMatterError(_NOT_AT_BEGINNING)
    events = _events(source)
    first = next(events, None)
    if first is None:
        return
    if not isinstance(first, yaml.MappingStartEvent) or first.flow_style:
        raise FrontMatterError("it is no list of keys with values")
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        if not isinstance(event, yaml.ScalarEvent) or _mark(event.start_mark).column:
            raise FrontMatterError(_NOT_AT_BEGINNING)
        yield event.value, _value(next(events), events, source), _mark(event.start_mark).index
    if next(events, None) is not None:
        raise FrontMatterError("it is more than one document")


def _events(source: str) -> Iterator[yaml.Event]:
    """Yield the events of nodes, refusing whatever could make one piece of text mean another."""
    for event in yaml.parse(source, Loader=yaml.CBaseLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise FrontMatterError("it uses an anchor or an alias")
        if getattr(event, "tag", None):
            raise FrontMatterError("it uses a tag")
        if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            yield event


def _value(event: yaml.Event, events: Iterator[yaml.Event], source: str) -> Value:
    if not isinstance(event, yaml.SequenceStartEvent):
        return _text(event, events, source)
    items = []
    for item in events:
        if isinstance(item, yaml.SequenceEndEvent):
            break
        items.append(_text(item, events, source))
    return tuple(items)


def _text(event: yaml.Event, events: Iterator[yaml.Event], source: str) -> str:
    if isinstance(event, yaml.ScalarEvent):
        return str(event.value)
    begin = _mark(event.start_mark).index
    depth = 1
    while depth:
        event = next(events)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
    return " ".join(source[begin : _mark(event.end_mark).index].split())


def _mark(mark: object) -> yaml.Mark:
    # The type stubs allow for events without marks; the C parser marks every one.
    return cast(yaml.Mark, mark)


def _first_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    # Line 1 of the file is the `---` above the source, and marks count from 0.
    return f"line {mark.line + 2}: {problem}" if mark else problem
