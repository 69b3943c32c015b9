"""The timeline: a year at a glance, and its months, each slice a line."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import dateformat
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_safe

from memory import access, wording
from memory.conversation.person import Person
from memory.folder import days
from memory.folder.clock import local_day, utc_now
from memory.folder.days import Glance
from memory.folder.errors import Damaged
from memory.folder.paths import parse_slice_id
from memory.folder.store import MemoryFolder
from memory.folder.strands import Merges, follow, normalise
from memory.folder.timeline import months

from .drawing import STEPS, Cell, month_svg
from .links import OwnLinks
from .rows import Row, rows
from .signed_in import signed_in

SHOWN = 40
LONGEST_NAME = 300
ONE_DAY = timedelta(days=1)

ToneWords = Mapping[str | tuple[str, ...], str]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the timeline is limited to: a strand's key and a tone, '' when not. `query` carries them on."""

    strand: str = ""
    tone: str = ""

    @property
    def query(self) -> dict[str, str]:
        return {"strand": self.strand, "tone": self.tone}


@dataclass(frozen=True, kw_only=True)
class Month:
    """A month of the year at a glance."""

    name: str
    url: str
    slices: int
    turns: int
    drawing: SafeString
    words: tuple[str, ...]
    """A text a day for the table; empty where nothing was said."""


@dataclass(frozen=True, kw_only=True)
class Year:
    """A year at a glance. `others` are the years with slices, each with its URL, newest first."""

    year: int
    months: tuple[Month, ...]
    slices: int
    turns: int
    others: tuple[tuple[int, str], ...]
    earlier: tuple[int, str] | None
    later: tuple[int, str] | None


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Some lines of a month, newest first; `more` is the URL that goes on, '' at the end.

    `goes_to` names the month that `more` begins, '' when it goes on in the same one.
    """

    title: str
    """The month's name and year where it begins, '' where it goes on."""
    id: str
    rows: tuple[Row, ...]
    more: str
    goes_to: str = ""


@signed_in
@require_safe
def timeline(request: HttpRequest, year: int | None = None) -> HttpResponse:
    """A year, the newest one unless another is asked for: its days, and the lines of its newest month."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    context = year_context(folder, person, OwnLinks(), year, request.GET)
    template = "memory/_year.html" if request.htmx else "memory/timeline.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@signed_in
@require_safe
def timeline_month(request: HttpRequest, year: int, month: int) -> HttpResponse:
    """A month's lines: a page of its own, or the next stretch of the page that scrolls on."""
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    context = month_context(folder, person, OwnLinks(), year, month, request.GET)
    template = "memory/_stretch.html" if request.htmx else "memory/month.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def year_context(
    folder: MemoryFolder, person: Person, links: OwnLinks, year: int | None, query: Mapping[str, str]
) -> dict[str, Any]:
    """What the templates of a year show. Raises Http404 for a year that is none."""
    merges = merges_of(folder)
    wanted = wanted_of(query, merges)
    known = sorted(months(folder.root))
    if year is None:
        year = int(known[-1][:4]) if known else local_day(utc_now(), person.timezone).year
    _refuse_the_ends_of_time(year)
    found = look(folder, person, date(year, 1, 1), date(year, 12, 31), wanted, merges)
    newest = found[0].day.replace(day=1) if found else None
    reader = Reader(folder, person, links, wanted, merges)
    return {
        "links": links,
        "wanted": wanted,
        "tones": tones(),
        "day_numbers": range(1, 32),
        "year": _year(year, found, known, reader),
        "stretch": _stretch(reader, newest, [one for one in found if one.day >= newest], on=True, known=known)
        if newest
        else None,
        "here": links.year_url(year),
        "address": links.year_url(year, **wanted.query),
        "any": bool(known),
    }


def month_context(
    folder: MemoryFolder, person: Person, links: OwnLinks, year: int, month: int, query: Mapping[str, str]
) -> dict[str, Any]:
    """What the templates of a month show. Raises Http404 for a month that is none."""
    _refuse_the_ends_of_time(year)
    try:
        first = date(year, month, 1)
        before = parse_slice_id(query["before"]) if query.get("before") else ""
    except (ValueError, OverflowError) as error:
        raise Http404 from error
    merges = merges_of(folder)
    wanted = wanted_of(query, merges)
    known = sorted(months(folder.root))
    found = look(folder, person, first, _after(first) - ONE_DAY, wanted, merges)
    rest = [one for one in found if not before or one.id < before]
    reader = Reader(folder, person, links, wanted, merges)
    earlier, later = first - ONE_DAY, _after(first)
    return {
        "links": links,
        "wanted": wanted,
        "tones": tones(),
        "month": title_of(first),
        "slices": len(found),
        "turns": sum(one.turns for one in found),
        "stretch": _stretch(reader, first, rest, on="on" in query, known=known, begins=not before),
        "year_url": links.year_url(year, **wanted.query),
        "earlier": _neighbour(reader, earlier, bool(known) and f"{earlier:%Y-%m}" >= known[0]),
        "later": _neighbour(reader, later, bool(known) and f"{later:%Y-%m}" <= known[-1]),
        "here": links.month_url(first),
    }


@dataclass(frozen=True)
class Reader:
    """Whose timeline is shown, to whom by these links, limited to what."""

    folder: MemoryFolder
    person: Person
    links: OwnLinks
    wanted: Wanted
    merges: Merges


