"""What was measured, a row each, beside what must hold."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """`held` is None for a row that is there to compare with."""

    what: str
    slices: str
    measured: str
    limit: str = ""
    held: bool | None = None


def markdown(rows: Iterable[Row]) -> str:
    """The rows as one Markdown table."""
    lines = ["| what | slices | measured | must hold | held |", "|---|---:|---|---|---|"]
    verdicts = {True: "yes", False: "**no**", None: ""}
    for row in rows:
        lines.append(f"| {row.what} | {row.slices} | {row.measured} | {row.limit} | {verdicts[row.held]} |")
    return "\n".join(lines)


def size(slices: int) -> str:
    """`36,500`."""
    return f"{slices:,}"
