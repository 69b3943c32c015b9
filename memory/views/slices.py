"""One slice: its marks, and its views: conversation, thoughts, appendix, the card then, history, the raw file."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from memory import access, wording
from memory.conversation.due import due
from memory.conversation.person import Person
from memory.conversation.receive import end_slice
from memory.folder import neighbours
from memory.folder.clock import local, local_day, utc_now
from memory.folder.errors import BadId, Damaged, FolderError, Outside
from memory.folder.paths import (
    SLICES,
    agent_file,
    appendix_file,
    core_file,
    frozen_card_file,
    id_of,
    minute_of,
    parse_slice_path,
    path_of,
)
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.strands import follow, normalise
from memory.folder.timeline import DamagedSlice, Line, lines_for
from memory.folder.turns import Entry

from .card_shown import shown
from .history import history_of
from .links import OwnLinks
from .rows import StrandLink
from .signed_in import signed_in
from .spine import focus_of
from .thoughts import Thought, by_turn, outside_turns, thoughts_of
from .transcript import FinishedReply, reply_of
from .work import hand_over

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Round:
    """One turn as the slice page shows it; a hand-written file may lack either side."""

    turn_id: str
    said: Entry | None
    reply: FinishedReply | None
    """None while the reply is still to come."""
    thoughts: tuple[Thought, ...] = ()


@dataclass(frozen=True)
class Tab:
    """A view of the slice, as the links above it name it."""

    url: str
    words: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Other:
    """Another slice that this page leads to."""

    url: str
    at: datetime
    zone: str
    focus: str


@signed_in
@require_safe
def slice_page(request: HttpRequest, slice_path: str) -> HttpResponse:
    """The page of one slice. A damaged one is shown raw, with its path and what is wrong."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    try:
        found: Slice | DamagedSlice = access.slice_or_404(folder, slice_path)
    except Damaged as damage:
        found = DamagedSlice(id=id_of(slice_path), path=damage.path, why=damage.why)
    context = slice_context(folder, person, OwnLinks(), found, request.GET)
    return render(request, "memory/slice.html", context)


@signed_in
@require_safe
def slice_raw(request: HttpRequest, slice_path: str) -> HttpResponse:
    """The Markdown file as it is on disk, to keep."""
    folder = access.folder_of(request.user)
    try:
        data = folder.read(core_file(id_of(slice_path)))
    except Outside as error:
        raise Http404 from error
    if data is None:
        raise Http404
    return download(data, f"{id_of(slice_path)}.md")


def download(data: bytes, name: str) -> HttpResponse:
    """A Markdown file to keep; no browser shows it as a page."""
    return HttpResponse(
        data,
        content_type="text/markdown; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"},
    )


@signed_in
@require_POST
def slice_close(request: HttpRequest, slice_path: str) -> HttpResponse:
    """End this slice; on one that has closed meanwhile nothing happens, and the page shows why it closed."""
    folder, now = access.folder_of(request.user), utc_now()
    try:
        found = access.slice_or_404(folder, slice_path)
        end_slice(folder, found.slice_id, person=access.person_of(request.user), now=now)
    except Damaged:
        pass  # the page that follows says what is wrong
    except (FolderError, OSError):
        log.exception("a slice of %s was not ended", request.user.pk)
        messages.error(request, _("The slice is still open: your folder could not be written to. Try again shortly."))
    hand_over(request.user, due(folder, now))
    return redirect("slice", slice_path)


def slice_context(
    folder: MemoryFolder, person: Person, links: OwnLinks, found: Slice | DamagedSlice, query: Mapping[str, str]
) -> dict[str, Any]:
    """What the template of a slice shows: its head, and the one view that the query asks for."""
    damaged = isinstance(found, DamagedSlice)
    slice_id = found.id if isinstance(found, DamagedSlice) else found.slice_id
    zone = person.timezone if isinstance(found, DamagedSlice) else found.timezone
    names = _views(folder, slice_id, damaged=damaged)
    view = query.get("view", "")
    view = view if view in names else next(iter(names))
    asked = {name: links.slice_url(path_of(slice_id), view=name if name != next(iter(names)) else "") for name in names}
    context = {
        "links": links,
        "view": view,
        "path": path_of(slice_id),
        "zone": zone,
        "tabs": [Tab(asked[name], words, name == view) for name, words in names.items()],
        "download": links.download_url(path_of(slice_id)),
        "older": _other(folder, person, links, neighbours.before(folder.root, slice_id)),
        "newer": _other(folder, person, links, neighbours.after(folder.root, slice_id)),
    }
    if isinstance(found, DamagedSlice):
        context |= {"damage": found, "start": minute_of(slice_id)}
    else:
        context |= _head(folder, person, links, found)
    return context | _view(folder, links, found, slice_id, view, query)


def _views(folder: MemoryFolder, slice_id: str, *, damaged: bool) -> dict[str, str]:
    """The views that this slice has, the one shown first at the beginning."""
    names = {} if damaged else {"conversation": _("Conversation")}
    if damaged:
        names["raw"] = _("Raw")
    names["thoughts"] = _("Thoughts")
    if _text(folder, appendix_file(slice_id)):
        names["appendix"] = _("Appendix")
    return names | {"card": _("Card then"), "history": _("History"), "raw": _("Raw")}


