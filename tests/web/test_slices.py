"""The page of one slice, its raw file, ending it; and the spine that leads there."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from memory import access
from memory.folder.clock import utc_now
from memory.folder.paths import core_file
from tests.web.pages import HTMX, entries, keep, newest, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

NIGHT = datetime(2026, 3, 9, 22, 45, tzinfo=UTC)


def test_it_works(alice, as_person):
    made = keep(
        alice,
        NIGHT,
        ("Ab12cQ", "Oak or stone?\n  - oak", "**Oak.**"),
        ("xY-9_z", "Thanks!", "Gladly."),
        focus="Plan: worktop (oak)",
        summary="Oak, under 900.",
        tags=("kitchen", "007"),
        open_loops=("Ask Bob: when?",),
        decisions=("- keep: yes",),
        emotional_tone="mixed",
        closed_by="capacity",
    )
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    for words in (
        "Monday, 9 March, 23:45</time>–<time",
        ">23:46</time>",
        '<span title="Europe/Berlin">(CET)</span>',
        "<h1><bdi>Plan: worktop (oak)</bdi></h1>",
        "Oak, under 900.",
        "<bdi>007</bdi>",
        "<bdi>Ask Bob: when?</bdi>",
        "<bdi>- keep: yes</bdi>",
        "mixed",
        "it was full",
        "Oak or stone?\n  - oak",
        "<strong>Oak.</strong>",
    ):
        assert words in page
    assert re.findall(r'<section class="round" id="([^"]+)"', page) == ["Ab12cQ", "xY-9_z"]
    assert "End this slice" not in page


def test_a_range_over_midnight_names_both_days(alice, as_person):
    made = keep(alice, NIGHT + timedelta(minutes=14), ("t1", "a", "b"), ("t2", "c", "d"), focus="Late")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    assert "9 March, 23:59</time>–<time" in page
    assert ">10 March, 00:00</time>" in page


def test_the_raw_file_is_shown_and_downloaded_byte_for_byte(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "<script>alert(1)</script>", "b"), focus="Raw")
    client = as_person(alice)
    on_disk = (access.folder_of(alice).root / core_file(made.slice_id)).read_bytes()

    shown = text_of(client.get(f"/slices/{made.path}/?view=raw"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script>alert" not in shown

    download = client.get(f"/slices/{made.path}/raw/")
    assert download.content == on_disk
    assert download["Content-Type"] == "text/markdown; charset=utf-8"
    assert download["Content-Disposition"] == f'attachment; filename="{made.slice_id}.md"'
    assert download["X-Content-Type-Options"] == "nosniff"


def test_a_damaged_slice_is_shown_raw_with_what_is_wrong(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"))
    path = access.folder_of(alice).root / core_file(made.slice_id)
    path.write_bytes(b"---\nslice_id: [\n---\nmy words\xff\n")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    assert core_file(made.slice_id) in page
    assert "my words" in page
    assert path.read_bytes() == b"---\nslice_id: [\n---\nmy words\xff\n"
    assert as_person(alice).get(f"/slices/{made.path}/raw/").content == path.read_bytes()


def test_a_huge_turn_is_folded_behind_a_control(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "x" * 600_000, "y" * 60_000), ("t2", "small", "too"), focus="Huge")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    assert "Show the whole message (600000 characters)" in page
    assert "Show the whole reply (60000 characters)" in page
    assert page.count('<details class="said large">') == page.count('<details class="large">') == 1


def test_an_open_slice_is_ended_on_its_page(alice, as_person):
    made = keep(alice, None, ("t1", "a", "b"), active=True)
    client = as_person(alice)
    assert "End this slice" in text_of(client.get(f"/slices/{made.path}/"))
    assert client.post(f"/slices/{made.path}/close/")["Location"] == f"/slices/{made.path}/"
    assert newest(alice).closed_by == "user_explicit"
    assert client.post(f"/slices/{made.path}/close/").status_code == 302
    assert "you ended it" in text_of(client.get(f"/slices/{made.path}/"))


def test_ending_a_slice_that_has_closed_meanwhile_ends_no_other(alice, as_person):
    old = keep(alice, NIGHT, ("t1", "a", "b"), focus="Old")
    keep(alice, None, ("t2", "a", "b"), active=True)
    as_person(alice).post(f"/slices/{old.path}/close/")
    assert newest(alice).active
    assert access.folder_of(alice).slice(old.slice_id).closed_by == "time_cap"


def test_a_turn_that_only_one_side_wrote_is_shown(alice, as_person):
    made = keep(alice, None, ("t1", "asked", None), focus="Open")
    path = access.folder_of(alice).root / core_file(made.slice_id)
    path.write_text(path.read_text() + "\n## Turn t9 — 2026-03-09T22:50:00.000Z (agent)\n\nby hand\n")
    page = text_of(as_person(alice).get(f"/slices/{made.path}/"))
    assert entries(page) == ["turn-t1", "reply-t9"]
    assert "The reply is still to come." in page


@pytest.mark.parametrize("more", ["", "raw/", "close/", "?view=raw"])
def test_a_stranger_and_an_administrator_find_nothing_here(alice, charlie, dana, client, as_person, more):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="Hers")
    for other in (charlie, dana):
        send = as_person(other).post if more == "close/" else as_person(other).get
        assert send(f"/slices/{made.path}/{more}").status_code == 404
    send = client.post if more == "close/" else client.get
    assert send(f"/slices/{made.path}/{more}")["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize(
    "path", ["2026/08/10/..%2f..%2f..", "2026-08-10-2130", "2026/02/30/1200", "2026/08/10/%00130", "9999/99/99/9999"]
)
def test_only_a_real_minute_is_a_page(alice, as_person, path):
    assert as_person(alice).get(f"/slices/{path}/").status_code == 404


def test_a_symbolic_link_is_not_followed(alice, as_person, tmp_path):
    made = keep(alice, NIGHT, ("t1", "a", "b"))
    path = access.folder_of(alice).root / core_file(made.slice_id)
    secret = tmp_path / "secret.md"
    path.rename(secret)
    path.symlink_to(secret)
    for more in ("", "raw/"):
        assert as_person(alice).get(f"/slices/{made.path}/{more}").status_code == 404


def test_a_slice_page_costs_the_same_queries_however_long_it_is(alice, as_person, django_assert_num_queries):
    short = keep(alice, NIGHT, ("t1", "a", "b"))
    long = keep(alice, None, *((f"t{number}", "a", "b") for number in range(60)))
    client = as_person(alice)
    for made in (short, long):
        with django_assert_num_queries(2):
            client.get(f"/slices/{made.path}/")


def test_the_spine_goes_from_old_to_new_with_days_months_and_tones(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", emotional_tone="negative")
    keep(alice, NIGHT + timedelta(hours=2), ("t2", "a", "b"), focus="Second <i>", emotional_tone="wistful")
    keep(alice, None, ("t3", "Still here?", "b"), active=True)
    page = text_of(as_person(alice).get("/"))
    spine = page[page.index('<ol id="spine-list"') : page.index('<li class="now">')]
    assert re.findall(r"<bdi>([^<]*)</bdi>", spine) == ["First", "Second &lt;i&gt;", "Still here?"]
    assert re.findall(r'<li class="slice ([a-z]*)">', spine) == ["negative", "", "open"]
    assert re.findall(r'<span class="sr"> \(([^)]*)\)', spine) == ["negative", "wistful", "still open"]
    assert re.findall(r'<li class="day">([^<]*)', spine)[:2] == ["9 Mon", "10 Tue"]


def test_older_slices_come_as_one_scrolls(alice, as_person):
    made = [keep(alice, NIGHT + timedelta(days=day), (f"t{day}", "a", "b"), focus=f"Day {day}") for day in range(35)]
    client = as_person(alice)
    page = text_of(client.get("/"))
    assert page.count("<bdi>Day ") >= 30
    assert f'hx-get="/spine/?before={made[5].slice_id}"' in page

    earlier = text_of(client.get(f"/spine/?before={made[5].slice_id}", **HTMX))
    assert re.findall(r"<bdi>Day (\d+)</bdi>", earlier) == ["0", "1", "2", "3", "4"]
    assert "before=" not in earlier
    assert "<!doctype html>" in text_of(client.get(f"/spine/?before={made[5].slice_id}"))


@pytest.mark.parametrize("before", ["", "yesterday", "2026-02-30-1200", "../x"])
def test_the_spine_before_nothing_real_is_no_page(alice, as_person, before):
    assert as_person(alice).get("/spine/", {"before": before}).status_code == 404


def test_the_spine_of_a_stranger_is_their_own(alice, charlie, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="Hers")
    before = (utc_now() + timedelta(days=1)).strftime("%Y-%m-%d-%H%M")
    assert "Hers" in text_of(as_person(alice).get(f"/spine/?before={before}", **HTMX))
    assert made.path not in text_of(as_person(charlie).get(f"/spine/?before={before}", **HTMX))
