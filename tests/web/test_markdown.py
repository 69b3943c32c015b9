"""Messages as HTML: what must come out safe, whole and cheap, and what may be shown before a message is complete."""

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import markdown
from memory.markdown import GrowingMessage, render, render_person, split_blocks


def test_it_works() -> None:
    html = render("Hello **you**\nthere, ~~old~~ `x < 1`\n\n- one\n- two", final=True)
    assert "<p>Hello <strong>you</strong><br>\nthere, <s>old</s> <code>x &lt; 1</code></p>" in html
    assert "<ul>\n<li>one</li>\n<li>two</li>\n</ul>" in html


@pytest.mark.parametrize(
    ("source", "bold"),
    [
        ("**注意：**后文", "注意："),
        ("前文**“重点”**后文", "“重点”"),
        ("他说**（也许）**。", "（也许）"),
        ("太郎は**「こんにちは」**と言った", "「こんにちは」"),
        ("이것은 **강조(emphasis)**입니다", "강조(emphasis)"),
        ("使用**`git`**提交", "<code>git</code>"),
    ],
)
def test_emphasis_beside_text_without_spaces(source: str, bold: str) -> None:
    assert f"<strong>{bold}</strong>" in render(source, final=True)


@pytest.mark.parametrize("source", ["snake_case_name", "2 * 3 * 4", "a ** b", '**"a"**b', "中文_not_emphasis_中文"])
def test_what_is_no_emphasis_stays_none(source: str) -> None:
    html = render(source, final=True)
    assert "<em>" not in html
    assert "<strong>" not in html


@pytest.mark.parametrize(
    "source",
    [
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "<script>alert(1)</script>",
        "```\n<form action=x><input></form>\n```",
        "    <iframe src=x>",
        "`<b onclick=x>`",
        "| <u>a</u> |\n|---|\n| <style>*{}</style> |",
        '[x](https://a.example "<img src=x>")',
        "```<script>\nx\n```",
    ],
)
def test_markup_in_a_message_is_text(source: str) -> None:
    html = render(source, final=True)
    for tag in ("<img", "<svg", "<script", "<form", "<iframe", "<b ", "<u>", "<style"):
        assert tag not in html.replace('title="<img', "")
    assert "style=" not in html


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#106;avascript:alert(1)",
        "&#x6A;avascript&colon;alert(1)",
        "java&Tab;script:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//elsewhere.example/x",
        "/accounts/logout/",
        "\\\\elsewhere.example",
    ],
)
def test_only_web_and_mail_addresses_become_links(address: str) -> None:
    for source in (f"[go]({address})", f"[go](<{address}>)", f"[go][1]\n\n[1]: {address}", f"![go]({address})"):
        assert "href" not in render(source, final=True)


def test_links_open_outside_and_say_nothing_about_us() -> None:
    html = render("[a](https://a.example/?q=1&r=2) <mailto:alice@example.org>", final=True)
    assert '<a href="https://a.example/?q=1&amp;r=2" target="_blank" rel="noopener nofollow">a</a>' in html
    assert 'href="mailto:alice@example.org"' in html


def test_pictures_become_links_so_that_nothing_is_fetched() -> None:
    source = "![a *plan*](http://e.example/p.png?d=secret) [![map](http://e.example/m.png)](http://e.example)"
    html = render(source, final=True)
    assert "<img" not in html
    assert 'href="http://e.example/p.png?d=secret"' in html
    assert ">a plan</a>" in html
    assert html.count("<a ") == 2
    assert ">map</a>" in html


def test_marks_of_direction_end_with_their_text() -> None:
    assert render("a\u202eb **c**", final=True).startswith("<p><bdi>a\u202eb </bdi><strong>")
    assert "<code><bdi>\u2067x</bdi></code>" in render("`\u2067x`", final=True)


def test_cells_are_aligned_by_class() -> None:
    html = render("| a | b |\n|:-:|--:|\n| 1 | 2 |", final=True)
    assert '<th class="align-center">a</th>' in html
    assert '<td class="align-right">2</td>' in html


def test_code_is_coloured_when_the_reply_is_finished() -> None:
    source = "```python\nreturn '<b>'\n```"
    assert 'class="hl-k"' in render(source, final=True)
    assert "&lt;b&gt;" in render(source, final=True)
    assert render(source, final=False) == "<pre><code class=\"language-python\">return '&lt;b&gt;'\n</code></pre>\n"
    assert "hl-" not in render("```no-such-language\nreturn\n```", final=True)


