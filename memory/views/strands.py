"""The strands: all of them, one with its whole history, and the merges that made one strand of two keys."""

import logging
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from memory import access
from memory.conversation.due import Settle
from memory.conversation.person import Person
from memory.conversation.unmerge import Undone, unmerge
from memory.folder.errors import BadId, Damaged, FolderError, LockTimeout
from memory.folder.marks import cut
from memory.folder.paths import minute_of, parse_slice_path
from memory.folder.store import MemoryFolder
from memory.folder.strands import Merge, Merges, Strands, follow, normalise
from memory.folder.timeline import DamagedSlice, Line, month_lines, months, read_line

from .drawing import activity_svg, month_number
from .links import OwnLinks
from .notices import Notice
from .rows import StrandLink, rows
from .signed_in import signed_in
from .work import hand_over

A_PAGE = 60
ROWS = 30
COMPANIONS = 12
MERGES_SHOWN = 50
LONGEST_NAME = 300

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Strand:
    """A strand in the list: its slices counted, and when it was first and last seen."""

    name: str
    url: str
    count: int
    first: datetime | None
    last: datetime | None
    drawing: SafeString


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A strand that often goes with another: in how many slices both are."""

    strand: StrandLink
    count: int


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A merge as it is listed: two keys, by whom and when; `url` is the strand that the slices are in now."""

    from_key: str
    to: str
    url: str
    by: str
    by_model: bool
    at: datetime
    undone: bool


@dataclass(frozen=True, kw_only=True)
class Index:
    """The strands as they can be read, and what is to be said about them."""

    strands: Strands
    merges: Merges
    notices: tuple[Notice, ...]


@signed_in
@require_safe
def strands_page(request: HttpRequest) -> HttpResponse:
    """All strands, or the one whose name is given."""
    return show(request, access.folder_of(request.user), access.person_of(request.user), OwnLinks())


def show(request: HttpRequest, folder: MemoryFolder, person: Person, links: OwnLinks) -> HttpResponse:
    """The strands of this folder, or the one that the query names; `links` are those of whoever looks."""
    index = read_index(folder)
    if name := request.GET.get("name", ""):
        return _one(request, folder, person, links, index, name)
    context = list_context(person, links, index, request.GET)
    template = "memory/_strands.html" if request.htmx else "memory/strands.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _one(
    request: HttpRequest, folder: MemoryFolder, person: Person, links: OwnLinks, index: Index, name: str
) -> HttpResponse:
    key = name if name in index.strands else follow(normalise(name[:LONGEST_NAME]), index.merges)
    if key not in index.strands:
        return render(request, "memory/strand_unknown.html", {"name": name[:LONGEST_NAME], "links": links}, status=404)
    if key != name:
        return redirect(links.strand_url(key))
    context = strand_context(folder, person, links, index, key, request.GET)
    template = "memory/_strand_rows.html" if request.htmx else "memory/strand.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@signed_in
