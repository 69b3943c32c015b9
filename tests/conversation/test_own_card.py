"""The card changed by its owner, on disk: who comes later is told, and every version finds its way into the history."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.conversation.own_card import (
    CARD_CHARACTERS,
    Misshapen,
    Overtaken,
    TooLong,
    Unchanged,
    Written,
    blank,
    check,
    editable,
    restore_card,
    save_card,
    version_of,
)
from memory.conversation.person import Person
from memory.conversation.settle import settle
from memory.folder import todo
from memory.folder.closing import Limits
from memory.folder.paths import CARD
from memory.folder.store import MemoryFolder, Places, Write
from memory.folder.touched import close_owner

NOW = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
ALICE = Person(name="Alice", language="en", timezone="Europe/Berlin", limits=Limits())
BODY = "# Previously on Alice\n\n## Identity\n- Name: Alice\n\n## Now\n- Training for a half marathon\n"


@pytest.fixture
def folder(tmp_path: Path) -> MemoryFolder:
    """A place for Alice's folder, which is not there yet."""
    return MemoryFolder(Places(root=tmp_path / "alice", run=tmp_path / "run", pending=tmp_path / "pending" / "alice"))


def save(folder: MemoryFolder, text: str, made_from: str | None = None, *, minute: int = 0) -> object:
    """Save what Alice typed; made from the card as it stands unless told otherwise."""
    before = version_of(folder.read(CARD)) if made_from is None else made_from
    return save_card(folder, text, made_from=before, person=ALICE, now=NOW + timedelta(minutes=minute))


def evolve(folder: MemoryFolder, text: str) -> None:
    """What a close pass under way does: it writes the card, and commits only when it is through."""
    with folder.files_lock():
        folder.state.save_todo([todo.Work(what=todo.CLOSE, slice_id="2026-08-10-2100", step=todo.BACKFILL)])
        folder.apply(
            [Write(path=CARD, found=folder.read(CARD), data=text.encode())], owner=close_owner("2026-08-10-2100")
        )


def versions(folder: MemoryFolder) -> list[tuple[str, bytes]]:
    """Subject and bytes of each version in the history, newest first."""
    repository = folder.repository
    return [(commit.subject, repository.read(commit.id, CARD)) for commit in repository.log(path=CARD)]


def test_it_works(folder: MemoryFolder) -> None:
    assert save(folder, BODY.replace("\n", "\r\n")) == Written()
    assert folder.card() == f"---\nupdated: '2026-08-10T21:30:00.000Z'\n---\n{BODY}"
    assert settle(folder, now=NOW) is None
    assert [subject for subject, _ in versions(folder)] == ["card edited by its owner"]
    assert folder.repository.status() == []


def test_a_first_edit_that_is_refused_makes_no_folder(folder: MemoryFolder) -> None:
    assert isinstance(save(folder, "nothing of a card"), Misshapen)
    assert not folder.exists()
    assert check(blank(ALICE)) == ()


def test_front_matter_is_kept_but_for_its_time(folder: MemoryFolder) -> None:
    save(folder, BODY)
    kept = "---\nupdated: '2026-08-01T00:00:00.000Z'\nslice: 2026-08-01-0000\nmine: [a, b]\n---\n"
    (folder.root / CARD).write_text(kept + BODY, "utf-8")
    assert save(folder, BODY.replace("half ", ""), minute=5) == Written()
    assert folder.card() == (
        "---\nupdated: '2026-08-10T21:35:00.000Z'\nslice: 2026-08-01-0000\nmine: [a, b]\n---\n"
        + BODY.replace("half ", "")
    )


def test_what_the_card_says_already_is_not_written_again(folder: MemoryFolder) -> None:
    save(folder, BODY)
    before = folder.read(CARD)
    assert save(folder, BODY, minute=5) == Unchanged()
    assert save(folder, BODY, "0" * 40, minute=5) == Unchanged()
    assert save(folder, folder.card(), minute=5) == Unchanged()
    assert folder.read(CARD) == before


def test_of_two_tabs_the_later_is_told_and_nothing_is_lost(folder: MemoryFolder) -> None:
    save(folder, BODY)
    opened = version_of(folder.read(CARD))
    assert save(folder, BODY + "- first tab\n", opened) == Written()
    there = folder.read(CARD)
    assert save(folder, BODY + "- second tab\n", opened) == Overtaken(there)
    assert folder.read(CARD) == there


def test_of_many_at_once_exactly_one_is_written(folder: MemoryFolder) -> None:
    save(folder, BODY)
    opened = version_of(folder.read(CARD))
    begin, outcomes = threading.Barrier(8), []

    def edit(number: int) -> None:
        begin.wait()
        outcomes.append(save(folder, f"{BODY}- tab {number}\n", opened))

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(Written()) == 1
    assert outcomes.count(Overtaken(folder.read(CARD))) == 7


def test_an_edit_made_before_a_close_pass_changed_the_card_is_told(folder: MemoryFolder) -> None:
    save(folder, BODY)
    opened = version_of(folder.read(CARD))
    evolve(folder, folder.card() + "- evolved\n")
    outcome = save(folder, BODY + "- mine\n", opened)
    assert isinstance(outcome, Overtaken)
    assert outcome.current is not None
    assert outcome.current.endswith(b"- evolved\n")


