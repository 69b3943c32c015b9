"""How Markdown is read here: CommonMark with tables and strikethrough, without HTML, with three rules of our own.

Emphasis works next to Chinese, Japanese and Korean text; pictures become links, so that nothing is fetched; and reading
has a budget of processor time, so that no message can hold a page up.
"""

import re
import time
import unicodedata
from collections.abc import Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

MAX_NESTING = 40

_LINK = re.compile(r"(?:https?://|mailto:)[^\s\\]+", re.IGNORECASE)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


class TooMuch(Exception):
    """The message is too long, too deep or takes too long to be read as Markdown."""


class Budget:
    """Processor time of this thread that reading may take; a busy machine does not use it up."""

    def __init__(self, seconds: float) -> None:
        self._until = time.thread_time() + seconds
        self._checks = 0

    def check(self) -> None:
        """Raise TooMuch when it is spent; looks at the clock at every 16th call."""
        self._checks += 1
        if self._checks % 16 == 0 and time.thread_time() > self._until:
            raise TooMuch


def too_deep(tokens: Sequence[Token]) -> bool:
    """Whether a block stands at the deepest level: what was inside it has been left out by the parser."""
    return any(token.level >= MAX_NESTING - 1 for token in tokens)


class _InlineState(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803 - the parser's own name
        """Whether a run of `*`, `_` or `~` may open and close emphasis.

        CommonMark asks for a space or punctuation beside a run that has punctuation on its other side. Text without
        spaces between words has neither: in `**注意：**后文` nothing would be bold. So punctuation of these scripts
        counts as a letter, and their letters count as a border beside other punctuation.
        """
        end = start
        while end < self.posMax and self.src[end] == self.src[start]:
            end += 1
        before = self.src[start - 1] if start > 0 else " "
        after = self.src[end] if end < self.posMax else " "
        left, right = _flanks(after, before), _flanks(before, after)
        if canSplitWord:
            return Scanned(left, right, end - start)
        return Scanned(
            left and (not right or _punctuation(before)), right and (not left or _punctuation(after)), end - start
        )


def _flanks(inner: str, outer: str) -> bool:
    """Whether a run with `inner` on the side of the emphasised text and `outer` on the other may border it."""
    if isWhiteSpace(ord(inner)):
        return False
    if not _punctuation(inner) or _CJK.match(inner):
        return True
    return isWhiteSpace(ord(outer)) or _punctuation(outer) or _CJK.match(outer) is not None


def _punctuation(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


class _Inline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _InlineState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _inline_budget(state: StateInline, silent: bool) -> bool:
    state.env["budget"].check()
    return False


def _block_budget(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    state.env["budget"].check()
    return False


def _pictures_to_links(state: StateCore) -> None:
    """A picture becomes a link to it, named by its alternative text; inside a link only that text."""
    for block in state.tokens:
        if block.children and any(token.type == "image" for token in block.children):
            block.children = _without_pictures(block.children)


def _without_pictures(tokens: list[Token]) -> list[Token]:
    result: list[Token] = []
    in_link = False
    for token in tokens:
        if token.type in ("link_open", "link_close"):
            in_link = token.type == "link_open"
        if token.type != "image":
            result.append(token)
            continue
        address = str(token.attrs.get("src", ""))
        name = Token("text", "", 0, content=_plain_words(token.children or []) or address)
        if in_link:
            result.append(name)
        else:
            result += [Token("link_open", "a", 1, attrs={"href": address}), name, Token("link_close", "a", -1)]
    return result


def _plain_words(tokens: list[Token]) -> str:
    return "".join(_plain_words(token.children) if token.children else token.content for token in tokens)


class _Renderer(RendererHTML):
    """The HTML of the tokens that differ from markdown-it's own. Methods are named by token type, as it wants them."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _isolated(tokens[idx].content)

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<code>{_isolated(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<pre><code>{escape(tokens[idx].content)}</code></pre>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
        named = f' class="language-{escape(language)}"' if language else ""
        coloured = env["colour"](token.content, language) if "colour" in env else None
        return f"<pre><code{named}>{escape(token.content) if coloured is None else coloured}</code></pre>\n"

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<{_heading(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{_heading(tokens[idx])}>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])


def _isolated(text: str) -> str:
    """Escaped text; marks that change the writing direction work inside it and end with it."""
    return f"<bdi>{escape(text)}</bdi>" if _BIDI.search(text) else escape(text)


def _heading(token: Token) -> str:
    """One level down: the page has its own first heading."""
    return f"h{min(6, int(token.tag[1:]) + 1)}"


def _cell(token: Token) -> str:
    """A table cell; its alignment as a class, since pages allow no inline style."""
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="align-{side}">' if side else f"<{token.tag}>"


def _valid_link(address: str) -> bool:
    """Only addresses that leave the site and name how; the parser has decoded entities and escapes before."""
    return _LINK.fullmatch(address) is not None and not any(unicodedata.category(c) == "Cc" for c in address)


def _parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "maxNesting": MAX_NESTING}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    parser.inline = _Inline()
    parser.configure("commonmark", options).enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])
    setattr(parser, "validateLink", _valid_link)  # noqa: B010 - the parser offers no other way to set it
    parser.inline.ruler.before("text", "budget", _inline_budget)
    interrupting = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("table", "budget", _block_budget, {"alt": interrupting})
    parser.core.ruler.push("pictures", _pictures_to_links)
    return parser


def _block_parser() -> MarkdownIt:
    parser = _parser()
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _warm(parser: MarkdownIt) -> MarkdownIt:
    """Make the parser put its rules in order now: doing so later, in two threads at once, is not safe."""
    parser.parse("*a*", {"budget": Budget(1)})
    return parser


MESSAGES = _warm(_parser())
"""Reads a whole message."""

BLOCKS = _warm(_block_parser())
"""Reads only where the blocks of a message begin and end."""
