"""Watching a reply being written: what the page is sent, to whom, and what the server holds meanwhile."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import translation

from accounts.models import User
from memory import access
from memory.conversation.events import Attempt, Ended, Heartbeat, Reasoning, Step, Text, Waiting
from memory.conversation.outcomes import Outcome, record_outcome
from memory.folder.clock import utc_now
from memory.folder.paths import core_file
from memory.views import watch as watching
from memory.views.watch import RETRY, Watch, frame
from previously_site.stopping import stopping
from tests.web.watched import TURN, Reply, asked, names, parsed


class Clock:
    """Stands still until it is moved; shows the present, for the view asks the system's clock."""

    def __init__(self) -> None:
        self.start = utc_now()
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    @property
    def ms(self) -> int:
        return int(self.now().timestamp() * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reply(alice: User, clock: Clock) -> Reply:
    return asked(access.folder_of(alice), clock.start)


@pytest.fixture
def request_of_alice(rf: RequestFactory, as_person: Callable[[User], Client], alice: User) -> HttpRequest:
    request = rf.get("/")
    request.user = alice
    request.session = as_person(alice).session
    return request


@pytest.fixture
def watch(reply: Reply, request_of_alice: HttpRequest, clock: Clock) -> Watch:
    return Watch(request_of_alice, reply.folder, reply.slice, TURN, now=clock.now, monotonic=clock.monotonic)


def sent(watch: Watch, clock: Clock, *, after: float = 1) -> list[tuple[str, str]]:
    """What the page is sent by a look so many seconds later: (event, data) pairs."""
    clock.seconds += after
    return parsed(watch.say()) if watch.look() else []


def test_it_works(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "You settled on **oak**."))
    [(name, whole)] = sent(watch, clock, after=0)
    assert name == "whole"
    assert "You settled on <strong>oak</strong>." in whole

    reply.happens(Text(clock.ms, "\n\nIt has to stay"))
    assert sent(watch, clock) == [
        ("tail", "<p>You settled on <strong>oak</strong>.</p>\n<p>It has to stay</p>\n"),
    ]
    reply.happens(Text(clock.ms, " under 900.\n\n"))
    assert sent(watch, clock) == [
        ("block", "<p>You settled on <strong>oak</strong>.</p>\n"),
        ("tail", "<p>It has to stay under 900.</p>\n"),
    ]
    assert sent(watch, clock) == []

    reply.is_recorded("You settled on **oak**.\n\nIt has to stay under 900.", clock.now())
    reply.happens(Ended(clock.ms, "done"))
    [(name, end)] = sent(watch, clock)
    assert name == "end"
    assert f'id="reply-{TURN}"' in end
    assert "It has to stay under 900." in end
    assert watch.closed


def test_an_event_survives_every_kind_of_line_break() -> None:
    data = "<pre>a\n\nb\rc\r\n\r\nd</pre>\n"
    assert parsed(frame("tail", data, "1-2")) == [("tail", "<pre>a\n\nb\nc\n\nd</pre>\n")]
    assert frame("tail", "event: end", "1").count(b"\nevent:") == 0


def test_a_page_that_comes_late_or_again_gets_the_whole(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Reasoning(clock.ms, "Hm."), Step(clock.ms + 2000, "recall", "ok", "the worktop"))
    reply.happens(Text(clock.ms + 2000, "One.\n\nTwo.\n\nThr"))
    [(name, whole)] = sent(watch, clock)
    assert name == "whole"
    for part in ("Hm.", "the worktop", "<p>One.</p>", "<p>Two.</p>", "<p>Thr</p>"):
        assert whole.count(part) == 1


def test_a_new_attempt_replaces_what_the_one_before_brought(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "First try.\n\nwith more\n\nand"))
    sent(watch, clock)
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Second try."))
    [(name, whole)] = sent(watch, clock)
    assert name == "whole"
    assert "Second try." in whole
    assert "First try." not in whole


def test_a_late_link_definition_sends_the_whole(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "See [it].\n\nMore.\n\n"))
    sent(watch, clock)
    reply.happens(Text(clock.ms, "[it]: https://e.example\n\nAnd\n\nlast\n"))
    [(name, whole)] = sent(watch, clock)
    assert name == "whole"
    assert 'href="https://e.example"' in whole


