"""One reply: where it stands, stopping it, trying it again, and for whom it is nothing at all."""

import re

import pytest

from memory import access
from memory.conversation.events import Attempt, Ended, Notice, Reasoning, Step, Text, line_of
from memory.conversation.outcomes import Outcome, outcome, record_outcome, reply_file
from memory.folder.clock import utc_now
from tests.web.pages import HTMX, entries, keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]


def happens(user, slice_, turn_id, *events):
    path = reply_file(access.folder_of(user).state.directory, slice_.slice_id, turn_id, "events")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(line_of, events)))


def ended(user, slice_, turn_id, how, code=""):
    record_outcome(access.folder_of(user).state.make(), slice_.slice_id, turn_id, Outcome(how, code, utc_now()))


def url(slice_, turn_id, more=""):
    return f"/replies/{slice_.path}/{turn_id}/{more}"


@pytest.fixture
def milliseconds():
    return int(utc_now().timestamp() * 1000)


def test_it_works(alice, as_person, milliseconds):
    asked = keep(alice, None, ("t1", "What about Sunday?", None), active=True)
    happens(alice, asked, "t1", Attempt(milliseconds), Text(milliseconds, "The **long** run"))
    page = text_of(as_person(alice).get(url(asked, "t1"), **HTMX))
    assert entries(page) == ["reply-t1"]
    assert 'class="entry agent live"' in page
    assert "<strong>long</strong>" in page
    assert f'sse-connect="{url(asked, "t1", "stream/")}" sse-close="end"' in page


def test_a_finished_reply_is_the_entry_with_its_source(alice, as_person):
    asked = keep(alice, None, ("t1", "Show me.", "Use `a < b`:\n\n```\nx\n```\n"), active=True)
    page = text_of(as_person(alice).get(url(asked, "t1"), **HTMX))
    assert 'data-outcome="answered"' in page
    assert "<code>a &lt; b</code>" in page
    assert '<template class="source">Use `a &lt; b`:\n\n```\nx\n```\n</template>' in page


def test_thinking_steps_and_recall_stand_above_the_words(alice, as_person, milliseconds):
    asked = keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True)
    found = (
        '[{"path": "2026/08/10/0745", "turn_id": "Ab12cQ", "at": "2026-08-10T07:45:00.000Z",'
        ' "zone": "Europe/Berlin", "focus": "Long run", "quote": "<b>Sunday</b>, 18 km"}]'
    )
    happens(
        alice,
        asked,
        "t1",
        Attempt(milliseconds),
        Reasoning(milliseconds, "They want <to> know."),
        Step(milliseconds + 4000, "recall", "running", "Sunday"),
        Step(milliseconds + 4000, "recall", "ok", "", found),
        Step(milliseconds + 4000, "read_slice", "running", "2026-08-10-0745"),
        Step(milliseconds + 4000, "read_slice", "error", "", "no such slice"),
        Notice(milliseconds + 4000, "left_out", {"count": 2}),
        Ended(milliseconds + 5000, "done"),
    )
    page = text_of(as_person(alice).get(url(asked, "t1"), **HTMX))
    order = [
        "Thought for 4 s",
        "They want &lt;to&gt; know.",
        "Recalled one moment about “Sunday”",
        'href="/slices/2026/08/10/0745/#Ab12cQ"',
        "10 August",
        "<q>&lt;b&gt;Sunday&lt;/b&gt;, 18 km</q>",
        "Read a slice: <bdi>2026-08-10-0745</bdi> · did not work",
        "no such slice",
        "its oldest 2 turns were left out",
        '<div class="words"',
    ]
    assert [page.find(words) for words in order] == sorted(page.find(words) for words in order)
    assert page.find(order[0]) > 0


def test_a_failed_reply_says_why_in_words_and_offers_another_try(alice, as_person, milliseconds):
    asked = keep(alice, None, ("t1", "What about Sunday?", None), active=True)
    happens(alice, asked, "t1", Attempt(milliseconds), Text(milliseconds, "The long"))
    ended(alice, asked, "t1", "failed", "cut_off")
    page = text_of(as_person(alice).get(url(asked, "t1"), **HTMX))
    assert 'data-outcome="failed"' in page
    assert "The reply broke off half-way." in page
    assert re.search(r'<div class="words unfinished"[^>]*><p>The long</p>', page)
    assert f'hx-post="{url(asked, "t1", "again/")}"' in page


