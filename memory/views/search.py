"""Search: words in any language, and the turns where they were said."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from memory import access, tasks
from memory.conversation import indexing
from memory.conversation.indexing import Making
from memory.conversation.person import Person
from memory.folder.clock import utc_now
from memory.folder.errors import Damaged, LockTimeout
from memory.folder.paths import path_of
from memory.folder.search import Hit, NoIndex, SearchIndex, Snippet, TurnHit
from memory.folder.store import MemoryFolder
from memory.folder.strands import follow, normalise
from memory.folder.timeline import read_line

from .links import OwnLinks, with_query
from .rows import Row, rows
from .signed_in import signed_in

SHOWN = 20
LONGEST_QUERY = 500
LONGEST_NAME = 300
STRANDS_OFFERED = 100
ASKED_AGAIN_AFTER = 30
"""Seconds until the worker is asked once more to make an index that is still not there."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for: words, between two local days (both included, None: open), on one strand ('' for all)."""

    words: str = ""
    since: date | None = None
    until: date | None = None
    strand: str = ""

    def url(self) -> str:
        """The page that shows the same again."""
        return with_query(
            reverse("search"),
            q=self.words,
            since=self.since.isoformat() if self.since else "",
            until=self.until.isoformat() if self.until else "",
            strand=self.strand,
        )


@dataclass(frozen=True)
class Piece:
    """A stretch of a quotation, and whether it is what was looked for."""

    text: str
    marked: bool


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A turn that matched: who said it and when, where it is, and its words in pieces."""

    url: str
    at: datetime
    by_person: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A slice that was found, and the turns that matched; none when only its marks or its day did."""

    row: Row
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was found, the best first. `behind`: newer slices may be missing."""

    results: tuple[Result, ...]
    behind: bool


@dataclass(frozen=True)
class NotYet:
    """There is no index to ask; `making` is how far the one being made is, when that is known."""

    making: Making | None

    @property
    def per_cent(self) -> int:
        """How much of it is made."""
        return 100 * self.making.done // max(self.making.of, 1) if self.making else 0


@signed_in
@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    """The page, or for htmx what was found alone."""
    folder, person, links = access.folder_of(request.user), access.person_of(request.user), OwnLinks()
    context = search_context(folder, person, links, request.GET, now=utc_now())
    if isinstance(context["found"], NotYet) or (isinstance(context["found"], Found) and context["found"].behind):
        _ask_worker(str(request.user.pk))
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "memory/_search_found.html", context)
    return render(request, "memory/search.html", context | {"strands": _offered(folder)})


def search_context(
    folder: MemoryFolder, person: Person, links: OwnLinks, query: Mapping[str, str], *, now: datetime
) -> dict[str, Any]:
    """What the templates show: the question as it was understood, what could not be, and what was found."""
    wanted, problems = _wanted(folder, query)
    found: Found | NotYet | None = None
    if wanted.words and not problems:
        found = _found(folder, person, links, wanted, now)
    return {
        "links": links,
        "wanted": wanted,
        "problems": problems,
        "found": found,
        "not_yet": isinstance(found, NotYet),
        "empty": not folder.exists(),
        "address": wanted.url(),
    }


def _wanted(folder: MemoryFolder, query: Mapping[str, str]) -> tuple[Wanted, list[str]]:
    """The question, and in words what is wrong with it."""
    problems = []
    days: dict[str, date | None] = {}
    for name in ("since", "until"):
        given = query.get(name, "").strip()
        days[name] = _day(given)
        if given and days[name] is None:
            problems.append(_("“%(given)s” is no day. A day is written 2026-08-10.") % {"given": given[:40]})
    since, until = days["since"], days["until"]
    if since and until and until < since:
        problems.append(_("The last day lies before the first one."))
    strand = query.get("strand", "").strip()[:LONGEST_NAME]
    if strand and _paths(folder, strand) is None:
        problems.append(_("There is no strand named “%(name)s”.") % {"name": strand})
    words = query.get("q", "").replace("\0", "").strip()[:LONGEST_QUERY]
    return Wanted(words=words, since=since, until=until, strand=strand), problems


def _found(folder: MemoryFolder, person: Person, links: OwnLinks, wanted: Wanted, now: datetime) -> Found | NotYet:
    if not folder.exists():
        return Found(results=(), behind=False)
    fresh = indexing.caught_up(folder)
    try:
        hits = SearchIndex(folder.index_file).search(
            wanted.words,
            now=now,
            timezone=person.timezone,
            person=person.name,
            limit=SHOWN,
            paths=_paths(folder, wanted.strand) if wanted.strand else None,
            since=wanted.since,
            until=wanted.until,
        )
    except (NoIndex, LockTimeout):
        return NotYet(indexing.making(folder))
    return Found(results=tuple(_results(folder, person, links, hits)), behind=not fresh)


def _results(folder: MemoryFolder, person: Person, links: OwnLinks, hits: Iterable[Hit]) -> Iterator[Result]:
    """The slices as they are on disk now; one that has gone meanwhile is left out."""
    for hit in hits:
        line = read_line(folder.root, hit.slice_id)
        if line is None:
            continue
        (row,) = rows(folder, person, links, [line])
        quotes = sorted((_quote(links, hit.slice_id, turn) for turn in hit.turns), key=lambda quote: quote.at)
        yield Result(row=row, quotes=tuple(quotes))


def _quote(links: OwnLinks, slice_id: str, turn: TurnHit) -> Quote:
    return Quote(
        url=links.turn_url(path_of(slice_id), turn.turn_id),
        at=turn.at,
        by_person=turn.role == "user",
        pieces=tuple(_pieces(turn.snippet)),
    )


def _pieces(snippet: Snippet) -> Iterator[Piece]:
    """The text cut at its matches; nothing of it is markup, each piece is escaped where it is shown."""
    at = 0
    for begin, finish in snippet.matches:
        if at < begin:
            yield Piece(snippet.text[at:begin], marked=False)
        yield Piece(snippet.text[begin:finish], marked=True)
        at = finish
    if at < len(snippet.text):
        yield Piece(snippet.text[at:], marked=False)


def _paths(folder: MemoryFolder, strand: str) -> tuple[str, ...] | None:
    """The slice paths of a strand, known by any name that leads to it; None for one that is not there."""
    try:
        strands = folder.strands()
        return strands.get(strand) or strands.get(follow(normalise(strand), folder.merges()))
    except Damaged:
        return None  # the page of the strands says what is wrong


def _offered(folder: MemoryFolder) -> list[str]:
    """The strands offered in the form, those most recently spoken of."""
    try:
        strands = folder.strands()
    except Damaged:
        return []
    return sorted(strands, key=lambda key: (strands[key][-1], key), reverse=True)[:STRANDS_OFFERED]


def _ask_worker(user_id: str) -> None:
    """Have the index made; asked again only when it has not come for a while."""
    if cache.add(f"index-{user_id}", True, timeout=ASKED_AGAIN_AFTER):
        tasks.enqueue_index(user_id)


def _day(given: str) -> date | None:
    try:
        return date.fromisoformat(given) if _DAY.fullmatch(given) else None
    except ValueError:
        return None
