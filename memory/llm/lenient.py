"""JSON as models write it when nothing holds them to it.

Read beside proper JSON: single and curly quotes, quotes inside a text that were not escaped, bare keys and words, the
literals of Python, tuples, comments, commas too many or too few, raw line breaks in texts, and an end that never came,
in which case what was complete by then is kept. Reading takes time in proportion to the length.
"""

import re
from typing import Any

DEEPEST = 40

_CLOSES = {"{": "}", "[": "]", "(": ")"}
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BARE = re.compile(r"[^,:\[\]{}()\"'\n]+")
_PLAIN = re.compile(r"[^\\\"'“”‘’`]+")
_NUMBER = re.compile(r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,3})?")
_WORDS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class Unreadable(ValueError):
    """The text at this place is nothing that we can read."""


def parse(text: str, at: int = 0) -> tuple[Any, int]:
    """The object, list or quoted text that begins at `at`, and where it ends. Raises Unreadable."""
    reader = _Reader(text, at)
    value = reader.value(0)
    if value is _CUT:
        raise Unreadable("the end is missing")
    return value, reader.at


_CUT = object()
"""Stands for a value whose end is missing."""


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise Unreadable("nested too deeply")
        begins = self._peek()
        if begins == "{":
            return self._object(depth)
        if begins in _CLOSES:
            return self._list(depth, _CLOSES[begins])
        if begins in _QUOTES:
            return self._quoted(_QUOTES[begins])
        return self._bare()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while (begins := self._peek()) not in ("", "}"):
            if begins == ",":
                self.at += 1
                continue
            key = self._quoted(_QUOTES[begins]) if begins in _QUOTES else self._bare()
            if self._peek() == "":
                return found
            if self._peek() != ":":
                raise Unreadable("a name without a value")
            self.at += 1
            value = self.value(depth + 1)
            if value is _CUT:
                return found
            found[str(key)] = value
        self.at += 1
        return found

    def _list(self, depth: int, closes: str) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while (begins := self._peek()) not in ("", closes):
            if begins == ",":
                self.at += 1
                continue
            value = self.value(depth + 1)
            if value is _CUT:
                return found
            found.append(value)
        self.at += 1
        return found

    def _quoted(self, closes: str) -> Any:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            if plain := _PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
                continue
            character = self.text[self.at]
            self.at += 1
            if character == "\\":
                parts.append(self._escape())
            elif character == closes and self._really_closes():
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            else:
                parts.append(character)
        return _CUT

    def _really_closes(self) -> bool:
        """Whether a quotation mark ends its text: one in the middle of a sentence, not escaped, does not."""
        after = self.at
        while self.text[after : after + 1].isspace():
            after += 1
        following = self.text[after : after + 1]
        return following == "" or following in ",:}])#/" or "\n" in self.text[self.at : after]

    def _escape(self) -> str:
        character = self.text[self.at : self.at + 1]
        self.at += 1
        if character == "u" and (digits := _HEX.match(self.text, self.at)):
            self.at = digits.end()
            return chr(int(digits[0], 16))
        # A backslash before anything else was meant as one: \d, \s, C:\Users.
        return _ESCAPES.get(character, character if character in "\"'\\/`" else f"\\{character}")

    def _bare(self) -> Any:
        found = _BARE.match(self.text, self.at)
        if found is None:
            raise Unreadable("nothing that could be a value")
        self.at = found.end()
        word = found[0].strip()
        if self.at == len(self.text):
            return _CUT  # it may have gone on
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if _NUMBER.fullmatch(word):
            return float(word) if any(sign in word for sign in ".eE") else int(word)
        return word

    def _peek(self) -> str:
        """The next character that is neither white space nor comment, '' at the end."""
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]