def _view(
    folder: MemoryFolder,
    links: OwnLinks,
    found: Slice | DamagedSlice,
    slice_id: str,
    view: str,
    query: Mapping[str, str],
) -> dict[str, Any]:
    """What one view shows."""
    match view:
        case "thoughts":
            agent_text = _text(folder, agent_file(slice_id))
            return {"turns": thoughts_of(agent_text, links, folder.root), "outside": outside_turns(agent_text)}
        case "appendix":
            return {"raw": _text(folder, appendix_file(slice_id))}
        case "card":
            data = _bytes(folder, frozen_card_file(slice_id))
            return {"card": shown(data, links) if data is not None else None}
        case "history":
            history = history_of(folder, f"{SLICES}/{path_of(slice_id)}", before=query.get("before", ""))
            more = links.slice_url(path_of(slice_id), view="history", before=history.before) if history.before else ""
            return {"history": history, "more": more, "first_page": not query.get("before")}
        case "conversation" if isinstance(found, Slice):
            return {"rounds": _rounds(folder, links, found)}
        case _:
            return {"raw": _text(folder, core_file(slice_id))}


def _head(folder: MemoryFolder, person: Person, links: OwnLinks, found: Slice) -> dict[str, Any]:
    end = found.end or found.last_at
    return {
        "slice": found,
        "start": found.start,
        "end": end,
        "same_day": local_day(end, found.timezone) == local_day(found.start, found.timezone),
        "zone_name": f"{local(found.start, found.timezone):%Z}",
        "closed": wording.closed_by(found.closed_by),
        "tone": wording.tone(found.emotional_tone),
        "tone_class": wording.tone_class(found.emotional_tone),
        "tags": _tags(folder, links, found),
        "related": _related(folder, person, links, found),
    }


def _tags(folder: MemoryFolder, links: OwnLinks, found: Slice) -> list[StrandLink]:
    """The tags, each with the page of its strand; '' for one that was pruned, or has no strand yet."""
    try:
        strands, merges = folder.strands(), folder.merges()
    except Damaged:
        return [StrandLink(name=tag, url="") for tag in found.tags]  # the page of the strands says what is wrong
    keys = [(tag, follow(normalise(tag), merges)) for tag in found.tags]
    return [StrandLink(name=tag, url=links.strand_url(key) if key in strands else "") for tag, key in keys]


def _related(folder: MemoryFolder, person: Person, links: OwnLinks, found: Slice) -> list[Other]:
    ids = [parse_slice_path(path) for path in found.related_slices if _is_slice_path(path)]
    lines = lines_for(folder.root, ids)
    others = (_other(folder, person, links, lines.get(slice_id)) for slice_id in ids)
    return [other for other in others if other]


def _other(folder: MemoryFolder, person: Person, links: OwnLinks, line: Line | DamagedSlice | None) -> Other | None:
    if line is None:
        return None
    if isinstance(line, DamagedSlice):
        url = links.slice_url(path_of(line.id))
        return Other(url=url, at=minute_of(line.id), zone=person.timezone, focus=_("Damaged"))
    focus = focus_of(folder, line, person)
    return Other(url=links.slice_url(line.path), at=line.start, zone=line.timezone, focus=focus)


def _rounds(folder: MemoryFolder, links: OwnLinks, found: Slice) -> list[Round]:
    """The slice's turns in the order they began."""
    now = utc_now()
    thoughts = by_turn(thoughts_of(_text(folder, agent_file(found.slice_id)), links, folder.root))
    rounds = []
    for turn_id in dict.fromkeys(entry.turn_id for entry in found.entries):
        said, answer = found.entry(turn_id, "user"), found.entry(turn_id, "agent")
        if said:
            stands = reply_of(folder, found, turn_id, now)
            reply = stands if isinstance(stands, FinishedReply) else None
        else:
            reply = FinishedReply(
                path=found.path, turn_id=turn_id, zone=found.timezone, outcome="answered", entry=answer
            )
        went_on = thoughts.get(turn_id, ())
        if reply:
            # The record says what went on, whether or not the events of the reply are still kept.
            shown_below = bool(reply.unfinished)
            went_on = tuple(one for one in went_on if not (shown_below and one.kind == "unfinished"))
            reply = replace(reply, state=None) if went_on or not links.own else reply
        rounds.append(Round(turn_id=turn_id, said=said, reply=reply, thoughts=went_on))
    return rounds


def _bytes(folder: MemoryFolder, relative: str) -> bytes | None:
    """A file of the slice; a symbolic link in its place counts as none."""
    try:
        return folder.read(relative)
    except Outside:
        return None


def _text(folder: MemoryFolder, relative: str) -> str:
    return (_bytes(folder, relative) or b"").decode("utf-8", "replace")


def _is_slice_path(text: str) -> bool:
    try:
        parse_slice_path(text)
    except BadId:
        return False
    return True