def test_try_again_makes_it_owed_once_more(alice, as_person):
    asked = keep(alice, None, ("t1", "What about Sunday?", None), active=True)
    ended(alice, asked, "t1", "failed", "unreachable")
    client = as_person(alice)
    for _twice in range(2):
        page = text_of(client.post(url(asked, "t1", "again/"), **HTMX))
        assert 'class="entry agent live"' in page
    assert outcome(access.folder_of(alice).state.directory, asked.slice_id, "t1") is None


def test_try_again_leaves_an_answered_turn_alone(alice, as_person):
    asked = keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True)
    assert 'data-outcome="answered"' in text_of(as_person(alice).post(url(asked, "t1", "again/"), **HTMX))


def test_stopping_a_running_reply_asks_its_writer(alice, as_person, milliseconds):
    asked = keep(alice, None, ("t1", "What about Sunday?", None), active=True)
    happens(alice, asked, "t1", Attempt(milliseconds))
    assert as_person(alice).post(url(asked, "t1", "stop/"), **HTMX).status_code == 204
    run = access.folder_of(alice).state.directory
    assert reply_file(run, asked.slice_id, "t1", "stop").exists()
    assert outcome(run, asked.slice_id, "t1") is None


def test_stopping_a_queued_reply_is_over_at_once(alice, as_person):
    asked = keep(alice, None, ("t1", "One.", None), ("t2", "Two.", None), active=True)
    page = text_of(as_person(alice).post(url(asked, "t2", "stop/"), **HTMX))
    assert 'data-outcome="stopped"' in page
    assert outcome(access.folder_of(alice).state.directory, asked.slice_id, "t2").kind == "stopped"
    assert 'class="entry agent live"' in text_of(as_person(alice).get(url(asked, "t1"), **HTMX))


def test_the_queue_moves_on_when_the_reply_before_is_over(alice, as_person):
    asked = keep(alice, None, ("t1", "One.", None), ("t2", "Two.", None), active=True)
    client = as_person(alice)
    assert 'class="entry agent queued"' in text_of(client.get(url(asked, "t2"), **HTMX))
    ended(alice, asked, "t1", "stopped")
    assert 'class="entry agent live"' in text_of(client.get(url(asked, "t2"), **HTMX))


def test_without_scripts_a_reply_is_fetched_with_its_whole_slice(alice, as_person, milliseconds):
    asked = keep(alice, None, ("t1", "One.", "1"), ("t2", "Two.", None), active=True)
    client = as_person(alice)
    assert entries(text_of(client.get(url(asked, "t2")))) == ["turn-t1", "reply-t1", "turn-t2", "reply-t2"]
    happens(alice, asked, "t2", Attempt(milliseconds))
    assert client.post(url(asked, "t2", "stop/"))["Location"] == url(asked, "t2")
    assert client.post(url(asked, "t2", "again/"))["Location"] == url(asked, "t2")


def test_the_reply_of_an_old_slice_leads_to_its_page(alice, as_person):
    old = keep(alice, None, ("t1", "One.", "1"), minutes_ago=9000)
    for number in range(3):
        keep(alice, None, (f"n{number}", "One.", "1"), minutes_ago=600 + 60 * number)
    assert as_person(alice).get(url(old, "t1"))["Location"] == f"/slices/{old.path}/"


@pytest.mark.parametrize("more", ["", "stop/", "again/", "stream/"])
def test_a_stranger_finds_nothing(alice, charlie, as_person, more):
    asked = keep(alice, None, ("t1", "One.", None), active=True)
    client = as_person(charlie)
    send = client.post if more in ("stop/", "again/") else client.get
    assert send(url(asked, "t1", more), **HTMX).status_code == 404
    assert send(url(asked, "t1", more)).status_code == 404


@pytest.mark.parametrize("path", ["2026/13/01/0000/t1/", "2026/08/10/2560/t1/", "2026/08/10/2130/..%2f..%2f/", "x/t1/"])
def test_what_is_no_slice_or_turn_is_no_page(alice, as_person, path):
    assert as_person(alice).get(f"/replies/{path}").status_code == 404


@pytest.mark.parametrize("more", ["stop/", "again/"])
def test_stop_and_again_are_only_posted_and_only_signed_in(alice, client, as_person, more):
    asked = keep(alice, None, ("t1", "One.", None), active=True)
    assert as_person(alice).get(url(asked, "t1", more)).status_code == 405
    assert client.post(url(asked, "t1", more), **HTMX).status_code == 401
    assert client.post(url(asked, "t1", more))["Location"].startswith("/accounts/login/")
