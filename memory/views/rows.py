"""A slice as a line of a list: on the timeline and on a strand's page."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from memory import wording
from memory.conversation.person import Person
from memory.folder.clock import local_day
from memory.folder.paths import minute_of, path_of
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice, Line

from .links import OwnLinks
from .spine import focus_of


@dataclass(frozen=True, kw_only=True)
class StrandLink:
    """A strand and where its page is."""

    name: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line. Of a damaged slice there is the minute it began, in the person's zone, and what is wrong."""

    id: str
    url: str
    start: datetime
    zone: str
    focus: str
    summary: str = ""
    turns: int = 0
    tone: str = ""
    tone_class: str = ""
    active: bool = False
    strands: tuple[StrandLink, ...] = ()
    damaged: DamagedSlice | None = None
    day_begins: bool = False
    """Whether it is the first of its local day in the list."""


def rows(
    folder: MemoryFolder, person: Person, links: OwnLinks, lines: Iterable[Line | DamagedSlice]
) -> tuple[Row, ...]:
    """The lines, each with its own local day marked where it begins."""
    made: list[Row] = []
    last = None
    for line in lines:
        at, zone = (line.start, line.timezone) if isinstance(line, Line) else (minute_of(line.id), person.timezone)
        day = local_day(at, zone)
        made.append(_row(folder, person, links, line, day_begins=day != last))
        last = day
    return tuple(made)


def _row(folder: MemoryFolder, person: Person, links: OwnLinks, line: Line | DamagedSlice, *, day_begins: bool) -> Row:
    if isinstance(line, DamagedSlice):
        return Row(
            id=line.id,
            url=links.slice_url(path_of(line.id)),
            start=minute_of(line.id),
            zone=person.timezone,
            focus=_("Damaged"),
            damaged=line,
            day_begins=day_begins,
        )
    return Row(
        id=line.id,
        url=links.slice_url(line.path),
        start=line.start,
        zone=line.timezone,
        focus=focus_of(folder, line, person),
        summary=line.summary,
        turns=line.turns,
        tone=wording.tone(line.emotional_tone),
        tone_class=wording.tone_class(line.emotional_tone),
        active=line.active,
        strands=tuple(StrandLink(name=name, url=links.strand_url(name)) for name in line.strands),
        day_begins=day_begins,
    )
