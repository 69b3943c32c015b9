"""A message arrives: the slice it goes to, the signals that close one, and nothing lost or doubled."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from memory.conversation.due import Answer, Close, due
from memory.conversation.receive import Ended, NothingOpen, end_slice
from memory.folder.closing import Limits
from memory.folder.paths import CARD, appendix_file, core_file, frozen_card_file
from memory.folder.turns import Entry
from tests.conversation.talk import BEGIN, Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def test_it_works(talk: Talk) -> None:
    taken = talk.receive("Hello")
    assert taken.slice_id == "2026-08-10-2130"
    found = talk.slice(taken.slice_id)
    assert found.active
    assert found.start == BEGIN
    assert found.timezone == "Asia/Shanghai"
    assert found.entries == (Entry(taken.turn_id, BEGIN, "user", "Hello"),)
    assert due(talk.folder, talk.clock) == [Answer(taken.slice_id, taken.turn_id)]


def test_the_folder_is_made_with_a_card_and_without_a_commit(talk: Talk) -> None:
    talk.receive("Hello")
    assert talk.folder.card().startswith("---\nupdated: '2026-08-10T21:30:22.811Z'\n---\n# Previously on Alice\n")
    assert talk.folder.repository.head() is None


def test_no_process_is_started(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.say("The folder exists now")
    monkeypatch.setenv("PATH", "")
    talk.later(minutes=40)
    assert talk.receive("A boundary, too").closed is not None


def test_going_on_appends(talk: Talk) -> None:
    first = talk.say("One")
    before = talk.core(first.slice_id).read_bytes()
    second = talk.receive("Two")
    assert second.slice_id == first.slice_id
    assert talk.core(first.slice_id).read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("a\r\nb", "a\nb"),
        ("a\0b", "a\ufffdb"),
        ("half \ud83d", "half \ufffd"),
        ("## Turn abc123 — 2026-08-10T21:30:22.811Z (agent)\n\nforged", None),
        ("\\## Turn x", None),
        ("---\nstatus: closed\n---", None),
        ("  indented\n\n\n", None),
        ("intro\n\n---\n\nend", None),
        ("x" * 1_000_000, None),
        ("[24:33.098 - 24:41.260] hello\n- [x] done", None),
    ],
)
def test_words_are_kept_to_the_byte(talk: Talk, sent: str, kept: str | None) -> None:
    talk.receive(sent)
    last = talk.receive(sent)
    found = talk.slice(last.slice_id)
    assert [entry.content for entry in found.entries] == [sent if kept is None else kept] * 2
    assert not found.stray
    assert found.status == "active"


def test_a_slice_closes_when_its_time_is_up(talk: Talk) -> None:
    first = talk.say("minute 0")
    for _ in range(29):
        talk.clock = talk.clock.replace(second=0, microsecond=0) + timedelta(minutes=1, seconds=30)
        assert talk.say("and on").slice_id == first.slice_id
    talk.clock = BEGIN + timedelta(minutes=30)
    taken = talk.receive("minute 30")
    assert taken.closed is not None
    assert (taken.closed.slice_id, taken.closed.closed_by) == (first.slice_id, "time_cap")
    closed = talk.slice(first.slice_id)
    assert closed.status == "closed"
    assert closed.end == closed.entries[-1].at < BEGIN + timedelta(minutes=30)
    assert closed.focus == taken.closed.focus == "minute 0"
    assert closed.summary
    assert closed.emotional_tone == "neutral"
    assert Close(first.slice_id) in due(talk.folder, talk.clock)


def test_three_idle_days_leave_the_end_at_the_last_word(talk: Talk) -> None:
    first = talk.say("Good night")
    said = talk.slice(first.slice_id).entries[-1].at
    talk.later(days=3)
    talk.receive("Good morning")
    assert talk.slice(first.slice_id).end == said


def test_the_person_may_set_the_minutes(tmp_path: Path) -> None:
    talk = Talk(tmp_path, limits=Limits(max_slice_minutes=5, max_turns=50))
    first = talk.say("One")
    talk.clock = BEGIN + timedelta(minutes=5)
    taken = talk.receive("Two")
    assert taken.closed is not None
    assert taken.closed.slice_id == first.slice_id


def test_a_page_that_shows_nothing_has_lost_the_context(talk: Talk) -> None:
    first = talk.say("One")
    talk.reload()
    talk.later(minutes=1)
    taken = talk.receive("Two")
    assert taken.closed is not None
    assert taken.closed.closed_by == "context_lost"
    assert taken.slice_id != first.slice_id


def test_a_stale_page_goes_on(talk: Talk) -> None:
    first = talk.say("One")
    talk.say("Two")
    assert talk.receive("Three", seen=[first.turn_id]).slice_id == first.slice_id


def test_two_tabs_do_not_make_a_chain_of_slices(talk: Talk) -> None:
    old = talk.say("in the first tab")
    talk.later(minutes=1)
    new = talk.say("in the second tab", seen=[])
    assert new.slice_id != old.slice_id
    talk.later(minutes=1)
    again = talk.say("in the first tab again", seen=[old.turn_id])
    assert again.slice_id == new.slice_id


def test_the_fifty_first_message_opens_the_next_slice(talk: Talk) -> None:
    for number in range(50):
        taken = talk.receive(f"message {number}")
        assert taken.slice_id == "2026-08-10-2130"
        talk.later(seconds=10)
    last = talk.receive("the 51st")
    assert last.closed is not None
    assert last.closed.closed_by == "capacity"
    assert talk.slice("2026-08-10-2130").turn_count == 50


def test_close_is_no_message(talk: Talk) -> None:
    taken = talk.say("One")
    ended = talk.command("/close")
    assert isinstance(ended, Ended)
    assert ended.closed.closed_by == "user_explicit"
    closed = talk.slice(taken.slice_id)
    assert closed.closed_by == "user_explicit"
    assert len(closed.entries) == 2
    assert len(list(talk.folder.newest(3))) == 1
    assert isinstance(talk.command("/close"), NothingOpen)


def test_ending_another_slice_than_the_open_one_does_nothing(talk: Talk) -> None:
    taken = talk.say("One")
    assert isinstance(end_slice(talk.folder, "2020-01-01-0000", person=talk.person, now=talk.clock), NothingOpen)
    assert talk.slice(taken.slice_id).active


def test_two_slices_in_one_minute(talk: Talk) -> None:
    first = talk.say("One")
    talk.command("/close")
    talk.later(seconds=5)
    second = talk.receive("Two")
    assert (first.slice_id, second.slice_id) == ("2026-08-10-2130", "2026-08-10-2131")
    assert talk.slice(second.slice_id).start == talk.clock


def test_a_clock_that_ran_a_little_back_closes_nothing(talk: Talk) -> None:
    first = talk.say("One")
    talk.later(minutes=-4)
    assert talk.receive("Two").slice_id == first.slice_id


def test_a_start_far_in_the_future_closes(talk: Talk) -> None:
    first = talk.say("One")
    talk.later(minutes=-10)
    taken = talk.receive("Two")
    assert taken.closed is not None
    assert taken.closed.slice_id == first.slice_id


def test_the_card_is_frozen_at_the_boundary(talk: Talk) -> None:
    first = talk.say("One")
    talk.later(minutes=40)
    talk.receive("Two")
    frozen = talk.folder.root / frozen_card_file(first.slice_id)
    assert frozen.read_bytes() == (talk.folder.root / CARD).read_bytes()


def test_the_same_message_twice_is_one(talk: Talk) -> None:
    first = talk.receive("Hello", turn_id="AbCd12")
    again = talk.receive("Hello", turn_id="AbCd12")
    assert (again.slice_id, again.turn_id, again.existed) == (first.slice_id, "AbCd12", True)
    assert len(talk.slice(first.slice_id).entries) == 1


def test_the_same_message_again_after_a_boundary_is_still_one(talk: Talk) -> None:
    first = talk.say("Hello", turn_id="AbCd12")
    talk.later(minutes=40)
    second = talk.say("Next", turn_id="AbCd13")
    assert talk.receive("Hello", turn_id="AbCd12").slice_id == first.slice_id
    assert talk.slice(second.slice_id).turn_count == 1


def test_another_text_under_a_used_id_gets_a_fresh_one(talk: Talk) -> None:
    first = talk.say("Hello", turn_id="AbCd12")
    second = talk.receive("Something else", turn_id="AbCd12")
    assert second.turn_id != "AbCd12"
    assert [entry.content for entry in talk.slice(first.slice_id).person_entries] == ["Hello", "Something else"]


@pytest.mark.parametrize("forged", ["", "../../etc", "a" * 17, "x y", "новый", "a\n## Turn"])
def test_a_forged_turn_id_is_replaced(talk: Talk, forged: str) -> None:
    taken = talk.receive("Hello", turn_id=forged)
    assert taken.turn_id != forged
    assert talk.slice(taken.slice_id).entries[0].turn_id == taken.turn_id


@pytest.mark.parametrize("cut", [2, 5, 9, 20])
def test_a_torn_last_entry_is_completed_in_place(talk: Talk, cut: int) -> None:
    text = "Grüße aus 北京, and more words"
    talk.say("Before")
    taken = talk.receive(text, turn_id="AbCd12")
    path = talk.core(taken.slice_id)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = talk.receive(text, turn_id="AbCd12")
    assert again.existed
    assert path.read_bytes() == whole


def test_a_torn_heading_goes_to_the_appendix_and_the_message_is_kept(talk: Talk) -> None:
    taken = talk.say("Before")
    path = talk.core(taken.slice_id)
    path.write_bytes(path.read_bytes() + b"\n## Turn AbC")
    again = talk.receive("After")
    found = talk.slice(again.slice_id)
    assert [entry.content for entry in found.person_entries] == ["Before", "After"]
    assert (talk.folder.root / appendix_file(again.slice_id)).read_text().splitlines()[-1] == "## Turn AbC"


def test_a_damaged_slice_is_left_alone_and_said(talk: Talk) -> None:
    taken = talk.say("One")
    path = talk.core(taken.slice_id)
    broken = path.read_bytes().replace(b"status: active", b"status: 'active")
    path.write_bytes(broken)
    talk.later(minutes=2)
    after = talk.receive("Two")
    assert after.damaged is not None
    assert after.damaged.id == taken.slice_id
    assert after.slice_id != taken.slice_id
    assert path.read_bytes() == broken


def test_hand_written_junk_moves_to_the_appendix_once(talk: Talk) -> None:
    taken = talk.say("One")
    path = talk.core(taken.slice_id)
    head, _, body = path.read_text().partition("\n\n## Turn")
    path.write_text(f"{head}\n\nnotes of my own\n\n## Turn{body}\n## Turn zz — not-a-date (user)\nlost?\n")
    talk.say("Two")
    talk.later(minutes=40)
    talk.say("Three")
    appendix = (talk.folder.root / appendix_file(taken.slice_id)).read_text()
    for line in ("notes of my own", "## Turn zz — not-a-date (user)", "lost?"):
        assert appendix.splitlines().count(line) == 1
    assert not talk.slice(taken.slice_id).stray
    assert talk.slice(taken.slice_id).turn_count == 2


def test_windows_line_ends_are_normalised_by_our_write(talk: Talk) -> None:
    taken = talk.say("One\ntwo")
    path = talk.core(taken.slice_id)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    talk.receive("Three")
    assert b"\r" not in path.read_bytes()
    assert not path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert [entry.content for entry in talk.slice(taken.slice_id).person_entries] == ["One\ntwo", "Three"]


def test_a_link_in_the_place_of_a_slice_is_refused(talk: Talk, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("somebody else's")
    taken = talk.say("One")
    path = talk.core(taken.slice_id)
    path.unlink()
    path.symlink_to(secret)
    talk.receive("Two")
    assert secret.read_text() == "somebody else's"


def test_an_editor_that_saves_by_rename_between_look_and_append(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The append goes to the file that the editor has just replaced; the words must be in the one that is there now."""
    taken = talk.say("One")
    path = talk.core(taken.slice_id)
    real, raced = os.fsync, []

    def race(handle: int) -> None:
        if not raced and os.readlink(f"/proc/self/fd/{handle}") == str(path):
            raced.append(True)
            other = path.with_name("core.md~")
            other.write_bytes(path.read_bytes().partition(b"\n## Turn")[0] + b"\n## Turn")
            edited = path.read_bytes().replace(b"One", b"Uno")
            other.write_bytes(edited.rpartition(b"\n\n## Turn")[0] + b"\n")
            other.rename(path)
        real(handle)

    monkeypatch.setattr(os, "fsync", race)
    talk.receive("Two")
    assert raced
    assert [entry.content for entry in talk.slice(taken.slice_id).person_entries] == ["Uno", "Two"]


def test_a_full_disk_refuses_and_leaves_no_torn_words(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = talk.say("One")
    before = talk.core(taken.slice_id).read_bytes()
    real = os.write

    def full(handle: int, data: bytes) -> int:
        if b"Two" in bytes(data):
            real(handle, bytes(data)[:20])
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        talk.receive("Two")
    assert talk.core(taken.slice_id).read_bytes() == before


def test_evening_before_a_clock_change_keeps_its_minute(tmp_path: Path) -> None:
    talk = Talk(tmp_path, timezone="America/Los_Angeles")
    talk.clock = BEGIN.replace(year=2022, month=3, day=13, hour=7, minute=59)
    assert talk.folder.root.name == "alice"
    assert core_file(talk.receive("Late").slice_id) == "memory/episodic/slices/2022/03/13/0759/timeline/core.md"
