"""The spine: a person's time as one line, newest at the bottom, older months as one scrolls up."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from memory import access, wording
from memory.conversation.person import Person
from memory.folder.clock import local
from memory.folder.errors import BadId, Damaged, NotThere
from memory.folder.marks import floor_focus
from memory.folder.paths import minute_of, parse_slice_id, path_of
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice, Line, catalogue, line_of

from .signed_in import signed_in

SHOWN = 30


@dataclass(frozen=True, kw_only=True)
class Row:
    """One slice on the spine. `kind` is a class of the style sheet, `words` say the same for who cannot see colours."""

    line: Line
    focus: str
    kind: str
    words: str
    month: bool
    """Whether a month begins with this row."""
    day: bool


@dataclass(frozen=True, kw_only=True)
class Spine:
    """Rows from old to new. `earlier` is the slice id to go on from upwards, '' when there is nothing older."""

    rows: tuple[Row, ...]
    earlier: str


@signed_in
@require_safe
def spine(request: HttpRequest) -> HttpResponse:
    """The part of the spine before one slice: rows for the page that scrolls up, a page of its own otherwise."""
    try:
        before = parse_slice_id(request.GET.get("before", ""))
    except BadId as error:
        raise Http404 from error
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    template = "memory/_spine_rows.html" if request.htmx else "memory/spine.html"  # type: ignore[attr-defined]
    return render(request, template, {"spine": build(folder, person, newest(folder, before=before))})


def newest(folder: MemoryFolder, *, before: str | None = None) -> list[Line | DamagedSlice]:
    """The slices that one stretch of the spine shows and the one behind them, newest first."""
    return catalogue(folder.root, limit=SHOWN + 1, before=before)


def build(
    folder: MemoryFolder, person: Person, lines: Sequence[Line | DamagedSlice], *, without: str | None = None
) -> Spine:
    """A stretch of the spine from what `newest` gave; `without` is the slice that stands under "Now" instead."""
    rows: list[Row] = []
    last = None
    for found in reversed(lines[:SHOWN]):
        if found.id == without:
            continue
        row_line = found if isinstance(found, Line) else _stand_in(found, person)
        day = local(row_line.start, row_line.timezone).date()
        rows.append(
            Row(
                line=row_line,
                focus=_("Damaged") if isinstance(found, DamagedSlice) else focus_of(folder, found, person),
                kind=_kind(found),
                words=_words(found),
                month=last is None or (day.year, day.month) != (last.year, last.month),
                day=day != last,
            )
        )
        last = day
    return Spine(rows=tuple(rows), earlier=lines[SHOWN - 1].id if len(lines) > SHOWN else "")


def focus_of(folder: MemoryFolder, line: Line, person: Person) -> str:
    """What a slice is about; an active or dry one has no focus yet and is named by its first words."""
    if line.focus:
        return line.focus
    try:
        return floor_focus(folder.slice(line.id), language=person.language)
    except (NotThere, Damaged):
        return path_of(line.id)  # gone or broken since it was listed


def _stand_in(damaged: DamagedSlice, person: Person) -> Line:
    """A line for a slice of which nothing but the minute it began can be known."""
    return line_of(Slice(slice_id=damaged.id, status="closed", start=minute_of(damaged.id), timezone=person.timezone))


def _kind(found: Line | DamagedSlice) -> str:
    if isinstance(found, DamagedSlice):
        return "damaged"
    return "open" if found.active else wording.tone_class(found.emotional_tone)


def _words(found: Line | DamagedSlice) -> str:
    if isinstance(found, DamagedSlice):
        return _("cannot be read")
    return _("still open") if found.active else wording.tone(found.emotional_tone)
