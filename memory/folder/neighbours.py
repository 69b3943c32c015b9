"""The slices just before and just after one, wherever they are: in the month's file, or not catalogued yet."""

from pathlib import Path

from memory.folder.paths import month_of
from memory.folder.timeline import DamagedSlice, Line, ids_of_month, month_lines, months, newest_first, read_line


def before(root: Path, slice_id: str) -> Line | DamagedSlice | None:
    """The newest slice older than this one, None when there is none. Raises BadId."""
    return next(newest_first(root, before=slice_id), None)


def after(root: Path, slice_id: str) -> Line | DamagedSlice | None:
    """The oldest slice newer than this one, None when there is none. Raises BadId."""
    first = month_of(slice_id)
    for month in sorted(month for month in months(root) if month >= first):
        listed = {line.id: line for line in month_lines(root, month)}
        for newer in sorted(one for one in {*listed, *ids_of_month(root, month, known=listed)} if one > slice_id):
            if found := listed.get(newer) or read_line(root, newer):
                return found
    return None
