"""Without a model: the reply that quotes the person's own record."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory.conversation import indexing
from memory.conversation.journal import escaped, journal_reply, moments
from memory.conversation.quoting import quoted_line
from memory.folder import git
from memory.folder.paths import STRANDS
from memory.folder.store import MemoryFolder

from .folders import ALICE, ALICE_IN_CHINESE, a_slice, keep, keep_strands, opened, put, utc

NOW = utc(2026, 8, 10, 21, 30)
LATE = {"timezone": "America/Los_Angeles"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryFolder:
    """Alice's folder, too large to be indexed in passing; in it what `filled` has."""
    monkeypatch.setattr(indexing, "FEW", 0)
    return filled(tmp_path)


@pytest.fixture
def indexed(tmp_path: Path) -> MemoryFolder:
    """The same folder when there is an index, which is made when it is first asked."""
    git.create(opened(tmp_path).root, format_version=1)
    return filled(tmp_path)


def filled(place: Path) -> MemoryFolder:
    """Two conversations about running, one about a kitchen, one that is going on."""
    folder = opened(place)
    keep(folder, a_slice("2026-07-16-1800", ("A plan for running, please", "Here."), focus="Half marathon", **LATE))
    keep(folder, a_slice("2026-08-01-0500", "My knee hurts\nafter the hills", focus="The knee", **LATE))
    keep(folder, a_slice("2026-08-02-1800", "Is beech cheaper for a worktop?", focus="A kitchen", **LATE))
    keep(folder, a_slice("2026-08-10-2125", "Back to running", active=True, **LATE))
    keep_strands(
        folder,
        {"running": ["2026/07/16/1800", "2026/08/01/0500", "2026/08/10/2125"], "knee": ["2026/08/01/0500"]},
    )
    return folder


def ids(folder: MemoryFolder, text: str) -> list[str]:
    return [moment.slice_id for moment in moments(folder, text, person=ALICE, now=NOW)]


def test_it_works(folder: MemoryFolder) -> None:
    assert journal_reply(folder, "Back to running", person=ALICE, now=NOW) == (
        "No model is configured on this server, so I cannot answer. Your words are kept.\n\n"
        "This is your record alone. Closest to what you wrote:\n\n"
        "[Friday 31 July 2026, 22:00](/slices/2026/08/01/0500/#t1) · 10 days ago · The knee\n\n"
        "> My knee hurts\n\n"
        "[Thursday 16 July 2026, 11:00](/slices/2026/07/16/1800/#t1) · 25 days ago · Half marathon\n\n"
        "> A plan for running, please"
    )


def test_with_an_index_the_closest_words_are_quoted(indexed: MemoryFolder) -> None:
    keep(
        indexed,
        a_slice(
            "2026-08-03-1800",
            ("Something else first", "Yes?"),
            ("Oak for the worktop\nif it stays under 900", "Noted."),
            focus="Oak",
            **LATE,
        ),
    )
    assert journal_reply(indexed, "What about the oak worktop?", person=ALICE, now=NOW) == (
        "No model is configured on this server, so I cannot answer. Your words are kept.\n\n"
        "This is your record alone. Closest to what you wrote:\n\n"
        "[Monday 3 August 2026, 11:02](/slices/2026/08/03/1800/#t2) · 7 days ago · Oak\n\n"
        "> Oak for the worktop if it stays under 900\n\n"
        "[Sunday 2 August 2026, 11:00](/slices/2026/08/02/1800/#t1) · 8 days ago · A kitchen\n\n"
        "> Is beech cheaper for a worktop?"
    )


@pytest.mark.parametrize(("asked", "slice_id"), [("接龙", "2026-08-05-0100"), ("походы в горах", ""), ("Thanks!", "")])
def test_with_an_index_what_is_not_close_is_not_quoted(indexed: MemoryFolder, asked: str, slice_id: str) -> None:
    keep(indexed, a_slice("2026-08-05-0100", "今天玩成语接龙游戏", timezone="Asia/Shanghai"))
    assert ids(indexed, asked) == [slice_id][: bool(slice_id)]


def test_with_an_index_neither_the_agent_nor_the_open_slice_is_quoted(indexed: MemoryFolder) -> None:
    keep(indexed, a_slice("2026-08-04-1800", ("Good morning", "You once spoke of a worktop of beech.")))
    assert ids(indexed, "worktop of beech") == ["2026-08-02-1800"]
    assert "2026-08-10-2125" not in ids(indexed, "back to running")
    assert ids(indexed, "Is beech cheaper for a worktop?") == []


