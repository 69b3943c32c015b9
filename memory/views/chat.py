"""The chat page: coming back, and saying something."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import reswap, retarget

from memory import access
from memory.conversation.due import Answer, Close, Job, due
from memory.conversation.person import Person
from memory.conversation.receive import LOOK_BACK, ClosedBehind, Ended, NothingOpen, Received, receive
from memory.folder.clock import local_day, utc_now
from memory.folder.errors import FolderError, LockTimeout, NewerFormat
from memory.folder.paths import new_turn_id
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry
from memory.forms import MessageForm
from memory.pace import MINUTE, TooFast, too_fast

from . import notices, spine
from .arrival import arrival
from .notices import Notice
from .signed_in import signed_in
from .transcript import Day, Item, Transcript, Turn, age, last_shown, missing, turn_ids
from .work import hand_over

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Composer:
    """What the form carries: a fresh turn id, the turns that the page shows, typed text that was not taken."""

    turn_id: str
    seen: tuple[str, ...] = ()
    text: str = ""
    limit: int = 0


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Turns that a page lacks, and the shown turn before which they belong."""

    before: str
    turns: tuple[Turn, ...]


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def chat(request: HttpRequest) -> HttpResponse:
    """The page, and what is said on it."""
    return _say(request) if request.method == "POST" else _come(request)


@signed_in
@require_safe
def elsewhere(request: HttpRequest) -> HttpResponse:
    """Whether the conversation that a page shows went on somewhere else; the page asks when it becomes visible."""
    folder = access.folder_of(request.user)
    shown = MessageForm(request.GET, limit=0).fields["seen"].clean(request.GET.getlist("seen"))
    newest = next(iter(folder.newest(1)), None)
    if not shown or not isinstance(newest, Slice) or not newest.person_entries:
        return HttpResponse(status=204)
    last = turn_ids(newest)[-1]
    if last in shown:
        return HttpResponse(status=204)
    told = [notices.elsewhere(newest.path, last)]
    return render(request, "memory/_notices.html", {"notices": told})


def page(
    request: HttpRequest,
    folder: MemoryFolder,
    person: Person,
    shown: Collection[str],
    *,
    text: str = "",
    told: Sequence[Notice] = (),
    status: int = 200,
) -> HttpResponse:
    """The whole page with the turns in `shown`; with none of them it is the arrival view."""
    now = utc_now()
    newest = folder.newest(LOOK_BACK)
    transcript = Transcript(folder, newest, person, now)
    items = transcript.items(shown)
    open_slice = _open_slice(transcript, shown)
    lines = spine.newest(folder)
    context = {
        "items": items,
        "arrival": None if items else arrival(folder, person, lines),
        "spine": spine.build(folder, person, lines, without=open_slice.slice_id if open_slice else None),
        "age": age(open_slice, person, now) if open_slice else None,
        "composer": _composer(transcript, shown, text=text),
        "notices": [*told, *notices.of_folder(folder, newest)],
    }
    return render(request, "memory/chat.html", context, status=status)


