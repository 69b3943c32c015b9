"""Small drawings as SVG: classes for the style sheet and escaped words, no style of their own."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

CELL, PITCH = 10, 13
STEPS = 5
BARS = 48
"""At most so many months stand singly in an activity line; of more, several make one point."""
WIDTH, HEIGHT = 120, 20


@dataclass(frozen=True, slots=True)
class Cell:
    """A day of a month: `step` is 0 for nothing, else 1 to 5; `title` says the same in words."""

    day: date
    step: int
    title: str


def month_svg(cells: Sequence[Cell]) -> SafeString:
    """Draw a month, a row a week from Monday on. What it shows stands in a table too, so it is hidden from readers."""
    lead = cells[0].day.weekday()
    places = ((divmod(lead + number, 7), cell) for number, cell in enumerate(cells))
    drawn = format_html_join(
        "",
        '<rect class="s{}" x="{}" y="{}" width="10" height="10" rx="2">{}</rect>',
        (
            (cell.step, column * PITCH, row * PITCH, format_html("<title>{}</title>", cell.title) if cell.title else "")
            for (row, column), cell in places
        ),
    )
    return format_html(
        '<svg class="days" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>',
        7 * PITCH - (PITCH - CELL),
        6 * PITCH - (PITCH - CELL),
        drawn,
    )


def month_number(text: str) -> int:
    """The months since year 0, of a text that begins `2026/08` or `2026-08`."""
    return int(text[:4]) * 12 + int(text[5:7]) - 1


def activity_svg(paths: Iterable[str], first: int, last: int) -> SafeString:
    """Draw how many of the slice paths lie in each month from `first` to `last`, month numbers, as one line."""
    months = Counter(path[:7] for path in paths)
    size = -(-(last - first + 1) // BARS)
    points = [0] * (-(-(last - first + 1) // size))
    for month, count in months.items():
        place = (month_number(month) - first) // size
        if 0 <= place < len(points):
            points[place] += count
    highest, width = max(points, default=0) or 1, WIDTH / max(len(points) - 1, 1)
    ups = [
        (round(number * width, 1), round(HEIGHT - 1 - (HEIGHT - 3) * count / highest, 1))
        for number, count in enumerate(points)
    ]
    if len(ups) == 1:
        ups.append((WIDTH, ups[0][1]))
    line = " ".join(f"{across},{up}" for across, up in ups)
    return format_html(
        '<svg class="activity" viewBox="0 0 {0} {1}" preserveAspectRatio="none" aria-hidden="true">'
        '<polygon points="0,{1} {2} {0},{1}"/><polyline points="{2}"/></svg>',
        WIDTH,
        HEIGHT,
        line,
    )
