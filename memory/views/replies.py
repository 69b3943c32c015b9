"""One reply: where it stands, stopping it, trying it again."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from memory import access
from memory.conversation.due import Answer, Settle
from memory.conversation.interrupt import stop_reply, try_again
from memory.conversation.receive import LOOK_BACK
from memory.folder.clock import utc_now
from memory.folder.errors import Damaged, NotThere
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder

from .chat import page
from .signed_in import signed_in
from .transcript import OpenReply, Reply, Transcript, turn_ids
from .work import hand_over


@signed_in
@require_safe
def reply(request: HttpRequest, slice_path: str, turn_id: str) -> HttpResponse:
    """Where a reply stands: for htmx the entry alone, else the page with every turn of its slice."""
    folder, found = _turn(request, slice_path, turn_id)
    if request.htmx:  # type: ignore[attr-defined]
        return _entry(request, _stands(request, folder, found, turn_id))
    newest = {one.slice_id for one in folder.newest(LOOK_BACK) if isinstance(one, Slice)}
    if found.slice_id not in newest:
        return redirect("slice", slice_path)
    return page(request, folder, access.person_of(request.user), turn_ids(found))


@signed_in
@require_POST
def reply_stop(request: HttpRequest, slice_path: str, turn_id: str) -> HttpResponse:
    """Stop a reply: one being written ends at its next piece and says so itself, one not begun is over at once."""
    folder, found = _turn(request, slice_path, turn_id)
    if stop_reply(folder, found.slice_id, turn_id, now=utc_now()):
        hand_over(request.user, [Settle()])
    elif isinstance(_stands(request, folder, found, turn_id), OpenReply) and request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(status=204)  # the stream that the page listens to says how it ended
    return _answer(request, folder, found, turn_id)


@signed_in
@require_POST
def reply_again(request: HttpRequest, slice_path: str, turn_id: str) -> HttpResponse:
    """Try again: a reply that was stopped or failed is owed once more. Pressing it twice is pressing it once."""
    folder, found = _turn(request, slice_path, turn_id)
    if try_again(folder, found.slice_id, turn_id):
        hand_over(request.user, [Answer(found.slice_id, turn_id)])
    return _answer(request, folder, found, turn_id)


def _turn(request: HttpRequest, slice_path: str, turn_id: str) -> tuple[MemoryFolder, Slice]:
    """The person's own folder and the slice of one of their turns, else 404."""
    folder = access.folder_of(request.user)
    try:
        found = access.slice_or_404(folder, slice_path)
    except Damaged as damage:
        raise Http404 from damage
    if found.entry(turn_id, "user") is None:
        raise Http404
    return folder, found


def _answer(request: HttpRequest, folder: MemoryFolder, found: Slice, turn_id: str) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("reply", found.path, turn_id)
    return _entry(request, _stands(request, folder, found, turn_id))


def _stands(request: HttpRequest, folder: MemoryFolder, found: Slice, turn_id: str) -> Reply:
    person, now = access.person_of(request.user), utc_now()
    try:
        return Transcript(folder, folder.newest(LOOK_BACK), person, now).reply(found, turn_id)
    except NotThere as error:
        raise Http404 from error


def _entry(request: HttpRequest, current: Reply) -> HttpResponse:
    return render(request, current.template, {"reply": current})