def _come(request: HttpRequest) -> HttpResponse:
    """A fresh page: an empty conversation, but a reply in flight is taken up again with its turn."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    now = utc_now()
    owed = Transcript(folder, folder.newest(LOOK_BACK), person, now).owed
    told = [] if hand_over(request.user, due(folder, now)) or not owed else [notices.delayed()]
    return page(request, folder, person, [answer.turn_id for answer in owed], told=told)


def _say(request: HttpRequest) -> HttpResponse:
    """Take in one message and show it, with the reply to come."""
    folder = access.folder_of(request.user)
    form = MessageForm(request.POST, limit=settings.PREVIOUSLY.max_message_chars)
    valid = form.is_valid()
    sent = form.cleaned_data
    person = access.person_of(request.user, browser_zone=sent.get("zone", ""))
    text, shown = request.POST.get("text", ""), sent.get("seen", frozenset())
    if not valid:
        return _refuse(request, folder, person, shown, text, " ".join(form.errors.get("text", [])), status=422)
    if limit := too_fast(request.user.pk):
        return _refuse(request, folder, person, shown, text, _too_fast(limit), status=429)
    now = utc_now()
    try:
        outcome = receive(folder, sent["text"], turn_id=sent["turn"], seen=shown, person=person, now=now)
    except (FolderError, OSError) as error:
        log.exception("a message of %s was not taken", request.user.pk)
        return _refuse(request, folder, person, shown, text, _why_not_taken(error), status=503)
    match outcome:
        case Received(slice_id=slice_id, turn_id=turn_id, closed=behind):
            jobs: list[Job] = [Close(behind.slice_id)] if behind else []
            handed = hand_over(request.user, [*jobs, Answer(slice_id, turn_id)])
            return _received(request, folder, person, outcome, shown, [] if handed else [notices.delayed()])
        case Ended(closed=closed):
            hand_over(request.user, due(folder, now))
            return _ended(request, folder, person, closed, shown)
        case NothingOpen():
            return _ended(request, folder, person, None, shown)


def _received(
    request: HttpRequest,
    folder: MemoryFolder,
    person: Person,
    received: Received,
    shown: Collection[str],
    told: list[Notice],
) -> HttpResponse:
    """The answer to a message that is on disk: the turn, and whatever the page lacks beside it."""
    now = utc_now()
    newest = folder.newest(LOOK_BACK)
    transcript = Transcript(folder, newest, person, now)
    found = transcript.slice(received.slice_id)
    if received.damaged:
        told = [*told, notices.damaged(received.damaged)]
    if not request.htmx:  # type: ignore[attr-defined]
        return page(request, folder, person, {*shown, *turn_ids(found)}, told=told)
    runs = missing(found, {*shown, received.turn_id})
    between = [run for run in runs if run[0] not in (None, received.turn_id)]
    before = [entry for follower, run in runs if follower == received.turn_id for entry in run]
    turn = transcript.turn(found, _said(found, received.turn_id))
    again = received.turn_id in shown
    if before and shown:
        told = [*told, notices.elsewhere(found.path, received.turn_id)]
    items: list[Item] = []
    if closed := _closed_behind(received, transcript, shown):
        items.append(transcript.edge(closed))
    if not again and (day := _new_day(transcript, shown, turn)):
        items.append(day)
    items += [transcript.turn(found, entry) for entry in before]
    context = {
        "items": items if again else [*items, turn],
        "replaced": [turn] if again else [],
        "earlier": [
            Earlier(before=follower, turns=tuple(transcript.turn(found, entry) for entry in run))
            for follower, run in between
            if follower
        ],
        "composer": _composer(transcript, {*shown, *turn_ids(found)}),
        "age": age(found, person, now),
        "notices": [*told, *notices.of_folder(folder, ())],
        "spine": _spine_when_changed(folder, person, found),
    }
    return render(request, "memory/_answer.html", context)


def _ended(
    request: HttpRequest,
    folder: MemoryFolder,
    person: Person,
    closed: ClosedBehind | None,
    shown: Collection[str],
) -> HttpResponse:
    """The answer to `/close`; `closed` is None when no slice was open."""
    told = [] if closed else [Notice(text=_("There is no open slice to end."))]
    if not request.htmx:  # type: ignore[attr-defined]
        return page(request, folder, person, shown, told=told)
    transcript = Transcript(folder, folder.newest(LOOK_BACK), person, utc_now())
    context = {
        "items": [transcript.edge(transcript.slice(closed.slice_id))] if closed else [],
        # With its slice the conversation on this page is over: the next message begins another one.
        "composer": _composer(transcript, () if closed else shown),
        "age": None,
        "notices": told,
        "spine": spine.build(folder, person, spine.newest(folder)),
    }
    return render(request, "memory/_answer.html", context)


def _refuse(
    request: HttpRequest,
    folder: MemoryFolder,
    person: Person,
    shown: Collection[str],
    text: str,
    words: str,
    *,
    status: int,
) -> HttpResponse:
    """The message was not taken: say why beside the composer, which keeps the text."""
    told = [notices.refused(words)]
    if not request.htmx:  # type: ignore[attr-defined]
        return page(request, folder, person, shown, text=text, told=told, status=status)
    response = render(request, "memory/_notices.html", {"notices": told}, status=status)
    return reswap(retarget(response, "#notices"), "outerHTML")


def _too_fast(limit: TooFast) -> str:
    if limit.seconds == MINUTE:
        words = ngettext(
            "This server takes %(most)d message a minute. Your text is kept; send it again in a minute.",
            "This server takes %(most)d messages a minute. Your text is kept; send it again in a minute.",
            limit.most,
        )
    else:
        words = ngettext(
            "This server takes %(most)d message a day. Your text is kept; send it again tomorrow.",
            "This server takes %(most)d messages a day. Your text is kept; send it again tomorrow.",
            limit.most,
        )
    return words % {"most": limit.most}


def _why_not_taken(error: Exception) -> str:
    match error:
        case LockTimeout():
            return _("Your folder is busy, and the message was not saved. Your text is kept; send it again shortly.")
        case NewerFormat():
            return _(
                "Your folder was written by a newer version of this program, and the message was not saved. The person"
                " who runs this site has to upgrade it."
            )
        case _:
            return _(
                "The message could not be written to the disk and was not saved. Your text is kept; the person who runs"
                " this site has to look at the disk."
            )


def _said(found: Slice, turn_id: str) -> Entry:
    return next(entry for entry in found.person_entries if entry.turn_id == turn_id)


def _closed_behind(received: Received, transcript: Transcript, shown: Collection[str]) -> Slice | None:
    """The slice whose end a page has to show: closed by this message, or by another page in the meantime."""
    if received.closed:
        return transcript.slice(received.closed.slice_id)
    last = last_shown(transcript.slices, shown)
    return last[0] if last and not last[0].active and last[0].slice_id != received.slice_id else None


def _new_day(transcript: Transcript, shown: Collection[str], turn: Turn) -> Day | None:
    """The line above a turn that is the first of its day on the page."""
    last = last_shown(transcript.slices, set(shown) - {turn.said.turn_id})
    if last and local_day(last[1].at, last[0].timezone) == local_day(turn.said.at, turn.zone):
        return None
    return Day(at=turn.said.at, zone=turn.zone)


def _open_slice(transcript: Transcript, shown: Collection[str]) -> Slice | None:
    """The active slice when the page shows a turn of it: the conversation is in it."""
    return next((one for one in transcript.slices if one.active and set(turn_ids(one)) & set(shown)), None)


def _spine_when_changed(folder: MemoryFolder, person: Person, found: Slice) -> spine.Spine | None:
    """The spine anew when the message opened a slice; it stands under "Now" from then on."""
    if found.turn_count > 1:
        return None
    return spine.build(folder, person, spine.newest(folder), without=found.slice_id)


def _composer(transcript: Transcript, shown: Collection[str], *, text: str = "") -> Composer:
    """A composer for the next message. Of the shown turns those of the newest slices are kept: no other can matter."""
    kept = tuple(turn_id for found in transcript.slices for turn_id in turn_ids(found) if turn_id in shown)
    return Composer(turn_id=new_turn_id(), seen=kept, text=text, limit=settings.PREVIOUSLY.max_message_chars)