@require_safe
def merges_page(request: HttpRequest) -> HttpResponse:
    """The merges, the newest first, each with a way back."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    return render(request, "memory/merges.html", merges_context(folder, person, OwnLinks(), request.GET))


@signed_in
@require_POST
def merge_undo(request: HttpRequest) -> HttpResponse:
    """Take one merge back. The page that follows says what became of it."""
    folder = access.folder_of(request.user)
    from_key, to = request.POST.get("from", ""), request.POST.get("to", "")
    names = {"from": cut(from_key, 60), "to": cut(to, 60)}
    try:
        outcome = unmerge(folder, from_key, to)
    except (FolderError, OSError) as error:
        log.exception("a merge of %s was not undone", request.user.pk)
        words = _("The merge of “%(from)s” into “%(to)s” stands as it was.")
        messages.error(request, f"{words % names} {_why_not(error)}")
        return redirect("merges")
    if not isinstance(outcome, Undone):
        words = _("“%(from)s” is not merged into “%(to)s” any more: it was undone already, here or elsewhere.")
        messages.warning(request, words % names)
    elif hand_over(request.user, [Settle()]):
        words = _("The merge of “%(from)s” into “%(to)s” is undone, and is never made again.")
        messages.success(request, words % names)
    else:
        words = _("The merge of “%(from)s” into “%(to)s” is undone. Its slices are sorted anew with some delay.")
        messages.success(request, words % names)
    return redirect("merges")


def _why_not(error: FolderError | OSError) -> str:
    match error:
        case LockTimeout():
            return _("Your folder is busy at the moment; try again.")
        case Damaged():
            return _("The list of merges cannot be read; mend it first.")
        case OSError():
            return _("It could not be written to the disk; the person who runs this site has to make room.")
    return _("Something is wrong with your folder; the log of this site says what.")


def read_index(folder: MemoryFolder) -> Index:
    """Strands and merges; while a file of them cannot be read, what the rest of the folder says."""
    told: list[Notice] = []
    merges: Merges = {}
    try:
        merges = folder.merges()
    except Damaged as damage:
        words = _("The list of merges cannot be read (%(path)s: %(why)s). Mend it with an editor.")
        told.append(Notice(text=words % {"path": damage.path, "why": damage.why}, alarm=True))
    try:
        strands = folder.strands()
    except Damaged as damage:
        words = _(
            "The index of strands cannot be read (%(path)s: %(why)s). What you see comes from the timeline;"
            " the index is made anew when the next slice closes."
        )
        told.append(Notice(text=words % {"path": damage.path, "why": damage.why}, alarm=True))
        strands = _from_timeline(folder)
    if folder.state.strands_due():
        told.append(Notice(text=_("A merge was undone. Its slices are being sorted anew; look again in a moment.")))
    return Index(strands=strands, merges=merges, notices=tuple(told))


def _from_timeline(folder: MemoryFolder) -> Strands:
    """The strands as the months of the timeline know them."""
    paths: dict[str, list[str]] = {}
    for month in sorted(months(folder.root)):
        for line in month_lines(folder.root, month):
            for key in line.strands:
                paths.setdefault(key, []).append(line.path)
    return {key: tuple(found) for key, found in paths.items()}


def list_context(person: Person, links: OwnLinks, index: Index, query: Mapping[str, str]) -> dict[str, Any]:
    """What the templates of the list show: a page of the strands that match, by last activity."""
    words = query.get("q", "")[:LONGEST_NAME].strip()
    asked = normalise(words).casefold()
    names = [key for key in index.strands if asked in key.casefold()] if asked else list(index.strands)
    names.sort()
    names.sort(key=lambda key: index.strands[key][-1], reverse=True)
    page = _page(query)
    shown = names[(page - 1) * A_PAGE : page * A_PAGE]
    first, last = _span(index.strands)
    more = links.strands_url(q=words, page=str(page + 1)) if len(names) > page * A_PAGE else ""
    return {
        "links": links,
        "q": words,
        "page": page,
        "zone": person.timezone,
        "strands": [_strand(key, index.strands[key], first, last, links) for key in shown],
        "found": len(names),
        "all": len(index.strands),
        "more": more,
        "merges": sum(not merge.undone for records in index.merges.values() for merge in records),
        "notices": index.notices,
        "address": links.strands_url(q=words),
    }


def strand_context(
    folder: MemoryFolder, person: Person, links: OwnLinks, index: Index, key: str, query: Mapping[str, str]
) -> dict[str, Any]:
    """What the templates of one strand show: its slices in time order, a stretch at a time, and what goes with it."""
    paths = index.strands[key]
    newest = query.get("order") == "newest"
    mine = set(paths)
    together = Counter({other: len(mine.intersection(found)) for other, found in index.strands.items() if other != key})
    companions = [
        Companion(strand=StrandLink(name=other, url=links.strand_url(other)), count=count)
        for other, count in together.most_common(COMPANIONS)
        if count
    ]
    shown, rest = _stretch(paths, _place(query), newest=newest)
    lines = [line for path in shown if (line := _line(folder, path))]
    order = "newest" if newest else ""
    first, last = month_number(paths[0]), month_number(paths[-1])
    merged = [merge for merge in _merged(index, links) if not merge.undone and merge.url == links.strand_url(key)]
    return {
        "links": links,
        "name": key,
        "zone": person.timezone,
        "count": len(paths),
        "first": _moment(paths),
        "last": _moment(reversed(paths)),
        "drawing": activity_svg(paths, first, last) if last > first else "",
        "companions": companions,
        "merged": merged,
        "rows": rows(folder, person, links, lines),
        "more": links.strand_url(key, order=order, after=shown[-1]) if rest else "",
        "newest": newest,
        "oldest_url": links.strand_url(key),
        "newest_url": links.strand_url(key, order="newest"),
        "notices": index.notices,
    }


def merges_context(folder: MemoryFolder, person: Person, links: OwnLinks, query: Mapping[str, str]) -> dict[str, Any]:
    """What the template of the merges shows."""
    index = read_index(folder)
    merged = _merged(index, links)
    page = _page(query)
    return {
        "links": links,
        "zone": person.timezone,
        "merged": merged[(page - 1) * MERGES_SHOWN : page * MERGES_SHOWN],
        "earlier": page + 1 if len(merged) > page * MERGES_SHOWN else None,
        "later": page - 1,
        "notices": index.notices,
    }


def _merged(index: Index, links: OwnLinks) -> list[Merged]:
    found = [(key, merge) for key, records in index.merges.items() for merge in records]
    return [
        _one_merge(key, merge, index, links) for key, merge in sorted(found, key=lambda one: one[1].at, reverse=True)
    ]


def _one_merge(key: str, merge: Merge, index: Index, links: OwnLinks) -> Merged:
    return Merged(
        from_key=key,
        to=merge.to,
        url=links.strand_url(follow(merge.to, index.merges)),
        by=merge.by,
        by_model=merge.by == "model",
        at=merge.at,
        undone=merge.undone,
    )


def _strand(key: str, paths: Sequence[str], first: int, last: int, links: OwnLinks) -> Strand:
    return Strand(
        name=key,
        url=links.strand_url(key),
        count=len(paths),
        first=_moment(paths),
        last=_moment(reversed(paths)),
        drawing=activity_svg(paths, first, last),
    )


def _moment(paths: Iterable[str]) -> datetime | None:
    """When the first of these slices began. Of the index only the shape is checked: a path may name no real minute."""
    for path in paths:
        with suppress(BadId):
            return minute_of(parse_slice_path(path))
    return None


def _line(folder: MemoryFolder, path: str) -> Line | DamagedSlice | None:
    with suppress(BadId):
        return read_line(folder.root, parse_slice_path(path))
    return None


def _span(strands: Strands) -> tuple[int, int]:
    """The first and the last month in which there is any strand, so that all lines share one axis."""
    if not strands:
        return 0, 0
    return (
        month_number(min(paths[0] for paths in strands.values())),
        month_number(max(paths[-1] for paths in strands.values())),
    )


def _stretch(paths: Sequence[str], after: str, *, newest: bool) -> tuple[list[str], bool]:
    """The next slice paths after one, '' for the first ones, and whether there are more behind them."""
    if newest:
        ordered = list(reversed(paths[: bisect_left(paths, after)] if after else paths))
    else:
        ordered = list(paths[bisect_right(paths, after) :] if after else paths)
    return ordered[:ROWS], len(ordered) > ROWS


def _place(query: Mapping[str, str]) -> str:
    after = query.get("after", "")
    try:
        return parse_slice_path(after) and after
    except BadId as error:
        if after:
            raise Http404 from error
        return ""


def _page(query: Mapping[str, str]) -> int:
    page = query.get("page", "1")
    if not page.isascii() or not page.isdigit() or not 0 < int(page[:6]) < 100_000:
        raise Http404
    return int(page)
