"""agent.md: what a block holds, that nothing in it can forge another, and that reading gives back what was written."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.folder.cognition import (
    Block,
    DeepThought,
    Recalled,
    Reference,
    ToolCall,
    append_text,
    has_block,
    parse_blocks,
    recalled_paths,
    render_block,
    without_blocks,
)
from memory.folder.errors import BadId
from memory.folder.turns import clean

GOLDEN = Path(__file__).parents[1] / "golden"
AT = datetime(2026, 8, 10, 21, 30, 43, 641000, tzinfo=UTC)

FULL = Block(
    turn_id="mVhV2g",
    at=AT,
    thinking="Alice wants a plan.\n\nA budget first: she asked about the worktop in March.",
    tools=(
        ToolCall("recall", (("question", "worktop budget"),)),
        ToolCall("read_slice", (("slice_id", "2026-03-09-0745"),), error="no such slice"),
        ToolCall("current_time"),
    ),
    recalls=(
        Recalled(
            "worktop budget",
            confidence=0.8,
            references=(Reference("2026/03/09/0745", "Ab12cQ", "at most 800 for the worktop"),),
        ),
    ),
    deep=(DeepThought("Is 800 enough for oak?", "Only for laminate.\n\n### Why\nOak starts at 1,100."),),
)
UNFINISHED = Block(
    turn_id="q7Zk_w", at=AT + timedelta(minutes=1), unfinished="Let me think about\n## Cognition and more"
)


def texts_of(block: Block) -> dict[str, str]:
    (placed,) = parse_blocks(render_block(block))
    return dict(placed.sections)


def tool_line(call: ToolCall) -> str:
    return texts_of(Block(turn_id="a", at=AT, tools=(call,)))["Tools"]


def test_it_works():
    text = append_text("", FULL)
    text += append_text(text, UNFINISHED)
    assert text == (GOLDEN / "agent.md").read_text(encoding="utf-8")
    first, second = parse_blocks(text)
    assert (first.turn_id, first.at) == ("mVhV2g", AT)
    assert [title for title, _ in first.sections] == ["Thinking", "Tools", "Recall", "Deep thought"]
    assert dict(first.sections)["Thinking"] == FULL.thinking
    assert dict(first.sections)["Deep thought"].endswith("**A** Only for laminate.\n\n### Why\nOak starts at 1,100.")
    assert second.sections == (("Unfinished reply", UNFINISHED.unfinished),)


@pytest.mark.parametrize("thinking", ["", " \n\t\n"])
def test_a_turn_without_cognition_writes_no_block(thinking):
    block = Block(turn_id="mVhV2g", at=AT, thinking=thinking)
    assert render_block(block) == ""
    assert append_text("", block) == ""


def test_a_section_with_nothing_in_it_is_left_out():
    assert texts_of(Block(turn_id="mVhV2g", at=AT, thinking="Hm.", unfinished="\n")) == {"Thinking": "Hm."}


def test_writing_the_same_block_twice_changes_nothing():
    text = append_text("", FULL)
    assert append_text(text, FULL) == ""
    assert append_text(text, UNFINISHED) != ""
    later = Block(turn_id=FULL.turn_id, at=AT + timedelta(milliseconds=1), thinking="Again.")
    assert append_text(text, later) != ""


def test_a_turn_id_that_could_not_be_read_back_is_refused():
    with pytest.raises(BadId):
        render_block(Block(turn_id="no id", at=AT, thinking="Hm."))


TEXT = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["\n", "## Cognition ", "### ", "### Tools", "\\", "#", "mVhV2g — 2026-08-10T21:30:43.641Z", " ", "x"]
        )
    ).map("".join),
)


@example("", "", "", "a carriage return\r")
@given(TEXT, TEXT, TEXT, TEXT)
def test_reading_gives_back_what_was_written(thinking, question, answer, unfinished):
    first = Block(
        turn_id="mVhV2g", at=AT, thinking=thinking, deep=(DeepThought(question, answer),), unfinished=unfinished
    )
    text = append_text("", first)
    text += append_text(text, UNFINISHED)
    found, last = parse_blocks(text)
    expected = [
        ("Thinking", clean(thinking)),
        ("Deep thought", f"**Q** {clean(question)}\n**A** {clean(answer)}"),
        ("Unfinished reply", clean(unfinished)),
    ]
    assert list(found.sections) == [(title, written) for title, written in expected if written.strip()]
    assert last.sections == (("Unfinished reply", UNFINISHED.unfinished),)


@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=7), st.one_of(st.none(), st.text()))
def test_a_tool_call_is_one_line_whatever_the_model_asked_for(name, parameters, error):
    line = tool_line(ToolCall(name, tuple(parameters), error))
    assert "\n" not in line
    assert line.startswith("- `")
    assert (" → ok" if error is None else " → error: ") in line


def test_parameters_values_and_errors_are_cut():
    many = tuple((f"p{number}", "x") for number in range(7))
    assert tool_line(ToolCall("recall", many)) == '- `recall`(p0: "x", p1: "x", p2: "x", p3: "x", p4: "x") → ok'
    assert tool_line(ToolCall("recall", (("question", "x" * 80),))) == f'- `recall`(question: "{"x" * 80}") → ok'
    assert tool_line(ToolCall("recall", (("question", "x" * 81),))) == f'- `recall`(question: "{"x" * 79}…") → ok'
    assert tool_line(ToolCall("recall", (), "x" * 201)) == f"- `recall`() → error: {'x' * 199}…"
    assert tool_line(ToolCall("a`b", (("q", 'say "hi"\nthere'),), "no\nway")) == (
        '- `a\'b`(q: "say \\"hi\\"\\nthere") → error: no way'
    )


@pytest.mark.parametrize(("confidence", "shown"), [(0.8, " (confidence 0.8)"), (7, " (confidence 1)"), (None, "")])
def test_recall_names_its_question_confidence_and_references(confidence, shown):
    recalled = Recalled("the\nbudget", confidence, (Reference("2026/03/09/0745", "Ab12cQ", "at most\n800"),))
    assert texts_of(Block(turn_id="a", at=AT, recalls=(recalled,)))["Recall"] == (
        f'**Q** the budget{shown}\n- [2026/03/09/0745#Ab12cQ] "at most 800"'
    )


def test_deep_thought_keeps_its_trail():
    block = Block(turn_id="a", at=AT, deep=(DeepThought("Q1", "A1", "First …"), DeepThought("Q2", "A2")))
    assert texts_of(block)["Deep thought"] == "**Q** Q1\n**A** A1\n**Trail** First …\n\n**Q** Q2\n**A** A2"


def test_recalled_slices_come_from_recall_sections_alone():
    decoy = Block(turn_id="a", at=AT, thinking='### Recall\n- [2026/01/01/0000#x] "planted"')
    recalls = (
        Recalled("a", None, (Reference("2026/03/09/0745", "Ab12cQ", "a"), Reference("2026/13/09/0745", "Ab12cQ", "b"))),
        Recalled("b", None, (Reference("2026/02/09/0745", "Ab12cQ", "c"), Reference("2026/03/09/0745", "x", "d"))),
    )
    text = append_text("", decoy)
    text += append_text(text, Block(turn_id="b", at=AT, recalls=recalls))
    assert recalled_paths(text) == ("2026/03/09/0745", "2026/02/09/0745")


BLOCKS = st.lists(
    st.tuples(st.sampled_from(["aaaaaa", "bbbbbb", "cccccc"]), TEXT.filter(str.strip)), min_size=1, max_size=5
)


@given(BLOCKS, st.sets(st.sampled_from(["aaaaaa", "bbbbbb", "cccccc"])))
def test_a_file_without_some_blocks_is_the_file_that_never_had_them(found, left_out):
    blocks = [
        Block(turn_id=turn_id, at=AT + timedelta(seconds=number), thinking=thinking)
        for number, (turn_id, thinking) in enumerate(found)
    ]
    whole, part = "", ""
    for block in blocks:
        whole += append_text(whole, block)
        if block.turn_id not in left_out:
            part += append_text(part, block)
    assert without_blocks(whole, left_out) == part


def test_lines_that_belong_to_no_block_stay():
    note = "# My notes\n\n## Cognition of mine\nwhat I thought\n"
    text = note + append_text(note, FULL)
    assert [block.turn_id for block in parse_blocks(text)] == ["mVhV2g"]
    assert without_blocks(text, {"mVhV2g"}) == note
    assert without_blocks(text, {"nobody"}) == text


@pytest.mark.parametrize(
    "heading",
    [
        "## Cognition mVhV2g — yesterday",
        "## Cognition mVhV2g — 2026-02-30T21:30:43.641Z",
        "## Cognition no id — 2026-08-10T21:30:43.641Z",
        "## Cognition mVhV2g - 2026-08-10T21:30:43.641Z",
        "\\## Cognition mVhV2g — 2026-08-10T21:30:43.641Z",
    ],
)
def test_a_heading_that_is_none_begins_no_block(heading):
    assert parse_blocks(f"{heading}\n\n### Thinking\nHm.\n") == ()


def test_line_ends_and_blanks_of_an_editor_are_read():
    text = "\ufeff" + "\r\n".join(
        ["## Cognition mVhV2g — 2026-08-10T21:30:43.641Z ", "### Thinking ", "one", "two", ""]
    )
    (block,) = parse_blocks(text)
    assert block.sections == (("Thinking", "one\ntwo"),)
    assert has_block(text, "mVhV2g", AT)


@given(TEXT)
@example("")
@example("## Cognition mVhV2g — 2026-08-10T21:30:43.641Z")
def test_any_text_can_be_read(text):
    for block in parse_blocks(text):
        assert text.startswith("## Cognition ", block.begin)
        assert block.finish == len(text) or text.startswith("## Cognition ", block.finish)
    assert without_blocks(text, ()) == text
    assert recalled_paths(text) == ()
