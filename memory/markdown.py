"""Messages as HTML: Markdown of a model made safe, and what a person typed shown as typed.

markdown-it reads it without HTML, nh3 lets only a short list of tags through, and nothing of the result loads anything
from elsewhere. Every message is shown: one that is too long, nested too deep or too slow to read is shown as plain
text. Rules and limits for reading stand in `markdown_rules.py`.
"""

import logging
import re
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import pairwise
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import _TokenType
from pygments.util import ClassNotFound

from .markdown_rules import BLOCKS, MESSAGES, Budget, TooMuch, too_deep

MAX_CHARS = 200_000
MAX_MARKS = 40_000
MAX_LINES = 20_000
MAX_COLOURED_CHARS = 20_000
COLOURING_SECONDS = 0.1

References = MutableMapping[str, Any]
"""Link reference definitions seen so far, by normalised label."""

log = logging.getLogger(__name__)

_MARK = re.compile(r"[*_~`\[\]!<&|\\]")
_LINE_END = re.compile(r"\r\n|\n|\r")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")

_CLEANER = nh3.Cleaner(
    tags={
        "a", "bdi", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
        "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
    },
    attributes={
        "a": {"href", "title"}, "code": {"class"}, "ol": {"start"}, "pre": {"class"}, "span": {"class"},
        "td": {"class"}, "th": {"class"},
    },
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)  # fmt: skip


def render(text: str, *, final: bool, references: References | None = None) -> SafeString:
    """A message as HTML. `final` also colours code, which is worth it once, when the message changes no more.

    `references` holds the link definitions of the text before this one and takes in those of this one.
    """
    try:
        return mark_safe(_CLEANER.clean(_read(text, final, references)))  # noqa: S308 - cleaned by the allow-list
    except TooMuch:
        return plain(text)
    except Exception as error:  # a message that the parser cannot digest must not take the page down
        log.warning("a message of %d characters is shown as plain text: %r", len(text), type(error))
        return plain(text)


def render_person(text: str) -> SafeString:
    """What a person typed, as typed: nothing is markup, and the style sheet keeps line breaks and spaces."""
    return mark_safe(f'<p class="verbatim" dir="auto">{escape(text)}</p>')  # noqa: S308 - escaped


def plain(text: str) -> SafeString:
    """A message that cannot be shown as Markdown, whole, as plain text."""
    return mark_safe(f'<pre class="plain" dir="auto">\n{escape(text)}</pre>')  # noqa: S308 - escaped


def _read(text: str, final: bool, references: References | None) -> str:
    """The message as HTML before the allow-list; raises TooMuch."""
    if len(text) > MAX_CHARS or text.count("\n") > MAX_LINES or sum(1 for _ in _MARK.finditer(text)) > MAX_MARKS:
        raise TooMuch
    env: dict[str, Any] = {"budget": _budget(text), "references": {} if references is None else references}
    tokens = MESSAGES.parse(text, env)
    if too_deep(tokens):
        raise TooMuch
    if final:
        env["colour"] = colour
    return str(MESSAGES.renderer.render(tokens, MESSAGES.options, env))


def _budget(text: str) -> Budget:
    """Several times what an ordinary message of this length takes on a small machine."""
    return Budget(0.15 + 4e-6 * min(len(text), MAX_CHARS))


def colour(code: str, language: str) -> str | None:
    """Code with Pygments classes (prefix `hl-`), None when it is not to be coloured: unknown language, long or slow."""
    if len(code) > MAX_COLOURED_CHARS or not _LANGUAGE.fullmatch(language):
        return None
    try:
        lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    coloured = StringIO()
    try:
        tokens = _within(Budget(COLOURING_SECONDS), lexer.get_tokens(code))
        HtmlFormatter(nowrap=True, classprefix="hl-").format(tokens, coloured)
    except TooMuch:
        return None
    return coloured.getvalue()


def _within(budget: Budget, tokens: Iterable[tuple[_TokenType, str]]) -> Iterator[tuple[_TokenType, str]]:
    for token in tokens:
        budget.check()
        yield token


def split_blocks(text: str) -> tuple[list[str], str]:
    """The blocks of a growing message that cannot change any more, and the rest; together they are the text.

    Only lines that are complete say anything about blocks, and the last block that they hold may still go on: a list
    takes in further items, a paragraph turns into a heading. Raises TooMuch when reading takes too long.
    """
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    if text.endswith("\r"):
        starts.pop()  # the next character may be the LF of this line break
    tokens = BLOCKS.parse(text[: starts[-1]], {"budget": _budget(text)})
    lines = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
    edges = [0, *(starts[line] for line in lines[1:])]
    return [text[begin:end] for begin, end in pairwise(edges)], text[edges[-1] :]


@dataclass(frozen=True)
class Growth:
    """What became of a growing message: the blocks finished since the last look, and its last, unfinished block.

    With `anew`, `blocks` are all finished blocks: a link definition changed what had been rendered before.
    """

    blocks: SafeString
    tail: SafeString
    anew: bool = False


class GrowingMessage:
    """Renders a message that is still being written; a finished block is rendered once and never looked at again."""

    def __init__(self) -> None:
        self._done = 0
        self._references: References = {}

    def grow(self, text: str) -> Growth:
        """The message is now `text`, which begins with what it was before."""
        known = len(self._references)
        try:
            sources, rest = split_blocks(text[self._done :])
        except TooMuch:
            return Growth(SafeString(), plain(text[self._done :]))
        blocks = SafeString("".join(render(source, final=False, references=self._references) for source in sources))
        self._done = len(text) - len(rest)
        tail = render(rest, final=False, references=dict(self._references))
        if len(self._references) == known:
            return Growth(blocks, tail)
        return Growth(render(text[: self._done], final=False, references=self._references), tail, anew=True)
