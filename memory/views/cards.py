"""The card: as it stands with what changed last, its earlier versions, and putting it back to one of them."""

import logging
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from memory import access, wording
from memory.conversation.due import Settle
from memory.conversation.own_card import Overtaken, Unchanged, Written, check, editable, restore_card, version_of
from memory.conversation.person import Person
from memory.folder.clock import utc_now
from memory.folder.errors import FolderError, GitError, LockTimeout, NotThere, Outside
from memory.folder.paths import CARD
from memory.folder.store import MemoryFolder

from .card_shown import ShownCard, shown
from .history import history_of
from .links import OwnLinks
from .signed_in import signed_in
from .slices import download
from .work import hand_over

log = logging.getLogger(__name__)


@signed_in
@require_safe
def card_page(request: HttpRequest) -> HttpResponse:
    """The card as it stands. One that cannot be read is shown raw, with what is wrong."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    return render(request, "memory/card.html", card_context(folder, person, OwnLinks()))


@signed_in
@require_safe
def card_raw(request: HttpRequest) -> HttpResponse:
    """The Markdown file as it is on disk, to keep."""
    data = read_card(access.folder_of(request.user))
    if data is None:
        raise Http404
    return download(data, "previously.md")


@signed_in
@require_safe
def card_versions(request: HttpRequest) -> HttpResponse:
    """What the card once was, the newest version first, each with what had changed."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    return render(request, "memory/card_versions.html", versions_context(folder, person, OwnLinks(), request.GET))


@signed_in
@require_safe
def card_version(request: HttpRequest, commit_id: str) -> HttpResponse:
    """One earlier version."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    return render(request, "memory/card_version.html", version_context(folder, person, OwnLinks(), commit_id))


@signed_in
@require_POST
def card_restore(request: HttpRequest, commit_id: str) -> HttpResponse:
    """Put the card back to an earlier version, as a new edit; the form says which card the person had before them."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    version = read_version(folder, commit_id)
    made_from = request.POST.get("made_from", "")
    try:
        outcome = restore_card(folder, version, made_from=made_from, person=person, now=utc_now())
    except (FolderError, OSError) as error:
        log.exception("the card of %s was not put back", request.user.pk)
        messages.error(request, why_not_written(error))
        return redirect("card")
    match outcome:
        case Written():
            messages.success(request, written(hand_over(request.user, [Settle()]), _("The card is put back.")))
        case Unchanged():
            messages.info(request, _("The card says so already; nothing was changed."))
        case Overtaken():
            messages.warning(
                request,
                _("The card has changed since you looked at it, so nothing was put back. This is how it stands now."),
            )
    return redirect("card")


def card_context(folder: MemoryFolder, person: Person, links: OwnLinks) -> dict[str, Any]:
    """What the template of the card shows. `back` is the version that an undo goes to, None when there is none."""
    data = read_card(folder)
    history = history_of(folder, CARD, limit=2)
    newest = history.changes[0] if history.changes else None
    waiting = (newest.blob or "" if newest else "") != version_of(data)
    back = newest if waiting else next(iter(history.changes[1:]), None)
    card = shown(data, links) if data is not None else None
    return {
        "links": links,
        "zone": person.timezone,
        "card": card,
        "readable": isinstance(card, ShownCard),
        "problems": problems_of(data) if isinstance(card, ShownCard) else (),
        "made_from": version_of(data),
        "last": None if waiting else newest,
        "waiting": waiting,
        "back": back if back and back.blob else None,
        "trouble": history.trouble,
        "versions_url": links.card_versions_url(),
    }


def versions_context(folder: MemoryFolder, person: Person, links: OwnLinks, query: Mapping[str, str]) -> dict[str, Any]:
    """What the template of the earlier versions shows."""
    history = history_of(folder, CARD, before=query.get("before", ""))
    current = version_of(read_card(folder))
    return {
        "links": links,
        "zone": person.timezone,
        "history": history,
        "first_page": not query.get("before"),
        "versions": [
            (change, links.card_version_url(change.id) if change.blob else "", change.blob == current)
            for change in history.changes
        ],
        "made_from": current,
        "more": links.card_versions_url(before=history.before) if history.before else "",
    }


def version_context(folder: MemoryFolder, person: Person, links: OwnLinks, commit_id: str) -> dict[str, Any]:
    """What the template of one version shows. Raises Http404 when there is none in that commit."""
    version, current = read_version(folder, commit_id), read_card(folder)
    return {
        "links": links,
        "zone": person.timezone,
        "card": shown(version, links),
        "raw": version.decode("utf-8", "replace"),
        "commit_id": commit_id,
        "made_from": version_of(current),
        "same": version == current,
        "versions_url": links.card_versions_url(),
    }


def read_card(folder: MemoryFolder) -> bytes | None:
    """The bytes of the card, None when there is none. Raises Http404 for a symbolic link in its place."""
    try:
        return folder.read(CARD)
    except Outside as error:
        raise Http404 from error


def read_version(folder: MemoryFolder, commit_id: str) -> bytes:
    """The bytes of the card in a commit. Raises Http404."""
    if not folder.exists():
        raise Http404
    try:
        return folder.repository.read(commit_id, CARD)
    except (NotThere, GitError) as error:
        raise Http404 from error


def problems_of(data: bytes | None) -> tuple[str, ...]:
    """What a hand edit should mend, in words."""
    text = editable((data or b"").decode("utf-8", "replace"))
    return tuple(wording.card_problem(problem.code, problem.line, problem.words) for problem in check(text))


def written(handed_over: bool, words: str) -> str:
    """The words, and that the history is late when nobody could be told."""
    return words if handed_over else f"{words} {_('It goes into the history with some delay.')}"


def why_not_written(error: Exception) -> str:
    """Why the card stands as it was, and what to do."""
    if isinstance(error, LockTimeout):
        return _("Your folder is busy, and the card was not written. Try again shortly.")
    return _(
        "The card could not be written to the disk and stands as it was. The person who runs this site has to look at"
        " the disk."
    )
