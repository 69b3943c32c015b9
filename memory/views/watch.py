"""A page watches a reply being written: a stream of server-sent events, each of them a piece of HTML.

Nothing is held while waiting: no lock, no open file, no database connection. A watcher that comes, or comes back, is
sent the whole reply so far, so nothing is ever shown twice or missing. It gets exactly one `end` event, with the
finished reply, however that came about.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import auth
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from memory import access
from memory.conversation.events import Fold, ReplyState, fold, read_events
from memory.conversation.status import DELAYED_AFTER
from memory.folder.clock import utc_now
from memory.folder.errors import BadId, Damaged, NotThere
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.markdown import GrowingMessage, Growth
from previously_site.stopping import stopping

from .transcript import FinishedReply, reply_of

PACE = 0.125
FIRST_PACE = 0.015
FIRST_SECONDS = 10.0
RENDER_SHARE = 20
HEAVY_SECONDS = 0.01
KEEP_ALIVE = 15.0
CHECK_RIGHTS = 30.0
SILENCE = 6.0
LIFE = 300.0

RETRY = b"retry: 1000\n\n"
END_ID = "end"


def frame(event: str, data: str, event_id: str) -> bytes:
    """One server-sent event. Each line of the data gets a `data:` of its own, or the event would end there."""
    lines = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\n|\r", data))
    return f"event: {event}\nid: {event_id}\n{lines}\n".encode("utf-8", "replace")


class Watch:
    """What one page was sent of one reply, and what it is to be sent next.

    `look` is cheap and may run in an event loop; `say` renders, and belongs in a thread when `heavy`.
    """

    def __init__(
        self,
        request: HttpRequest,
        folder: MemoryFolder,
        slice_: Slice,
        turn_id: str,
        *,
        now: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.closed = False
        self._request = request
        self._folder = folder
        self._slice_id = slice_.slice_id
        self._turn_id = turn_id
        self._now = now
        self._monotonic = monotonic
        self._language = translation.get_language() or settings.LANGUAGE_CODE
        self._zone = timezone.get_current_timezone()
        self._opened = self._sent = self._heard = self._rights = monotonic()
        # The reply may have ended, or ended long ago without an event: the first look finds out.
        self._asked = float("-inf")
        self._offset = 0
        self._fold = Fold()
        self._state = ReplyState()
        self._new = True
        self._attempts = -1
        self._message = GrowingMessage()
        self._text = ""
        self._tail = SafeString()
        self._steps: object = None
        self._render_seconds = HEAVY_SECONDS
        self._render_after = float("-inf")

    @property
    def pause(self) -> float:
        """Seconds until the next look: short before the first words, which people wait for."""
        if not self._text and self._monotonic() - self._opened < FIRST_SECONDS:
            return FIRST_PACE
        return PACE

    @property
    def heavy(self) -> bool:
        """Whether what is to be said next may take long: the whole, the end, or a long last block."""
        return self._ask_due or self._attempts != self._state.attempts or self._render_seconds >= HEAVY_SECONDS

    @property
    def rights_due(self) -> bool:
        """Whether it is time to check again that this person may watch; says so once a period."""
        if self._monotonic() - self._rights < CHECK_RIGHTS:
            return False
        self._rights = self._monotonic()
        return True

    def look(self) -> bool:
        """Read what is new; whether there is something to say."""
        events, self._offset = read_events(self._folder.state.directory, self._slice_id, self._turn_id, self._offset)
        now = self._monotonic()
        for event in events:
            self._fold.add(event)
        if events:
            self._state = self._fold.state()
            self._heard = now
            self._new = True
        return self._leave_due or self._ask_due or self._show_due or now - self._sent >= KEEP_ALIVE

    def say(self) -> bytes:
        """What the page is to be sent now; sets `closed` with the last of it."""
        if self._leave_due:
            self.closed = True
            return RETRY
        with translation.override(self._language), timezone.override(self._zone):
            said = self._end() if self._ask_due else b""
            if not self.closed and self._show_due:
                said += self._progress()
        now = self._monotonic()
        if not said and now - self._sent >= KEEP_ALIVE:
            said = b": still here\n\n"
        if said:
            self._sent = now
        return said

    @property
    def _leave_due(self) -> bool:
        return stopping.is_set() or self._monotonic() - self._opened >= LIFE

    @property
    def _ask_due(self) -> bool:
        """Whether to look at the record itself: at the terminal event, or when nobody has written for long."""
        now = self._monotonic()
        if self._state.ended:
            return now - self._asked >= PACE
        return now - max(self._asked, self._heard) >= SILENCE

    @property
    def _show_due(self) -> bool:
        """Whether the page lacks something and the last rendering was long enough ago."""
        return self._monotonic() >= self._render_after and (self._new or self._steps_now() != self._steps)

    def _end(self) -> bytes:
        """The terminal event, if the record says that the reply is over."""
        self._asked = self._monotonic()
        try:
            reply = reply_of(self._folder, self._folder.slice(self._slice_id), self._turn_id, self._now())
        except (NotThere, Damaged):
            # The slice was moved, or broken by hand, while we watched. The page asks again and is told.
            self.closed = True
            return RETRY
        if not isinstance(reply, FinishedReply):
            return b""
        self.closed = True
        return frame("end", render_to_string(reply.template, {"reply": reply}, self._request), END_ID)

    def _progress(self) -> bytes:
        begun = self._monotonic()
        state, steps = self._state, self._steps_now()
        whole = state.attempts != self._attempts
        if whole:
            self._message, self._text, self._tail = GrowingMessage(), "", SafeString()
        growth = Growth(SafeString(), self._tail)
        if state.text != self._text:
            growth = self._message.grow(state.text)
        said = []
        if whole or growth.anew:
            context = {"state": self._shown(), "blocks": growth.blocks, "tail": growth.tail}
            said.append(self._frame("whole", render_to_string("memory/_reply_live.html", context)))
        else:
            if steps != self._steps:
                said.append(self._frame("steps", render_to_string("memory/_steps.html", {"state": self._shown()})))
            if growth.blocks:
                said.append(self._frame("block", growth.blocks))
            if growth.tail != self._tail:
                said.append(self._frame("tail", growth.tail))
        self._attempts, self._text, self._tail, self._steps = state.attempts, state.text, growth.tail, steps
        self._new = False
        now = self._monotonic()
        self._render_seconds = now - begun
        self._render_after = now + max(PACE, RENDER_SHARE * self._render_seconds)
        return b"".join(said)

    def _shown(self) -> ReplyState:
        """The state as it is worded: a worker that fell silent is something the reply waits for."""
        return replace(self._state, waiting="delayed") if self._delayed else self._state

    @property
    def _delayed(self) -> bool:
        last_at = self._state.last_at
        silent = timedelta(milliseconds=self._now().timestamp() * 1000 - last_at)
        return bool(last_at) and not self._state.ended and silent > DELAYED_AFTER

    def _steps_now(self) -> object:
        """What the steps show; sent again only when it differs."""
        state = self._state
        return self._delayed, state.waiting, len(state.reasoning), state.thinking, state.steps, state.notices

    def _frame(self, event: str, html: str) -> bytes:
        return frame(event, html, f"{self._state.attempts}-{self._offset}")


@require_GET
async def reply_stream(request: HttpRequest, slice_path: str, turn_id: str) -> HttpResponseBase:
    """The stream of one reply to its owner; 401 signed out, 404 a stranger's or unknown, 204 nothing left to stream."""
    watch = await sync_to_async(_open)(request, slice_path, turn_id)
    if isinstance(watch, HttpResponse):
        return watch
    under_asgi = isinstance(request, ASGIRequest)
    return StreamingHttpResponse(
        _stream_async(request, watch) if under_asgi else _stream(request, watch),
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


def _open(request: HttpRequest, slice_path: str, turn_id: str) -> Watch | HttpResponse:
    """Check who asks for what, and leave no database connection behind."""
    try:
        if not request.user.is_authenticated:
            return HttpResponse(status=401)  # an event source would follow a redirect and make nothing of the page
        folder = access.folder_of(request.user)
        try:
            slice_ = access.slice_or_404(folder, slice_path)
            reply = reply_of(folder, slice_, turn_id, utc_now())
        except (BadId, NotThere, Damaged) as error:
            raise Http404("no such reply") from error
        if isinstance(reply, FinishedReply) and not _missed_the_end(request, folder, slice_, turn_id):
            return HttpResponse(status=204)
        return Watch(request, folder, slice_, turn_id)
    finally:
        _let_go()


def _missed_the_end(request: HttpRequest, folder: MemoryFolder, slice_: Slice, turn_id: str) -> bool:
    """Whether a page that asks for a finished reply was still waiting for its end.

    It was when its connection broke before the `end` event, or when the reply ended while the page was loading.
    """
    last_id = request.headers.get("Last-Event-ID", "")
    last_at = fold(read_events(folder.state.directory, slice_.slice_id, turn_id)[0]).last_at
    return last_id != END_ID and (bool(last_id) or utc_now().timestamp() - last_at / 1000 < LIFE)


def _still_allowed(request: HttpRequest) -> bool:
    """Whether the session and the account are still good, asked afresh; closes its database connection."""
    try:
        probe = HttpRequest()
        store = import_module(settings.SESSION_ENGINE).SessionStore
        probe.session = store(request.session.session_key)
        return bool(auth.get_user(probe).pk == request.user.pk)
    finally:
        _let_go()


def _let_go() -> None:
    """Close this thread's database connections: a stream waits for minutes and there are few of them."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def _say_and_let_go(watch: Watch) -> bytes:
    try:
        return watch.say()
    finally:
        _let_go()


async def _stream_async(request: HttpRequest, watch: Watch) -> AsyncIterator[bytes]:
    yield RETRY
    while not watch.closed:
        if watch.rights_due and not await asyncio.to_thread(_still_allowed, request):
            return
        if watch.look():
            yield await asyncio.to_thread(_say_and_let_go, watch) if watch.heavy else watch.say()
        if not watch.closed:
            await asyncio.sleep(watch.pause)


def _stream(request: HttpRequest, watch: Watch) -> Iterator[bytes]:
    yield RETRY
    while not watch.closed:
        if watch.rights_due and not _still_allowed(request):
            return
        if watch.look():
            yield _say_and_let_go(watch)
        if not watch.closed:
            stopping.wait(watch.pause)
