"""One person's memory as an administrator reads it, by the templates of the person's own pages.

Nothing can be changed here, and each page that is opened is written down for the person, with the reason if one was
given: `?reason=` on any of them.
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from accounts import opened
from accounts.models import Page, User
from memory import access
from memory.conversation.person import Person
from memory.folder.clock import utc_now
from memory.folder.errors import Damaged, Outside
from memory.folder.paths import core_file, id_of
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice
from memory.views import cards, slices, strands, timeline

from .guard import opens
from .links import ReaderLinks


@opens
def read_timeline(request: HttpRequest, whose: User, year: int | None = None) -> HttpResponse:
    """A year of the timeline."""
    folder, person, links = _memory_of(whose)
    context = timeline.year_context(folder, person, links, year, request.GET)
    _note(request, whose, Page.TIMELINE, f"{year or ''}")
    return render(request, "memory/_year.html" if _by_script(request) else "memory/timeline.html", context)


@opens
def read_month(request: HttpRequest, whose: User, year: int, month: int) -> HttpResponse:
    """A month of the timeline, or the next stretch of one."""
    folder, person, links = _memory_of(whose)
    context = timeline.month_context(folder, person, links, year, month, request.GET)
    _note(request, whose, Page.TIMELINE, f"{year:04}/{month:02}")
    return render(request, "memory/_stretch.html" if _by_script(request) else "memory/month.html", context)


@opens
def read_slice(request: HttpRequest, whose: User, slice_path: str) -> HttpResponse:
    """One slice, in any of its views."""
    folder, person, links = _memory_of(whose)
    try:
        found: Slice | DamagedSlice = access.slice_or_404(folder, slice_path)
    except Damaged as damage:
        found = DamagedSlice(id=id_of(slice_path), path=damage.path, why=damage.why)
    context = slices.slice_context(folder, person, links, found, request.GET)
    _note(request, whose, Page.SLICE, slice_path)
    return render(request, "memory/slice.html", context)


@opens
def read_slice_raw(request: HttpRequest, whose: User, slice_path: str) -> HttpResponse:
    """The file of a slice, to keep."""
    try:
        data = access.folder_of(whose).read(core_file(id_of(slice_path)))
    except Outside as error:
        raise Http404 from error
    if data is None:
        raise Http404
    _note(request, whose, Page.SLICE, slice_path)
    return slices.download(data, f"{id_of(slice_path)}.md")


@opens
def read_strands(request: HttpRequest, whose: User) -> HttpResponse:
    """The strands, or the one that is named. Which one is not written down: its name is the person's words."""
    folder, person, links = _memory_of(whose)
    _note(request, whose, Page.STRAND if request.GET.get("name") else Page.STRANDS)
    return strands.show(request, folder, person, links)


@opens
def read_merges(request: HttpRequest, whose: User) -> HttpResponse:
    """Which strands were merged."""
    folder, person, links = _memory_of(whose)
    _note(request, whose, Page.MERGES)
    return render(request, "memory/merges.html", strands.merges_context(folder, person, links, request.GET))


@opens
def read_card(request: HttpRequest, whose: User) -> HttpResponse:
    """The card as it stands."""
    folder, person, links = _memory_of(whose)
    _note(request, whose, Page.CARD)
    return render(request, "memory/card.html", cards.card_context(folder, person, links))


@opens
def read_card_versions(request: HttpRequest, whose: User) -> HttpResponse:
    """What the card once was."""
    folder, person, links = _memory_of(whose)
    context = cards.versions_context(folder, person, links, request.GET)
    _note(request, whose, Page.CARD)
    return render(request, "memory/card_versions.html", context)


@opens
def read_card_version(request: HttpRequest, whose: User, commit_id: str) -> HttpResponse:
    """One earlier version of the card."""
    folder, person, links = _memory_of(whose)
    context = cards.version_context(folder, person, links, commit_id)
    _note(request, whose, Page.CARD)
    return render(request, "memory/card_version.html", context)


def _memory_of(whose: User) -> tuple[MemoryFolder, Person, ReaderLinks]:
    return access.folder_of(whose), access.person_of(whose), ReaderLinks(whose)


def _note(request: HttpRequest, whose: User, page: Page, place: str = "") -> None:
    who = request.user
    assert isinstance(who, User)  # noqa: S101 - the guard lets nobody else in
    opened.note(who=who, whose=whose, page=page, place=place, reason=request.GET.get("reason"), now=utc_now())


def _by_script(request: HttpRequest) -> bool:
    return bool(request.htmx)  # type: ignore[attr-defined]
