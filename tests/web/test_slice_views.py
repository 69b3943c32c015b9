"""The views of one slice: thoughts, appendix, the card then, history, neighbours; hostile text in each of them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import User
from memory import access
from memory.conversation.settle import settle
from memory.folder import cognition, strands, todo
from memory.folder.clock import utc_now
from memory.folder.cognition import Block, DeepThought, Recalled, Reference, ToolCall
from memory.folder.paths import STRANDS, agent_file, appendix_file, core_file, frozen_card_file
from memory.folder.slices import Slice
from memory.folder.store import Write
from memory.folder.touched import close_owner
from tests.web.pages import calls_of_git, folder_of, keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

NIGHT = datetime(2026, 3, 9, 22, 45, tzinfo=UTC)
VIEWS = ("", "?view=thoughts", "?view=appendix", "?view=card", "?view=history", "?view=raw")
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[go](javascript:alert(1))",
    "![x](http://example.invalid/p.png?d=secret)",
    "\u202egnp.exe\u2066",
    ">" * 5_000,
    "[" * 5_000,
    "x" * 600_000,
    "## Cognition t2 — 2026-03-09T22:46:00.000Z\n\n### Thinking\nforged",
    "```\n<form action=/card/>",
)


def put(user: User, path: str, text: str) -> None:
    """Write a file of the folder, whatever it holds."""
    file = folder_of(user).root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def think(user: User, made: Slice, *blocks: Block) -> None:
    """Write agent.md as the worker does."""
    text = ""
    for block in blocks:
        text += cognition.append_text(text, block)
    put(user, agent_file(made.slice_id), text)


def commit(user: User, path: str, text: str, *, slice_id: str) -> None:
    """One more commit of a close pass."""
    folder = folder_of(user)
    with folder.files_lock():
        write = Write(path=path, found=folder.read(path), data=text.encode())
        folder.apply([write], owner=close_owner(slice_id))
    assert settle(folder, now=utc_now()) is None


def block(turn_id: str = "t1", **parts: object) -> Block:
    return Block(turn_id=turn_id, at=NIGHT + timedelta(seconds=20), **parts)  # type: ignore[arg-type]


def test_it_works(alice, as_person):
    older = keep(alice, NIGHT - timedelta(days=40), ("t0", "a", "b"), focus="Older")
    made = keep(
        alice,
        NIGHT,
        ("t1", "Oak or stone?", "Oak."),
        ("t2", "Thanks", "Gladly."),
        focus="Worktop",
        tags=("Kitchen", "gone"),
        related_slices=(older.path, "2020/01/01/0000", "../../x"),
        evolution_summary="Noted: oak.",
    )
    newer = keep(alice, NIGHT + timedelta(days=90), ("t3", "a", "b"), focus="Newer")
    put(alice, STRANDS, strands.render_strands({"kitchen": (made.path,)}))
    think(
        alice,
        made,
        block(
            thinking="Which one lasts?",
            tools=(ToolCall("read_slice", (("slice_id", "2020-01-01-0000"),), "no such slice"),),
            recalls=(Recalled("worktop budget", 0.8, (Reference(older.path, "t0", "under 900"),)),),
            deep=(DeepThought("Q?", "A!"),),
        ),
    )
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    for words in (
        '<a href="/strands/?name=kitchen"><bdi>Kitchen</bdi></a>',
        "<li><bdi>gone</bdi></li>",
        "<bdi>Noted: oak.</bdi>",
        f'<li><a href="/slices/{older.path}/"><bdi>Older</bdi></a>',
        f'<a class="older" href="/slices/{older.path}/">',
        f'<a class="newer-one" href="/slices/{newer.path}/">',
        "Which one lasts?",
        "<bdi>worktop budget</bdi>",
        "80% sure",
        f'<a class="hit" href="/slices/{older.path}/#t0">',
        "<bdi>under 900</bdi>",
        "<strong>A</strong> A!",
        "read_slice(slice_id: &quot;2020-01-01-0000&quot;) → error: no such slice",
    ):
        assert words in page
    assert "2020/01/01" not in page
    assert page.index("Which one lasts?") < page.index("Oak.</p>") < page.index('id="t2"')
    assert 'aria-current="page">Conversation</a>' in page


def test_thoughts_stand_by_turn(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), ("t2", "c", "d"), focus="F")
    think(alice, made, block(thinking="one"), block("t2", thinking="two", unfinished="half a"))
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=thoughts"))
    assert re.findall(r'<a href="/slices/[0-9/]+/#(t\d)">', page) == ["t1", "t2"]
    assert page.index(">one<") < page.index(">two<") < page.index("Unfinished reply") < page.index(">half a<")


def test_a_slice_without_thoughts_card_or_history_says_so(alice, as_person):
    made = keep(alice, None, ("t1", "a", "b"), active=True)
    client = as_person(alice)
    assert "No thoughts are recorded" in text_of(client.get(f"/slices/{made.path}/?view=thoughts"))
    assert "still open: your card is copied" in text_of(client.get(f"/slices/{made.path}/?view=card"))
    assert "There is no history yet" in text_of(client.get(f"/slices/{made.path}/?view=history"))
    assert "appendix" not in text_of(client.get(f"/slices/{made.path}/"))
    assert 'aria-current="page">Conversation</a>' in text_of(client.get(f"/slices/{made.path}/?view=appendix"))


def test_a_block_that_a_hand_wrote_hides_nothing(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="F")
    put(
        alice,
        agent_file(made.slice_id),
        "my note\n\n## Cognition t1 — 2026-03-09T22:46:00.000Z\n\n### Recall\n**Q** when?\nand a line of mine\n\n"
        "### Mood\nfine\n",
    )
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=thoughts"))
    for words in ("my note", "**Q** when?\nand a line of mine", "<bdi>Mood</bdi>", "fine"):
        assert words in page


def test_what_a_message_says_forges_no_turn_of_thoughts(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), ("t2", "c", "d"), focus="F")
    think(alice, made, block(thinking=HOSTILE[8] + "\n### Tools\n- `x`() → ok"))
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=thoughts"))
    assert re.findall(r'/#(t\d)">', page) == ["t1"]
    assert page.count("<details") == 1
    assert "## Cognition t2" in page


def test_the_appendix_is_shown_word_for_word(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="F")
    put(alice, appendix_file(made.slice_id), "## Turn zz — not-a-date (user)\n<b>two</b>\n")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=appendix"))
    assert "## Turn zz — not-a-date (user)\n&lt;b&gt;two&lt;/b&gt;\n</pre>" in page


def test_the_card_then_has_its_receipts(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="F")
    put(alice, frozen_card_file(made.slice_id), "# Previously on Alice\n\n## Now\n- Runs — [2026/03/09/2245#t1]\n")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=card"))
    assert "<bdi>Runs</bdi>" in page
    assert 'href="/slices/2026/03/09/2245/#t1"' in page
    put(alice, frozen_card_file(made.slice_id), "---\nupdated: [\n---\nraw <i>\n")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=card"))
    assert "raw &lt;i&gt;" in page


def test_the_history_tells_what_changed_newest_first_in_pages(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="Worktop <b>")
    other = keep(alice, NIGHT + timedelta(hours=3), ("t2", "a", "b"), focus="Other")
    core = core_file(made.slice_id)
    text = (folder_of(alice).read(core) or b"").decode()
    for number in range(12):
        commit(alice, core, text.replace("focus: Worktop", f"focus: {number} Worktop"), slice_id=made.slice_id)
    commit(alice, core_file(other.slice_id), "other", slice_id=made.slice_id)
    client = as_person(alice)
    page = text_of(client.get(f"/slices/{made.path}/?view=history"))
    assert page.count('<details class="change"') == 10
    assert '<ins><span class="mark">+</span><bdi>focus: 11 Worktop &lt;b&gt;</bdi>' in page
    assert "<b>After a slice closed</b> <bdi>11 Worktop &lt;b&gt;</bdi>" in page
    assert '<p class="file"><bdi>Conversation</bdi>' in page
    more = re.search(r'<p class="go-on"><a href="([^"]*)"', page)
    assert more
    older = text_of(client.get(more[1].replace("&amp;", "&")))
    # The file was on disk before its first commit of ours, so a hand's edit goes first.
    assert older.count('<details class="change"') == 3
    assert "go-on" not in older
    assert "Edited by hand" in older


def test_what_is_not_committed_yet_is_said(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="F")
    folder = folder_of(alice)
    with folder.files_lock():
        folder.state.save_todo([todo.Work(what=todo.CLOSE, slice_id=made.slice_id)])
        path = appendix_file(made.slice_id)
        folder.apply([Write(path=path, found=None, data=b"x")], owner=close_owner(made.slice_id))
    page = text_of(as_person(alice).get(f"/slices/{made.path}/?view=history"))
    assert "not in the history yet" in page


@pytest.mark.parametrize("before", ["1" * 40, "HEAD", "--all", "x"])
def test_history_behind_nothing_real_is_no_page(alice, as_person, before):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="F")
    commit(alice, core_file(made.slice_id), "x", slice_id=made.slice_id)
    assert as_person(alice).get(f"/slices/{made.path}/", {"view": "history", "before": before}).status_code == 404


def test_a_damaged_slice_has_its_other_views(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="F")
    think(alice, made, block(thinking="still here"))
    commit(alice, core_file(made.slice_id), "---\nslice_id: [\n---\nmy words\n", slice_id=made.slice_id)
    client = as_person(alice)
    page = text_of(client.get(f"/slices/{made.path}/"))
    assert "A damaged slice" in page
    assert core_file(made.slice_id) in page
    assert "my words" in page
    assert "still here" in text_of(client.get(f"/slices/{made.path}/?view=thoughts"))
    assert "my words" in text_of(client.get(f"/slices/{made.path}/?view=history"))
    assert "End this slice" not in page


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_text_in_every_view(alice, as_person, hostile):
    one_line = " ".join(hostile.split())
    made = keep(
        alice,
        NIGHT,
        ("t1", hostile, hostile),
        focus=one_line[:200],
        summary=one_line[:90],
        tags=(one_line[:200],),
        open_loops=(one_line[:200],),
        emotional_tone=one_line[:50],
        closed_by=one_line[:50],
        evolution_summary=one_line[:200],
    )
    think(
        alice,
        made,
        block(
            thinking=hostile,
            tools=(ToolCall(one_line, ((one_line, hostile),), hostile),),
            recalls=(Recalled(hostile, 0.5, (Reference(made.path, "t1", hostile),)),),
            deep=(DeepThought(hostile, hostile),),
            unfinished=hostile,
        ),
    )
    put(alice, frozen_card_file(made.slice_id), f"# Previously\n\n## Now\n- {one_line}\n")
    commit(alice, appendix_file(made.slice_id), hostile, slice_id=made.slice_id)
    client = as_person(alice)
    for view in VIEWS:
        page = text_of(client.get(f"/slices/{made.path}/{view}"))
        for markup in ("<img", "<script>", "<svg/", "<form action=/card/", 'href="javascript', "style="):
            assert markup not in page


def test_hostile_turns_are_text_in_the_conversation(alice, as_person):
    said = [(f"t{number}", hostile, hostile) for number, hostile in enumerate(HOSTILE)]
    made = keep(alice, NIGHT, *said, focus="F")
    think(alice, made, *(block(turn_id, thinking=words) for turn_id, words, _ in said))
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    for markup in ("<img", "<script>", "<form action=/card/", 'href="javascript', "style="):
        assert markup not in page
    assert page.count('<section class="round"') == len(HOSTILE)
    assert page.count("Show the whole message") == page.count("Show the whole reply") == 1
    assert page.count("Show all of it") == 1


@pytest.mark.parametrize("view", VIEWS)
def test_strangers_find_nothing_and_the_signed_out_sign_in(alice, charlie, dana, client, as_person, view):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="Hers")
    for other in (charlie, dana):
        assert as_person(other).get(f"/slices/{made.path}/{view}").status_code == 404
    assert client.get(f"/slices/{made.path}/{view}")["Location"].startswith("/accounts/login/")


def test_a_view_asks_the_database_and_git_the_same_however_much_there_is(
    alice, as_person, django_assert_num_queries, monkeypatch
):
    ran = calls_of_git(monkeypatch)
    client = as_person(alice)
    for turns in (1, 30):
        said = [(f"t{number}", "a", "b") for number in range(turns)]
        made = keep(alice, NIGHT + timedelta(hours=turns), *said, focus="F")
        for number in range(turns):
            commit(alice, appendix_file(made.slice_id), f"{number}", slice_id=made.slice_id)
        for view in VIEWS:
            ran.clear()
            with django_assert_num_queries(2):
                client.get(f"/slices/{made.path}/{view}")
            assert len(ran) == (1 if view == "?view=history" else 0)


def test_neighbours_are_found_wherever_they_are(alice, as_person):
    first = keep(alice, datetime(2024, 12, 31, 23, 59, tzinfo=UTC), ("t1", "a", "b"), focus="First")
    middle = keep(alice, datetime(2025, 1, 1, 0, 0, tzinfo=UTC), ("t1", "a", "b"), focus="Middle")
    last = keep(alice, datetime(2026, 2, 1, 0, 0, tzinfo=UTC), ("t1", "a", "b"), focus="Last")
    client = as_person(alice)

    def around(made: Slice) -> tuple[list[str], list[str]]:
        page = text_of(client.get(f"/slices/{made.path}/"))
        return re.findall(r'class="older" href="/slices/([^"]*)/"', page), re.findall(
            r'class="newer-one" href="/slices/([^"]*)/"', page
        )

    assert around(first) == ([], [middle.path])
    assert around(middle) == ([first.path], [last.path])
    assert around(last) == ([middle.path], [])


def test_a_slice_that_could_not_be_ended_says_so(alice, as_person, monkeypatch):
    made = keep(alice, None, ("t1", "a", "b"), active=True)
    monkeypatch.setattr("memory.folder.flushed.replace", no_room)
    client = as_person(alice)
    page = text_of(client.post(f"/slices/{made.path}/close/", follow=True))
    assert "The slice is still open" in page
    assert access.folder_of(alice).slice(made.slice_id).active


def no_room(*arguments: object, **named: object) -> bool:
    """What a full disk does to a write."""
    raise OSError(28, "No space left on device")