def test_thinking_and_steps_are_sent_when_they_change(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Waiting(clock.ms, "remembering"))
    [(name, whole)] = sent(watch, clock)
    assert name == "whole"
    assert "Remembering" in whole
    reply.happens(Attempt(clock.ms))
    assert names(sent(watch, clock)) == ["whole"]
    reply.happens(Reasoning(clock.ms, "Let me see."))
    assert names(sent(watch, clock)) == ["steps"]
    reply.happens(Heartbeat(clock.ms))
    assert sent(watch, clock) == []
    reply.happens(Text(clock.ms, "Oak."))
    events = sent(watch, clock)
    assert names(events) == ["steps", "tail"]
    assert "Thought for 2 s" in events[0][1]


def test_rendering_takes_a_twentieth_of_the_time_at_most(
    reply: Reply, watch: Watch, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "a"))
    sent(watch, clock)
    grow = watching.GrowingMessage.grow

    def slow(message: Any, text: str) -> Any:
        clock.seconds += 0.2
        return grow(message, text)

    monkeypatch.setattr(watching.GrowingMessage, "grow", slow)
    reply.happens(Text(clock.ms, "b"))
    assert names(sent(watch, clock)) == ["tail"]
    assert watch.heavy, "the next one is rendered outside the event loop"
    reply.happens(Text(clock.ms, "c"))
    assert sent(watch, clock, after=3.9) == []
    assert names(sent(watch, clock, after=0.2)) == ["tail"]


def test_looks_are_frequent_until_the_first_words(reply: Reply, watch: Watch, clock: Clock) -> None:
    assert watch.pause == watching.FIRST_PACE
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oak"))
    sent(watch, clock)
    assert watch.pause == watching.PACE
    reply.happens(Text(clock.ms, " it"))
    assert names(sent(watch, clock, after=0.2)) == ["tail"]
    reply.happens(Text(clock.ms, " is"))
    assert sent(watch, clock, after=0.1) == []
    assert names(sent(watch, clock, after=0.1)) == ["tail"]


def test_a_silent_stream_is_kept_alive(reply: Reply, watch: Watch, clock: Clock) -> None:
    sent(watch, clock)
    clock.seconds += 14
    assert not watch.look() or watch.say() == b""
    clock.seconds += 1
    assert watch.look()
    assert watch.say().startswith(b": ")


def test_a_worker_that_fell_silent_is_something_the_reply_waits_for(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oak"))
    sent(watch, clock)
    clock.seconds = 20.5
    [(name, steps)] = sent(watch, clock, after=0)
    assert name == "steps"
    assert 'class="waiting"' in steps
    reply.happens(Heartbeat(clock.ms))
    [(name, steps)] = sent(watch, clock)
    assert name == "steps"
    assert 'class="waiting"' not in steps


@pytest.mark.parametrize("how", ["failed", "stopped"])
def test_a_reply_that_ends_without_an_entry(reply: Reply, watch: Watch, clock: Clock, how: Any) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "half a re"))
    sent(watch, clock)
    code = "timed_out" if how == "failed" else ""
    record_outcome(reply.folder.state.directory, reply.slice.slice_id, TURN, Outcome(how, code, clock.now()))
    reply.happens(Ended(clock.ms, how, code))
    [(name, end)] = sent(watch, clock)
    assert name == "end"
    assert f'data-outcome="{how}"' in end
    assert "half a re" in end
    assert watch.closed