def test_a_person_sees_what_they_typed() -> None:
    assert render_person("  **a**\n<b>\n\n c") == '<p class="verbatim" dir="auto">  **a**\n&lt;b&gt;\n\n c</p>'


HOSTILE = {
    "dense emphasis": "**a**" * 16_000,
    "deep quotes": ">" * 5_000 + "a",
    "spaced quotes": "> " * 5_000 + "a",
    "deep brackets": "[" * 5_000,
    "deep pictures": "![" * 5_000,
    "deep list": "- " * 5_000 + "a",
    "mixed nesting": "- > " * 2_000 + "a",
    "open links": "[a](" * 5_000,
    "nested links": "[" * 5_000 + "a" + "]" * 5_000,
    "mixed emphasis": "*a **b " * 5_000,
    "backticks": " ".join("`" * length for length in range(1, 600)),
    "broken labels": "[\n" * 15_000,
    "broken titles": "[a]: b '\n" * 5_000,
    "dashes": "-|-\n" * 15_000,
    "wide table": "|a" * 5_000 + "|\n" + "|-" * 5_000 + "|\n" + "|\n" * 500,
    "long table": "|a|b|\n|-|-|\n" + "|\n" * 15_000,
    "lazy quote": "> a\n" + "b\n" * 15_000,
    "many lines": "a\n" * 200_000,
    "one long line": "a" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_is_dear(name: str) -> None:
    """Against a reading that never ends: processor time, far above the budget. Speed is the benchmarks' matter."""
    source = HOSTILE[name]
    begun = time.thread_time()
    html = render(source, final=True)
    GrowingMessage().grow(source)
    assert time.thread_time() - begun < 5
    assert len(html) >= len(source.strip()) // 4


@pytest.mark.parametrize("source", ["> " * 100 + "inmost", "- " * 60 + "inmost", "x" * 200_001 + " inmost"])
def test_what_is_too_deep_or_too_long_is_shown_whole_as_plain_text(source: str) -> None:
    html = render(source, final=True)
    assert html.startswith('<pre class="plain"')
    assert "inmost" in html


def test_a_message_that_breaks_the_parser_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise IndexError

    with monkeypatch.context() as patched:
        patched.setattr(markdown.MESSAGES, "parse", broken)
        assert render("a <b>", final=True) == '<pre class="plain" dir="auto">\na &lt;b&gt;</pre>'
    assert render("a", final=True) == "<p>a</p>\n"


def test_an_open_fence_is_shown_as_code() -> None:
    assert render("a\n\n```py\nx <", final=False) == '<p>a</p>\n<pre><code class="language-py">x &lt;</code></pre>\n'


PIECES = st.sampled_from(
    [
        "a", "b c", "\n", "\n\n", "  ", "    ", "- ", "1. ", "2", "> ", "# ", "```", "~~~", "---", "===", "| x | y |",
        "|---|---|", "**", "*", "_", "`", "：", "中文", "[a]", "(https://e.example)", "\r\n", "\r", "\t", "<b>", "\\",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=40).map("".join)


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_blocks_and_tail_are_the_text(text: str) -> None:
    blocks, tail = split_blocks(text)
    assert "".join(blocks) + tail == text


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS)
def test_a_finished_block_stays_as_it_is(text: str, more: str) -> None:
    blocks, _ = split_blocks(text)
    later, _ = split_blocks(text + more)
    assert later[: len(blocks)] == blocks


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=6))
def test_a_message_looks_the_same_however_it_came(texts: list[str]) -> None:
    message, shown, tail = GrowingMessage(), "", ""
    for text in itertools.accumulate(texts):
        growth = message.grow(text)
        shown = growth.blocks if growth.anew else shown + growth.blocks
        tail = growth.tail
    assert shown + tail == render("".join(texts), final=False)


def test_a_late_definition_changes_what_was_shown() -> None:
    message = GrowingMessage()
    assert "<a " not in message.grow("see [it]\n\nnext\n\n").blocks
    growth = message.grow("see [it]\n\nnext\n\n[it]: https://e.example\n\nand\n\nlast")
    assert growth.anew
    assert growth.blocks == render("see [it]\n\nnext\n\n[it]: https://e.example\n\n", final=False)
    assert 'href="https://e.example"' in growth.blocks
