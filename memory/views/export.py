"""Taking one's memory along: a zip that is made while it is sent."""

import asyncio
import logging
from collections.abc import AsyncIterator, Generator
from contextlib import suppress

from django.contrib import messages
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memory import access, wording
from memory.conversation.settle import settle
from memory.folder.clock import local_day, utc_now
from memory.folder.errors import FolderError, ForeignLock, HeadBusy
from memory.folder.export import export as export_folder
from memory.folder.store import MemoryFolder

from .signed_in import signed_in

log = logging.getLogger(__name__)


@signed_in
@require_POST
def export(request: HttpRequest) -> HttpResponseBase:
    """Commit what has ended, then send the zip; the settings page says it when there is nothing to send."""
    folder, now = access.folder_of(request.user), utc_now()
    try:
        refused = _why_not(folder)
    except (FolderError, OSError) as error:
        log.exception("the folder of %s is not exported", request.user.pk)
        refused = _("Your folder cannot be exported: %(why)s.") % {"why": error}
    if refused:
        messages.error(request, refused)
        return redirect("settings")
    zone = access.person_of(request.user).timezone
    pieces = export_folder(folder.repository, now=now)
    return StreamingHttpResponse(
        _whole_pieces(pieces) if isinstance(request, ASGIRequest) else pieces,
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="previously-{local_day(now, zone)}.zip"',
            "X-Content-Type-Options": "nosniff",
            "X-Accel-Buffering": "no",
        },
    )


def _why_not(folder: MemoryFolder) -> str:
    """Commit what can be, and say why the last commit is not what should be sent; '' when it is."""
    nothing = _("There is nothing to export yet: nothing you have said has been committed.")
    if not folder.exists():
        return nothing
    try:
        waits = settle(folder, now=utc_now())
        if folder.repository.head() is None:
            return nothing
    except HeadBusy as busy:
        return wording.busy(busy.why)
    if waits not in (None, ForeignLock.__name__):
        return _("Your last words could not be committed just now, and would be missing. Try again in a minute.")
    return ""


async def _whole_pieces(pieces: Generator[bytes]) -> AsyncIterator[bytes]:
    """The pieces for a server that waits for many at once: each is made in a thread, and none before it is wanted."""
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
    finally:
        await asyncio.to_thread(_end, pieces)


def _end(pieces: Generator[bytes]) -> None:
    with suppress(ValueError):  # the reader went away while a piece was being made: it ends by itself then
        pieces.close()