def test_an_end_without_a_terminal_event_is_found_in_the_record(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oa"))
    sent(watch, clock)
    reply.is_recorded("Oak.", clock.now())
    assert sent(watch, clock) == []
    assert names(sent(watch, clock, after=6)) == ["end"]


def test_done_before_the_entry_is_seen_is_looked_at_again(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oak."), Ended(clock.ms, "done"))
    assert "end" not in names(sent(watch, clock, after=0.5))
    reply.is_recorded("Oak.", clock.now())
    assert names(sent(watch, clock, after=0.5)) == ["end"]


def test_a_slice_that_vanishes_ends_the_stream(reply: Reply, watch: Watch, clock: Clock) -> None:
    (reply.folder.root / core_file(reply.slice.slice_id)).unlink()
    clock.seconds += 7
    assert watch.look()
    assert watch.say() == RETRY
    assert watch.closed


def test_a_stream_lives_five_minutes_and_the_browser_comes_back(watch: Watch, clock: Clock) -> None:
    clock.seconds = 299
    watch.look()
    watch.say()
    assert not watch.closed
    clock.seconds = 300
    assert watch.look()
    assert watch.say() == RETRY
    assert watch.closed


@pytest.fixture
def stopping_set() -> Iterator[None]:
    stopping.set()
    yield
    stopping.clear()


@pytest.mark.usefixtures("stopping_set")
def test_a_server_that_stops_sends_its_watchers_away(reply: Reply, watch: Watch, clock: Clock) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oak"))
    assert watch.look()
    assert watch.say() == RETRY
    assert watch.closed


def test_words_come_in_the_language_of_the_request(reply: Reply, request_of_alice: HttpRequest, clock: Clock) -> None:
    with translation.override("zh-hans"):
        watch = Watch(request_of_alice, reply.folder, reply.slice, TURN, now=clock.now, monotonic=clock.monotonic)
        expected = translation.gettext("Reply")
    reply.is_recorded("Oak.", clock.now())
    clock.seconds = 7
    watch.look()
    assert f'aria-label="{expected}"' in watch.say().decode()
    assert translation.get_language() != "zh-hans"


def test_the_session_is_asked_again_every_half_minute(
    reply: Reply, watch: Watch, request_of_alice: HttpRequest, clock: Clock
) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oak"))
    stream = watching._stream(request_of_alice, watch)
    assert next(stream) == RETRY
    assert names(parsed(next(stream))) == ["whole"]
    clock.seconds = 31
    reply.happens(Text(clock.ms, " it is"))
    assert names(parsed(next(stream))) == ["tail"]
    request_of_alice.session.flush()
    clock.seconds = 62
    reply.happens(Text(clock.ms, " not for you"))
    assert list(stream) == []


def test_an_account_that_was_closed_watches_no_more(request_of_alice: HttpRequest, alice: User) -> None:
    assert watching._still_allowed(request_of_alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert not watching._still_allowed(request_of_alice)


def test_the_stream_says_that_it_is_not_to_be_held_back(
    reply: Reply, as_person: Callable[[User], Client], alice: User, clock: Clock
) -> None:
    reply.happens(Attempt(clock.ms), Text(clock.ms, "Oak."), Ended(clock.ms, "done"))
    reply.is_recorded("Oak.", clock.now())
    response = as_person(alice).get(reply.path, headers={"accept-encoding": "gzip"})
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response["Cache-Control"] == "no-cache, no-transform"
    assert response["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in response
    stream = b"".join(response.streaming_content)
    assert names(parsed(stream)) == ["end"], "the reply ended while the page was loading"


def test_nothing_to_stream(reply: Reply, as_person: Callable[[User], Client], alice: User, clock: Clock) -> None:
    reply.is_recorded("Oak.", clock.now())
    client = as_person(alice)
    assert client.get(reply.path).status_code == 204
    reply.happens(Attempt(clock.ms), Ended(clock.ms, "done"))
    assert client.get(reply.path, headers={"last-event-id": "end"}).status_code == 204
    assert client.get(reply.path, headers={"last-event-id": "1-300"}).status_code == 200


def test_only_the_owner_watches(
    reply: Reply, as_person: Callable[[User], Client], alice: User, charlie: User, dana: User, client: Client
) -> None:
    assert client.get(reply.path).status_code == 401
    for stranger in (charlie, dana):
        assert as_person(stranger).get(reply.path).status_code == 404
    assert as_person(alice).get(reply.path.replace(TURN, "other1")).status_code == 404
    assert as_person(alice).get("/replies/2026/13/10/2130/mVhV2g/stream/").status_code == 404
    assert as_person(alice).post(reply.path).status_code == 405


def test_a_damaged_slice_has_nothing_to_stream(reply: Reply, as_person: Callable[[User], Client], alice: User) -> None:
    (reply.folder.root / core_file(reply.slice.slice_id)).write_text("---\nfocus: [\n---\n", "utf-8")
    assert as_person(alice).get(reply.path).status_code == 404