def merges_of(folder: MemoryFolder) -> Merges:
    """The merges; none when they cannot be read, which the strands' pages tell."""
    try:
        return folder.merges()
    except Damaged:
        return {}


def wanted_of(query: Mapping[str, str], merges: Merges) -> Wanted:
    """What a query asks for; a merged strand is the one that it has become, an unknown tone is none."""
    tone = query.get("tone", "")
    strand = follow(normalise(query.get("strand", "")[:LONGEST_NAME].replace("\0", "")), merges)
    return Wanted(strand=strand, tone=tone if wording.tone_class(tone) else "")


def tones() -> list[tuple[str, str]]:
    """The tones to choose from, each with its words."""
    return [(tone, wording.tone(tone)) for tone in ("positive", "neutral", "negative", "mixed")]


def look(folder: MemoryFolder, person: Person, first: date, last: date, wanted: Wanted, merges: Merges) -> list[Glance]:
    """The wanted slices of these local days, newest first."""
    found = days.glances(folder.root, first, last, zone_name=person.timezone, merges=merges, strand=wanted.strand)
    return [one for one in found if one.tone == wanted.tone] if wanted.tone else found


def _year(year: int, found: Sequence[Glance], known: Sequence[str], reader: Reader) -> Year:
    years = sorted({int(month[:4]) for month in known} | {year}, reverse=True)
    urls = [(one, reader.links.year_url(one, **reader.wanted.query)) for one in years]
    place = years.index(year)
    by_day: dict[date, list[Glance]] = {}
    for one in found:
        by_day.setdefault(one.day, []).append(one)
    ranked = sorted(sum(one.turns for one in of_day) for of_day in by_day.values())
    said = {tone: wording.tone(tone) for tone in {one.tone for one in found} if tone}
    return Year(
        year=year,
        months=tuple(_month(date(year, month, 1), by_day, ranked, said, reader) for month in range(1, 13)),
        slices=len(found),
        turns=sum(one.turns for one in found),
        others=tuple(urls),
        earlier=urls[place + 1] if place + 1 < len(urls) else None,
        later=urls[place - 1] if place else None,
    )


def _month(
    first: date, by_day: Mapping[date, Sequence[Glance]], ranked: Sequence[int], said: ToneWords, reader: Reader
) -> Month:
    day_format = pgettext("date format", "j F")
    cells, words = [], []
    slices = turns = 0
    for number in range((_after(first) - first).days):
        day = first + number * ONE_DAY
        if of_day := by_day.get(day):
            of_turns = sum(one.turns for one in of_day)
            words.append(_day_words(of_turns, of_day, said))
            cells.append(Cell(day, _step(of_turns, ranked), f"{dateformat.format(day, day_format)}: {words[-1]}"))
            slices += len(of_day)
            turns += of_turns
        else:
            words.append("")
            cells.append(Cell(day, 0, ""))
    url = reader.links.month_url(first, **reader.wanted.query)
    return Month(name=_name(first), url=url, slices=slices, turns=turns, drawing=month_svg(cells), words=tuple(words))


def _step(turns: int, ranked: Sequence[int]) -> int:
    """How full a day is among the days of its year, 1 to 5: a fifth of the days each, equal days alike."""
    return max(1, -(-STEPS * bisect_right(ranked, turns) // len(ranked)))


def _day_words(turns: int, of_day: Sequence[Glance], said: ToneWords) -> str:
    """12 turns, mixed, neutral: the tones of a day, the most frequent first."""
    count = ngettext("%(count)d turn", "%(count)d turns", turns) % {"count": turns}
    known = Counter(one.tone for one in of_day if one.tone)
    parts = [count, *(said[tone] for tone, _number in known.most_common())]
    if any(one.damaged for one in of_day):
        parts.append(_("one cannot be read"))
    return ", ".join(parts)


def _stretch(
    reader: Reader, month: date, found: Sequence[Glance], *, on: bool, known: Sequence[str], begins: bool = True
) -> Stretch:
    """The first lines of `found`, which lie in one month; `on` when the earlier months of the year are to follow."""
    lines = days.lines_of(reader.folder.root, found[:SHOWN], merges=reader.merges)
    made = rows(reader.folder, reader.person, reader.links, lines)
    query = reader.wanted.query | {"on": "1" if on else ""}
    more, goes_to = "", ""
    if len(found) > SHOWN:
        more = reader.links.month_url(month, before=found[SHOWN - 1].id, **query)
    elif on and month.month > 1 and known and known[0] <= f"{month:%Y-%m}":
        earlier = month - ONE_DAY
        goes_to, more = title_of(earlier), reader.links.month_url(earlier, **query)
    return Stretch(title=title_of(month) if begins else "", id=f"{month:%Y-%m}", rows=made, more=more, goes_to=goes_to)


def _neighbour(reader: Reader, day: date, exists: bool) -> tuple[str, str] | None:
    return (title_of(day), reader.links.month_url(day, **reader.wanted.query)) if exists else None


def title_of(month: date) -> str:
    """August 2026"""
    return str(date_format(month, pgettext("date format", "F Y")))


def _name(month: date) -> str:
    return str(date_format(month, pgettext("date format", "F")))


def _refuse_the_ends_of_time(year: int) -> None:
    # A calendar needs a day before its first and one after its last.
    if not 1 < year < 9999:
        raise Http404


def _after(first: date) -> date:
    """The first day of the month after."""
    return (first + 31 * ONE_DAY).replace(day=1)