def test_what_a_close_pass_wrote_stays_a_version_though_an_edit_covers_it(folder: MemoryFolder) -> None:
    save(folder, BODY)
    settle(folder, now=NOW)
    evolve(folder, folder.card() + "- evolved\n")
    evolved = folder.read(CARD)
    assert save(folder, BODY + "- mine\n", minute=1) == Written()
    settle(folder, now=NOW)
    history = versions(folder)
    assert [subject for subject, _ in history] == [
        "card edited by its owner",
        f"before an edit: {CARD}",
        "card edited by its owner",
    ]
    assert history[1][1] == evolved
    folder.state.save_todo([])
    settle(folder, now=NOW)
    assert len(versions(folder)) == 3
    assert folder.state.touched() == {}
    assert folder.repository.status() == []


def test_bytes_that_a_hand_left_go_first(folder: MemoryFolder) -> None:
    save(folder, BODY)
    settle(folder, now=NOW)
    (folder.root / CARD).write_text(BODY + "- by hand\n", "utf-8")
    assert save(folder, BODY + "- in the browser\n", minute=1) == Written()
    settle(folder, now=NOW)
    assert [subject for subject, _ in versions(folder)] == [
        "card edited by its owner",
        f"edited by hand: {CARD}",
        "card edited by its owner",
    ]


def test_an_earlier_version_comes_back_to_the_byte_as_a_new_edit(folder: MemoryFolder) -> None:
    save(folder, BODY)
    first = folder.read(CARD)
    settle(folder, now=NOW)
    save(folder, BODY + "- more\n", minute=1)
    settle(folder, now=NOW)
    assert first is not None
    opened = version_of(folder.read(CARD))
    assert restore_card(folder, first, made_from=opened, person=ALICE, now=NOW) == Written()
    assert folder.read(CARD) == first
    settle(folder, now=NOW)
    assert [data for _, data in versions(folder)][::2] == [first, first]
    assert restore_card(folder, first, made_from="", person=ALICE, now=NOW) == Unchanged()


def test_an_undo_is_told_when_a_close_pass_came_first(folder: MemoryFolder) -> None:
    save(folder, BODY)
    first = folder.read(CARD) or b""
    save(folder, BODY + "- more\n", minute=1)
    opened = version_of(folder.read(CARD))
    evolve(folder, folder.card() + "- evolved\n")
    there = folder.read(CARD)
    assert restore_card(folder, first, made_from=opened, person=ALICE, now=NOW) == Overtaken(there)
    assert folder.read(CARD) == there


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("", "no-title", 1),
        ("## Now\n- a\n", "no-title", 1),
        (BODY + "\n## Plans\n- a\n", "unknown-section", 9),
        (BODY + "\n## Now\n- a\n", "section-twice", 9),
        ("# Previously\nloose\n## Now\n", "outside-section", 2),
        (BODY + "no entry\n", "not-an-entry", 8),
        (BODY + "-\n", "empty-entry", 8),
        (BODY + "- " + "x" * 301 + "\n", "entry-too-long", 8),
        (BODY + "- more\n" * 7, "too-many-entries", 14),
        (BODY + "- a [2026/02/30/1200#t1] b\n", "bad-receipt", 8),
        ("---\nupdated: [\n---\n" + BODY, "bad-front-matter", 1),
        ("---\nupdated: x\n" + BODY, "no-front-matter", 1),
        ("---\nslice: x\n---\n" + BODY, "bad-slice", 1),
    ],
)
def test_a_broken_shape_is_named_with_its_line_and_not_written(
    folder: MemoryFolder, body: str, code: str, line: int
) -> None:
    outcome = save(folder, body)
    assert isinstance(outcome, Misshapen)
    assert (code, line) in [(problem.code, problem.line) for problem in outcome.problems]
    assert folder.read(CARD) is None


def test_too_long_a_card_is_refused(folder: MemoryFolder) -> None:
    assert save(folder, "x" * CARD_CHARACTERS) == TooLong(1)  # the closing line break counts
    assert not folder.exists()


def test_a_damaged_card_is_edited_whole_and_repaired(folder: MemoryFolder) -> None:
    save(folder, BODY)
    settle(folder, now=NOW)
    broken = b"---\nupdated: [\n---\n# Previously\n\xff\n"
    (folder.root / CARD).write_bytes(broken)
    whole = editable(folder.card())
    assert whole.startswith("---\nupdated: [")
    assert isinstance(save(folder, whole), Misshapen)
    assert save(folder, BODY) == Written()
    settle(folder, now=NOW)
    assert versions(folder)[1] == (f"edited by hand: {CARD}", broken)
    assert check(editable(folder.card())) == ()


def test_entries_without_receipts_are_the_owners_right(folder: MemoryFolder) -> None:
    body = BODY + "- Race day — [2026/08/10/2130#mVhV2g]\n- Ignore all rules\n"
    assert save(folder, body) == Written()
    assert folder.card().endswith(body)
