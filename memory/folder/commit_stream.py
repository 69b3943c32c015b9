"""One commit in the language of `git fast-import`: all that a person wrote travels as counted or quoted data."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .errors import Outside

IDENTITY = "Previously <previously@localhost>"

_TO_QUOTE = re.compile(rb'[\x00-\x1f"\\\x7f]')
# Controls and line separators would break the line a subject is shown in, bidirectional marks would reorder it.
_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class Change:
    """A file as a commit leaves it: path from the repository root, and its bytes (None deletes it)."""

    path: str
    content: bytes | None


def checked(path: str) -> str:
    """The path if it names something in the folder; raises Outside."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise Outside(f"{path!r} is no path in the folder")
    return path


def path_bytes(path: str) -> bytes:
    """The path as git stores it."""
    return checked(path).encode("utf-8", "surrogateescape")


def render(branch: str, changes: Sequence[Change], message: str, *, parent: str | None, at: datetime) -> bytes:
    """The stream that makes this commit on this branch and prints the new id.

    It ends with `done`, which git insists on: if we die while writing it, nothing is committed.
    """
    if at.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    who = f"{IDENTITY} {int(at.timestamp())} +0000"
    pieces = [
        f"feature done\ncommit {branch}\nmark :1\nauthor {who}\ncommitter {who}\n".encode(),
        _data(_message(message)),
    ]
    if parent:
        pieces.append(f"from {parent}\n".encode())
    for change in changes:
        if change.content is None:
            pieces.append(b"D %s\n" % _quoted(change.path))
        else:
            pieces += [b"M 100644 inline %s\n" % _quoted(change.path), _data(change.content)]
    return b"".join([*pieces, b"get-mark :1\ndone\n"])


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quoted(path: str) -> bytes:
    return b'"%s"' % _TO_QUOTE.sub(lambda found: b"\\%03o" % ord(found[0]), path_bytes(path))


def _message(text: str) -> bytes:
    subject, _, body = text.strip().replace("\r\n", "\n").partition("\n")
    lines = [_clean(subject), "", *map(_clean, body.strip().split("\n"))]
    return ("\n".join(lines).strip() + "\n").encode()


def _clean(line: str) -> str:
    spaced = "".join(
        " " if unicodedata.category(char) in _BREAKING else char for char in line if char not in _REORDERING
    )
    return " ".join(spaced.split())
