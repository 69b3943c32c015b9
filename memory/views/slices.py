"""One slice: its marks, its conversation or its raw file, its download, and ending it while it is open."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from memory import access, wording
from memory.conversation.due import due
from memory.conversation.receive import end_slice
from memory.folder.clock import local, local_day, utc_now
from memory.folder.errors import Damaged, LockTimeout, Outside
from memory.folder.paths import core_file, id_of, minute_of
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry

from .signed_in import signed_in
from .transcript import FinishedReply, reply_of
from .work import hand_over


@dataclass(frozen=True, kw_only=True)
class Round:
    """One turn as the slice page shows it; a hand-written file may lack either side."""

    turn_id: str
    said: Entry | None
    reply: FinishedReply | None
    """None while the reply is still to come."""


@signed_in
@require_safe
def slice_page(request: HttpRequest, slice_path: str) -> HttpResponse:
    """The page of one slice. A damaged one is shown raw, with its path and what is wrong."""
    folder = access.folder_of(request.user)
    try:
        found = access.slice_or_404(folder, slice_path)
    except Damaged as damage:
        slice_id = id_of(slice_path)
        raw = _raw(folder, slice_path)
        context = {"damage": damage, "raw": raw, "path": slice_path, "start": minute_of(slice_id), "zone": "UTC"}
        return render(request, "memory/slice_damaged.html", context)
    view = "raw" if request.GET.get("view") == "raw" else "conversation"
    end = found.end or found.last_at
    context = {
        "slice": found,
        "view": view,
        "raw": _raw(folder, slice_path) if view == "raw" else "",
        "rounds": _rounds(folder, found) if view == "conversation" else [],
        "end": end,
        "same_day": local_day(end, found.timezone) == local_day(found.start, found.timezone),
        "zone_name": f"{local(found.start, found.timezone):%Z}",
        "closed": wording.closed_by(found.closed_by),
        "tone": wording.tone(found.emotional_tone),
        "tone_class": wording.tone_class(found.emotional_tone),
    }
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
    return HttpResponse(
        data,
        content_type="text/markdown; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{id_of(slice_path)}.md"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@signed_in
@require_POST
def slice_close(request: HttpRequest, slice_path: str) -> HttpResponse:
    """End this slice; on one that has closed meanwhile nothing happens, and the page shows why it closed."""
    folder, now = access.folder_of(request.user), utc_now()
    try:
        found = access.slice_or_404(folder, slice_path)
        end_slice(folder, found.slice_id, person=access.person_of(request.user), now=now)
    except (Damaged, LockTimeout):
        pass  # the page that follows shows the damage; and a slice still open keeps its button
    hand_over(request.user, due(folder, now))
    return redirect("slice", slice_path)


def _rounds(folder: MemoryFolder, found: Slice) -> list[Round]:
    """The slice's turns in the order they began."""
    now = utc_now()
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
        rounds.append(Round(turn_id=turn_id, said=said, reply=reply))
    return rounds


def _raw(folder: MemoryFolder, slice_path: str) -> str:
    return (folder.read(core_file(id_of(slice_path))) or b"").decode("utf-8", "replace")
