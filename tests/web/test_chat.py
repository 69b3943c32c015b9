"""Coming to the chat page and saying something there: with scripts, without, twice, from elsewhere, in trouble."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from kombu import pools

from accounts.models import User
from memory import access
from memory.folder.clock import utc_now
from memory.folder.paths import core_file
from previously_site import celery_app
from tests.web.pages import HTMX, entries, folder_of, keep, newest, notices, seen_fields, text_of, turn_field

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]


def say(client: Client, text: str, *, turn: str = "", seen: tuple[str, ...] = (), script: bool = True, **fields: str):
    data = {"text": text, "turn": turn, "seen": list(seen)} | fields
    return client.post("/", data, **(HTMX if script else {}))


@pytest.fixture
def no_broker() -> Iterator[None]:
    """Nobody listens where the broker should be."""
    working = celery_app.conf.broker_url

    def use(url: str) -> None:
        celery_app.conf.broker_url = url
        # Connections are kept by address, and Celery keeps the pool it has asked first.
        pools.reset()
        celery_app._pool = celery_app.amqp._producer_pool = None

    use("redis://127.0.0.1:1/0")
    yield
    use(working)


def test_it_works(alice, as_person):
    client = as_person(alice)
    turn = turn_field(text_of(client.get("/")))

    answer = say(client, "Hello.\r\nIt is me.", turn=turn)

    page = text_of(answer)
    assert answer.status_code == 200
    assert entries(page) == [f"turn-{turn}", f"reply-{turn}"]
    assert f'sse-connect="/replies/{newest(alice).path}/{turn}/stream/"' in page
    assert seen_fields(page) == [turn]
    assert turn_field(page) != turn
    assert newest(alice).entry(turn, "user").content == "Hello.\nIt is me."


def test_a_new_person_is_told_what_is_remembered_and_where(alice, as_person):
    page = text_of(as_person(alice).get("/"))
    assert re.search(r"<h1><span>Previously on</span> Alice</h1>", page)
    assert "in a folder of your own" in page
    assert "No model is configured" in page
    assert not access.folder_of(alice).exists()


def test_without_a_model_the_administrator_is_told_how_to_set_one(dana, alice, as_person, previously):
    assert "PREVIOUSLY_MODEL_URL" in text_of(as_person(dana).get("/"))
    assert "PREVIOUSLY_MODEL_URL" not in text_of(as_person(alice).get("/"))
    previously(model="some-model")
    assert "No model is configured" not in text_of(as_person(dana).get("/"))


def test_arrival_shows_the_last_slice_and_four_open_loops(alice, as_person):
    keep(alice, None, ("t1", "a", "b"), minutes_ago=3000, focus="Older", open_loops=("one", "four", "five", "six"))
    last = keep(
        alice,
        None,
        ("t2", "Which worktop?", "**Oak**, as long as\n\nit stays <under> 900."),
        minutes_ago=90,
        focus="Choosing worktops",
        open_loops=("one", "two <b>", "three"),
    )
    page = text_of(as_person(alice).get("/"))
    assert re.findall(r'data-put="([^"]*)"', page) == ["one", "two &lt;b&gt;", "three", "four"]
    assert f'<a href="/slices/{last.path}/"><bdi>Choosing worktops</bdi></a>' in page
    assert '<p class="last-words">Oak, as long as it stays &lt;under&gt; 900.</p>' in page
    assert entries(page) == []


def test_the_active_slice_is_the_last_one_and_a_fresh_page_is_empty(alice, as_person):
    keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True)
    page = text_of(as_person(alice).get("/"))
    assert "<bdi>What about Sunday?</bdi>" in page
    assert entries(page) == []
    assert seen_fields(page) == []


def test_a_message_from_a_fresh_page_closes_the_slice_and_shows_its_edge(alice, as_person):
    before = keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True)
    page = text_of(say(as_person(alice), "Good morning."))
    assert f'<p class="edge"><a href="/slices/{before.path}/">' in page
    assert "you went on from a fresh page" in page
    assert newest(alice).slice_id != before.slice_id
    assert access.folder_of(alice).slice(before.slice_id).closed_by == "context_lost"


def test_a_page_that_shows_the_conversation_goes_on_with_it(alice, as_person):
    keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True)
    page = text_of(say(as_person(alice), "And before?", turn="t2", seen=("t1",)))
    assert 'class="edge"' not in page
    assert 'class="dayline"' not in page
    assert entries(page) == ["turn-t2", "reply-t2"]
    assert seen_fields(page) == ["t1", "t2"]
    assert newest(alice).turn_count == 2


def test_time_that_is_up_says_so_at_the_edge(alice, as_person):
    keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True, minutes_ago=31)
    page = text_of(say(as_person(alice), "And before?", seen=("t1",)))
    assert "Slice closed · 30 minutes are up" in page


def test_without_scripts_the_whole_page_comes_back_with_its_turns(alice, as_person):
    client = as_person(alice)
    page = text_of(say(client, "First.", turn="t1", script=False))
    assert "<!doctype html>" in page
    assert entries(page) == ["turn-t1", "reply-t1"]
    assert seen_fields(page) == ["t1"]
    assert f'<a href="/replies/{newest(alice).path}/t1/">Fetch the reply</a>' in page

    page = text_of(say(client, "Second.", turn="t2", seen=("t1",), script=False))
    assert entries(page) == ["turn-t1", "reply-t1", "turn-t2", "reply-t2"]
    assert newest(alice).turn_count == 2


def test_without_scripts_the_turns_before_a_boundary_stay_on_the_page(alice, as_person):
    keep(alice, None, ("t1", "What about Sunday?", "The long run."), active=True, minutes_ago=31)
    page = text_of(say(as_person(alice), "And before?", turn="t2", seen=("t1",), script=False))
    assert entries(page) == ["turn-t1", "reply-t1", "turn-t2", "reply-t2"]
    assert page.index('id="reply-t1"') < page.index('class="edge"') < page.index('id="turn-t2"')


def test_the_same_turn_sent_twice_is_one_turn_and_replaces_itself(alice, as_person):
    client = as_person(alice)
    say(client, "Hello.", turn="t1")
    unseen = text_of(say(client, "Hello.", turn="t1"))
    seen = text_of(say(client, "Hello.", turn="t1", seen=("t1",)))

    assert newest(alice).turn_count == 1
    assert entries(unseen) == entries(seen) == ["turn-t1", "reply-t1"]
    assert 'id="turn-t1" aria-label="You" hx-swap-oob="true"' in seen
    assert 'id="turn-t1" aria-label="You">' in unseen
    assert 'class="dayline"' not in seen


def test_the_same_turn_id_with_other_words_loses_neither(alice, as_person):
    client = as_person(alice)
    say(client, "Hello.", turn="t1")
    say(client, "Something else.", turn="t1", seen=("t1",))
    assert [entry.content for entry in newest(alice).person_entries] == ["Hello.", "Something else."]


def test_a_message_while_a_reply_is_owed_is_queued(alice, as_person):
    client = as_person(alice)
    say(client, "First.", turn="t1")
    page = text_of(say(client, "Second.", turn="t2", seen=("t1",)))
    assert re.search(r'class="entry agent queued" id="reply-t2"', page)
    assert "sse-connect" not in page


def test_a_reply_in_flight_is_taken_up_again_after_a_reload_and_counts_as_seen(alice, as_person):
    keep(alice, None, ("t1", "Old.", "Answered."), ("t2", "New.", None), active=True)
    page = text_of(as_person(alice).get("/"))
    assert entries(page) == ["turn-t2", "reply-t2"]
    assert seen_fields(page) == ["t2"]
    assert "sse-connect" in page


def test_a_stale_page_gets_the_missing_turns_in_their_places(alice, as_person):
    keep(alice, None, ("t1", "One.", "1"), ("t2", "Two.", "2"), ("t3", "Three.", "3"), active=True)
    page = text_of(say(as_person(alice), "Four.", turn="t4", seen=("t2",)))
    in_place = re.search(r'<div hx-swap-oob="beforebegin:#turn-t2">(.*?)</div>\s*<input', page, re.S)
    assert in_place
    assert entries(in_place[1]) == ["turn-t1", "reply-t1"]
    assert entries(page[: in_place.start()]) == ["turn-t3", "reply-t3", "turn-t4", "reply-t4"]
    assert seen_fields(page) == ["t1", "t2", "t3", "t4"]
    assert notices(page) == ["Continued elsewhere. Reload to see all of it"]


def test_a_tab_left_behind_shows_the_edge_and_what_was_said_elsewhere(alice, as_person):
    client = as_person(alice)
    left = keep(alice, None, ("t1", "In the first tab.", "Yes."), active=True)
    say(client, "In the second tab.", turn="t2")
    page = text_of(say(client, "In the first again.", turn="t3", seen=("t1",)))
    assert f'<p class="edge"><a href="/slices/{left.path}/">' in page
    assert entries(page) == ["turn-t2", "reply-t2", "turn-t3", "reply-t3"]
    assert newest(alice).turn_count == 2


def test_a_page_that_becomes_visible_learns_that_it_was_left_behind(alice, as_person):
    client = as_person(alice)
    assert client.get("/elsewhere/?seen=t1", **HTMX).status_code == 204
    keep(alice, None, ("t1", "One.", "1"), ("t2", "Two.", "2"), active=True)
    assert client.get("/elsewhere/?seen=t1&seen=t2", **HTMX).status_code == 204
    assert client.get("/elsewhere/", **HTMX).status_code == 204
    assert notices(text_of(client.get("/elsewhere/?seen=t1", **HTMX))) == [
        "Continued elsewhere. Reload to see all of it"
    ]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_empty_message_is_refused_in_place(alice, as_person, text):
    answer = say(as_person(alice), text, turn="t1")
    assert answer.status_code == 422
    assert answer["HX-Retarget"] == "#notices"
    assert notices(text_of(answer)) == ["There is nothing to send yet: the message is empty."]
    assert not access.folder_of(alice).exists()


def test_a_message_at_the_limit_is_taken_and_one_over_it_is_refused(alice, as_person, previously):
    previously(max_message_chars=10)
    client = as_person(alice)
    assert say(client, "a\r\n" * 4 + "🙂b").status_code == 200

    answer = say(client, "12345678901", seen=("t1",))
    assert answer.status_code == 422
    assert "1 character too long" in notices(text_of(answer))[0]
    assert newest(alice).turn_count == 1


def test_without_scripts_a_refused_message_keeps_its_text(alice, as_person, previously):
    previously(max_message_chars=10)
    keep(alice, None, ("t1", "One.", "1"), active=True)
    answer = say(as_person(alice), "\n<b>12345678901</b>", seen=("t1",), script=False)
    page = text_of(answer)
    assert answer.status_code == 422
    assert ">\n\n&lt;b&gt;12345678901&lt;/b&gt;</textarea>" in page
    assert entries(page) == ["turn-t1", "reply-t1"]


def test_nobody_speaks_without_signing_in(client):
    assert client.get("/")["Location"] == "/accounts/login/?next=/"
    assert say(client, "Hello.", script=False)["Location"] == "/accounts/login/?next=/"
    answer = say(client, "Hello.")
    assert answer.status_code == 401
    assert answer.content == b""


def test_a_message_needs_its_csrf_token_in_the_form_or_the_header(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert say(client, "Hello.").status_code == 403
    page = text_of(client.get("/"))
    header = re.search(r"""<body hx-headers='\{"X-CSRFToken": "([^"]+)"\}'""", page)
    field = re.search(r'<form class="composer".*?name="csrfmiddlewaretoken" value="([^"]+)"', page, re.S)
    assert header
    assert field
    assert client.post("/", {"text": "Hello."}, HTTP_X_CSRFTOKEN=header[1], **HTMX).status_code == 200
    assert client.post("/", {"text": "Hello.", "csrfmiddlewaretoken": field[1]}).status_code == 200
    assert newest(alice).turn_count > 0


def test_every_form_of_the_page_posts_without_scripts(alice, as_person):
    keep(alice, None, ("t1", "One.", None), active=True)
    forms = re.findall(r"<form [^>]*>.*?</form>", text_of(as_person(alice).get("/")), re.S)
    assert len(forms) >= 4
    for form in forms:
        assert re.search(r'method="post" action="/[^"]*"', form), form
        assert "csrfmiddlewaretoken" in form


def test_too_many_messages_are_refused_and_written_nowhere(alice, bob, as_person, previously):
    previously(turns_per_minute=2)
    client = as_person(alice)
    assert [say(client, f"Message {number}.").status_code for number in range(3)] == [200, 200, 429]
    assert len(newest(alice).person_entries) + len(access.folder_of(alice).newest(2)) >= 2
    assert not any(entry.content == "Message 2." for entry in newest(alice).entries)
    assert say(as_person(bob), "Message 0.").status_code == 200


@pytest.mark.usefixtures("no_broker")
def test_without_a_broker_the_message_is_saved_and_the_page_says_that_replies_are_late(alice, as_person):
    answer = say(as_person(alice), "Hello.", turn="t1")
    assert answer.status_code == 200
    assert "Replies are delayed" in notices(text_of(answer))[0]
    assert newest(alice).has("t1")
    assert "Replies are delayed" in notices(text_of(as_person(alice).get("/")))[0]


def test_a_disk_that_takes_no_words_is_said_and_nothing_claims_success(alice, as_person, data_dir):
    (data_dir / "folders").write_text("in the way")
    answer = say(as_person(alice), "Hello.", turn="t1")
    assert answer.status_code == 503
    assert answer["HX-Retarget"] == "#notices"
    assert "was not saved" in notices(text_of(answer))[0]


def test_a_merge_under_way_in_the_folder_is_said(alice, as_person):
    say(as_person(alice), "Hello.")
    (folder_of(alice).root / ".git" / "MERGE_HEAD").write_text("0" * 40)
    answer = say(as_person(alice), "Hello again.")
    assert "a merge is under way" in notices(text_of(answer))[0]
    assert "a merge is under way" in notices(text_of(as_person(alice).get("/")))[0]


def test_a_damaged_slice_is_left_alone_and_shown_with_a_link(alice, as_person):
    broken = keep(alice, None, ("t1", "One.", "1"), active=True)
    path = access.folder_of(alice).root / core_file(broken.slice_id)
    path.write_text("---\nslice_id: [\n---\n")
    page = text_of(say(as_person(alice), "Hello.", turn="t2", seen=("t1",)))
    assert f'href="/slices/{broken.path}/"' in page
    assert notices(page)[0].endswith("See what is wrong")
    assert path.read_text() == "---\nslice_id: [\n---\n"
    assert "Damaged" in text_of(as_person(alice).get("/"))


def test_close_ends_the_slice_without_an_entry(alice, as_person):
    ended = keep(alice, None, ("t1", "One.", "1"), active=True)
    page = text_of(say(as_person(alice), "/close", turn="t2", seen=("t1",)))
    assert "Slice closed · you ended it" in page
    assert entries(page) == []
    assert access.folder_of(alice).slice(ended.slice_id).closed_by == "user_explicit"
    assert notices(text_of(say(as_person(alice), "/close"))) == ["There is no open slice to end."]


@pytest.mark.parametrize(
    ("browser", "kept"), [("Asia/Shanghai", "Asia/Shanghai"), ("Mars/Phobos", "UTC"), ("../../etc", "UTC"), ("", "UTC")]
)
def test_the_browsers_zone_counts_until_one_is_chosen(charlie, alice, as_person, browser, kept):
    say(as_person(charlie), "Hello.", zone=browser)
    say(as_person(alice), "Hello.", zone=browser)
    assert newest(charlie).timezone == kept
    assert newest(alice).timezone == "Europe/Berlin"


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>"])
def test_hostile_text_is_shown_as_text(alice, as_person, text):
    page = text_of(say(as_person(alice), text, turn="t1", script=False))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert 'id="turn-t1"' in page


def test_a_nul_and_half_a_character_are_replaced_and_the_message_is_kept(alice, as_person):
    sent = b"turn=t1&text=a%00b%ED%A0%BDc"
    answer = as_person(alice).post("/", sent, content_type="application/x-www-form-urlencoded", **HTMX)
    assert answer.status_code == 200
    kept = newest(alice).entry("t1", "user").content
    assert kept.startswith("a\ufffdb\ufffd")
    assert kept.endswith("c")


def test_pages_hold_no_inline_script_and_no_inline_style(alice, as_person):
    keep(alice, None, ("t1", "One.", "`1`"), ("t2", "Two.", None), active=True, open_loops=("x",))
    client = as_person(alice)
    for page in (text_of(client.get("/")), text_of(say(client, "Three.", seen=("t2",)))):
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|javascript:", page)
        assert not re.search(r"<script(?![^>]*\ssrc=)", page)


def test_a_page_costs_the_same_queries_however_much_there_is(alice, as_person, django_assert_num_queries):
    client = as_person(alice)
    client.get("/")
    with django_assert_num_queries(2):
        client.get("/")
    for day in range(40):
        keep(alice, utc_now() - timedelta(days=day + 1), (f"t{day}", "One.", "1"), focus=f"Slice {day}")
    with django_assert_num_queries(2):
        client.get("/")
    with django_assert_num_queries(2):
        say(client, "Hello.")


def test_two_people_see_nothing_of_each_other(alice, charlie, as_person):
    keep(alice, None, ("t1", "The secret word is quince.", "Quince."), active=True, open_loops=("quince jam",))
    page = text_of(say(as_person(charlie), "What is the secret word?", seen=("t1",)))
    assert "quince" not in page.lower()
    assert "quince" not in text_of(as_person(charlie).get("/")).lower()
    assert "quince" not in text_of(as_person(charlie).get("/elsewhere/?seen=t0", **HTMX)).lower()


def test_the_limit_of_the_page_is_the_servers(alice, as_person):
    assert f'data-limit="{settings.PREVIOUSLY.max_message_chars}"' in text_of(as_person(alice).get("/"))


def test_a_person_who_speaks_chinese_gets_the_page_in_chinese_shape(bob: User, as_person):
    page = text_of(as_person(bob).get("/"))
    assert '<html lang="zh-hans"' in page