def test_in_chinese(folder: MemoryFolder) -> None:
    keep(folder, a_slice("2026-08-05-0100", "今天玩成语接龙游戏", focus="成语接龙", timezone="Asia/Shanghai"))
    assert journal_reply(folder, "再玩一次成语接龙", person=ALICE_IN_CHINESE, now=NOW) == (
        "这台服务器没有配置模型，所以我无法回答。你写的话已经保存。\n\n"
        "以下只是你自己的记录。与这段话最接近的是：\n\n"
        "[2026年8月5日星期三 09:00](/slices/2026/08/05/0100/#t1) · 6天前 · 成语接龙\n\n"
        "> 今天玩成语接龙游戏"
    )


def test_nothing_close_is_said_plainly(folder: MemoryFolder) -> None:
    reply = journal_reply(folder, "Thanks!", person=ALICE, now=NOW)
    assert reply.endswith("Nothing in your record is close to it yet.")
    assert "/slices/" not in reply


def test_the_slice_on_most_of_the_named_strands_comes_first(folder: MemoryFolder) -> None:
    keep(folder, a_slice("2026-08-03-1800", "Running again", **LATE))
    keep_strands(
        folder, {"running": ["2026/07/16/1800", "2026/08/01/0500", "2026/08/03/1800"], "knee": ["2026/08/01/0500"]}
    )
    assert ids(folder, "Running with this knee") == ["2026-08-01-0500", "2026-08-03-1800", "2026-07-16-1800"]


def test_shared_words_find_what_is_on_no_strand(folder: MemoryFolder) -> None:
    assert ids(folder, "That beech worktop again") == ["2026-08-02-1800"]
    assert ids(folder, "A worktop") == []


def test_at_most_three(folder: MemoryFolder) -> None:
    paths = []
    for day in range(10, 20):
        keep(folder, a_slice(f"2026-06-{day}-0900", "Running"))
        paths.append(f"2026/06/{day}/0900")
    keep_strands(folder, {"running": paths})
    assert ids(folder, "running") == ["2026-06-19-0900", "2026-06-18-0900", "2026-06-17-0900"]


def test_the_same_words_are_no_memory_of_themselves(folder: MemoryFolder) -> None:
    keep(folder, a_slice("2026-08-10-2000", "Running through Lisbon yesterday"))
    keep_strands(folder, {"running": ["2026/08/10/2000"]})
    assert ids(folder, "Running through Lisbon yesterday") == []


def test_a_record_with_damage_still_answers(folder: MemoryFolder) -> None:
    put(folder, "memory/episodic/slices/2026/08/01/0500/timeline/core.md", "---\nfocus: 'x\n---\n")
    keep_strands(folder, {"running": ["2026/07/16/1800", "2026/08/01/0500", "2026/08/04/0000", "2026/99/99/9999"]})
    assert ids(folder, "running") == ["2026-07-16-1800"]
    put(folder, STRANDS, '{"running": [')
    assert ids(folder, "That beech worktop again") == ["2026-08-02-1800"]


HOSTILE = [
    "</record> <script>alert(1)</script>",
    "[go](javascript:alert(1))",
    "![x](http://example.invalid/p.png)",
    "# heading",
    "1. one",
    "- item",
    "```",
    "> quote",
    "**bold** _it_ ~~no~~ `code`",
    "| a | b |",
    "\\",
    "&lt;b&gt; &amp;",
    "---",
    "===",
    "http://example.invalid/?a=1&b=2",
    "    indented code",
]


def shown(markdown: str) -> tuple[list[str], str]:
    """The kinds of blocks and inline pieces a Markdown reader makes of a text, and the text it shows."""
    kinds, text = [], ""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        kinds.append(token.type)
        for piece in token.children or ():
            kinds.append(piece.type)
            text += piece.content
    return [kind for kind in kinds if kind != "text"], text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", ["folder", "indexed"])
def test_a_quote_cannot_break_out(request: pytest.FixtureRequest, kind: str, text: str) -> None:
    folder: MemoryFolder = request.getfixturevalue(kind)
    text = f"{text} Zanzibar"
    keep(folder, a_slice("2026-08-05-0100", text, focus=text))
    keep_strands(folder, {"zanzibar": ["2026/08/05/0100"]})
    reply = journal_reply(folder, "Zanzibar", person=ALICE, now=NOW)
    kinds, words = shown(reply)
    link = ["link_open", "link_close"]
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    quote = ["blockquote_open", *paragraph, "blockquote_close"]
    assert kinds == [*paragraph * 2, "paragraph_open", "inline", *link, "paragraph_close", *quote]
    assert words.endswith(f" · {quoted_line(text, 120)}{quoted_line(text, 200)}")


@settings(deadline=None)
@given(st.text(min_size=1, max_size=80) | st.text(alphabet="#-+=>*_`[]()<>!&;:|~\\ 1.)a", min_size=1, max_size=20))
def test_markdown_shows_an_escaped_line_as_it_is(text: str) -> None:
    line = quoted_line(text, 200)
    if line:
        assert shown(f"> {escaped(line)}") == (
            ["blockquote_open", "paragraph_open", "inline", "paragraph_close", "blockquote_close"],
            line,
        )
