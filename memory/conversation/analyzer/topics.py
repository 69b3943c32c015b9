"""Tags against the strands there are: what is offered to the model, and what its tags come to.

A new tag that differs from an existing strand in nothing but capitals and in hyphens, underscores and spaces
(`wedding-speech`, `Wedding Speech`, `wedding_speech`) is that strand, so that no twin of it is ever made.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memory.conversation.quoting import quoted_line
from memory.conversation.window import tokens
from memory.folder.marks import named_strands
from memory.folder.strands import Merge, Strands, key_for, normalise

MOST_OFFERED = 200
_LONGEST_SHOWN = 100
_LOOKED_THROUGH = 30_000  # characters at either end of a text; each strand may cost a search through them

_BETWEEN_WORDS = re.compile(r"[\s_‐‑–-]+")


def twin_form(tag: str) -> str:
    """What twins have in common; empty when the text is no tag."""
    return _BETWEEN_WORDS.sub(" ", normalise(tag)).strip().casefold()


def newest_first(strands: Strands) -> list[str]:
    """The keys by their newest slice, then by name."""
    by_name = sorted(strands)
    return sorted(by_name, key=lambda key: strands[key][-1] if strands[key] else "", reverse=True)


@dataclass(frozen=True, kw_only=True)
class Topics:
    """The strands there are, and the lines by which some of them are offered to the model."""

    strands: Strands
    merges: Mapping[str, tuple[Merge, ...]]
    _shown: dict[str, str] = field(repr=False)
    _twins: dict[str, str] = field(repr=False)

    @property
    def lines(self) -> list[str]:
        """A line for each strand that is offered."""
        return [f"- {shown}" for shown in self._shown]

    def existing(self, tag: str) -> str:
        """The strand this tag names: by the line that was offered, by its key after merges, as a twin; else empty."""
        if tag.strip() in self._shown:
            return self._shown[tag.strip()]
        key = key_for(tag, self.merges, self.strands)
        if key in self.strands:
            return key
        return self._twins.get(twin_form(key), "") if key else ""

    def new(self, tag: str) -> str:
        """The key a tag makes that names no strand; empty when it is no tag."""
        return key_for(tag, self.merges, ())

    def keys(self, tags: Iterable[str]) -> tuple[str, ...]:
        """The strands, existing and new, that these tags come to, each once; of twins among them the first."""
        found: dict[str, str] = {}
        for tag in tags:
            if key := self.existing(tag) or self.new(tag):
                found.setdefault(twin_form(key) or key, key)
        return tuple(found.values())


class _Sorted:
    """The keys of the strands looked at last, in order, and their twin forms: the same strands come turn after turn."""

    def __init__(self, strands: Strands) -> None:
        self.of = strands
        self.newest = newest_first(strands)
        self.twins: dict[str, str] = {}
        for key in self.newest:
            self.twins.setdefault(twin_form(key), key)


_last = _Sorted({})


def _sorted(strands: Strands) -> _Sorted:
    global _last
    found = _last
    if found.of is not strands:
        found = _last = _Sorted(strands)
    return found


def topics(text: str, strands: Strands, merges: Mapping[str, tuple[Merge, ...]], *, limit: int) -> Topics:
    """Offer at most 200 strands within `limit` tokens: those named in `text` first, then the most recent."""
    known = _sorted(strands)
    if len(text) > 2 * _LOOKED_THROUGH:
        text = f"{text[:_LOOKED_THROUGH]}\n{text[-_LOOKED_THROUGH:]}"
    shown: dict[str, str] = {}
    for key in dict.fromkeys((*named_strands(text, strands), *known.newest)):
        line = quoted_line(key, _LONGEST_SHOWN)
        limit -= tokens(line) + 2
        if len(shown) == MOST_OFFERED or limit < 0:
            break
        shown.setdefault(line, key)
    return Topics(strands=strands, merges=merges, _shown=shown, _twins=known.twins)
