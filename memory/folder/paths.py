"""Where things lie in a memory folder, and the strict reading of ids before they become paths.

A *relative file* is a posix path from the repository root. A *slice path* is the part of it that names a slice,
`2026/08/10/2130`; it has the same digits as the slice id, `2026-08-10-2130`, the UTC minute in which the slice began.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path

from memory.folder.clock import stamp
from memory.folder.errors import BadId, Outside

CARD = "memory/previously.md"
SLICES = "memory/episodic/slices"
STRANDS = "memory/episodic/strands.json"
MERGES = "memory/episodic/strand-merges.json"
TIMELINE = "memory/episodic/timeline"

_SLICE_ID = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})-([0-9]{2})([0-9]{2})")
_SLICE_PATH = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2})/([0-9]{2})([0-9]{2})")
_SLICE_FILE = re.compile(rf"{re.escape(SLICES)}/([0-9/]{{15}})/.")
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_TURN_ID = re.compile(r"[A-Za-z0-9_-]{1,16}")
_DIGITS = (re.compile(r"[0-9]{4}"), re.compile(r"[0-9]{2}"), re.compile(r"[0-9]{2}"), re.compile(r"[0-9]{4}"))


def slice_id_at(at: datetime) -> str:
    """Return the id of a slice that begins in the minute of that instant; raises ValueError without a time zone."""
    text = stamp(at)
    return f"{text[:10]}-{text[11:13]}{text[14:16]}"


@lru_cache(maxsize=65_536)
def parse_slice_id(text: str) -> str:
    """Return the text if it is a slice id of a real minute; raises BadId.

    Those found good are remembered: a close reads every id there is, and they are the same at the next close.
    """
    _minute(_SLICE_ID, text)
    return text


def parse_slice_path(text: str) -> str:
    """Return the id of the slice that a slice path names; raises BadId."""
    _minute(_SLICE_PATH, text)
    return text[:10].replace("/", "-") + "-" + text[11:]


def path_of(slice_id: str) -> str:
    """Return the slice path, `2026/08/10/2130`; raises BadId."""
    return parse_slice_id(slice_id).replace("-", "/")


def id_of(slice_path: str) -> str:
    """Return the slice id; raises BadId."""
    return parse_slice_path(slice_path)


def minute_of(slice_id: str) -> datetime:
    """Return the minute that the id names, as an instant; raises BadId."""
    return _minute(_SLICE_ID, slice_id)


def parse_turn_id(text: str) -> str:
    """Return the text if it may be a turn id, older lengths included; raises BadId."""
    if not _TURN_ID.fullmatch(text):
        raise BadId(f"not a turn id: {text[:40]!r}")
    return text


def new_turn_id() -> str:
    """Return a fresh turn id: four random bytes, six characters."""
    return secrets.token_urlsafe(4)


def core_file(slice_id: str) -> str:
    """Return the relative file of the slice's shared record."""
    return f"{SLICES}/{path_of(slice_id)}/timeline/core.md"


def agent_file(slice_id: str) -> str:
    """Return the relative file of the agent's own line."""
    return f"{SLICES}/{path_of(slice_id)}/timeline/agent.md"


def appendix_file(slice_id: str) -> str:
    """Return the relative file of the lines that could not be read as turns."""
    return f"{SLICES}/{path_of(slice_id)}/timeline/appendix.md"


def frozen_card_file(slice_id: str) -> str:
    """Return the relative file of the card as it stood when the slice closed."""
    return f"{SLICES}/{path_of(slice_id)}/previously.md"


def slice_of_file(relative: str) -> str | None:
    """Return the id of the slice whose directory holds the relative file, None for any other file."""
    match = _SLICE_FILE.match(relative)
    try:
        return parse_slice_path(match[1]) if match else None
    except BadId:
        return None


def is_relative(text: object) -> bool:
    """Whether this may be a relative file: it stays inside the folder and outside its `.git`."""
    return isinstance(text, str) and all(_is_name(part) and part.lower() != ".git" for part in text.split("/"))


def is_derived(relative: str) -> bool:
    """Whether the relative file is made from the slices and can be made again."""
    return relative == STRANDS or relative.startswith(f"{TIMELINE}/")


def month_of(slice_id: str) -> str:
    """Return the month of a slice, `2026-08`; raises BadId."""
    return parse_slice_id(slice_id)[:7]


def parse_month(text: str) -> str:
    """Return the text if it is a month, `2026-08`; raises BadId."""
    match = _MONTH.fullmatch(text)
    if not match or match[1] == "0000" or not 1 <= int(match[2]) <= 12:
        raise BadId(f"not a month: {text[:40]!r}")
    return text


def month_file(month: str) -> str:
    """Return the relative file of a month's catalogue; raises BadId."""
    return f"{TIMELINE}/{parse_month(month)}.json"


def inside(root: Path, relative: str) -> Path:
    """Return the absolute path of a relative file, which need not exist.

    Raises Outside if the path is absolute, has a part that is empty, `.`, `..` or no possible name, or meets a
    symbolic link below the root.
    """
    path = str(root)
    exists = True
    for part in relative.split("/"):
        if not _is_name(part):
            raise Outside(f"not a path inside the folder: {relative[:200]!r}")
        path = f"{path}/{part}"
        try:
            if exists and stat.S_ISLNK(os.lstat(path).st_mode):
                raise Outside(f"a symbolic link is in the way: {relative[:200]!r}")
        except (FileNotFoundError, NotADirectoryError):
            exists = False
    return Path(path)


def newest_slice_ids(root: Path, limit: int) -> list[str]:
    """Return the ids of the newest slices, newest first, by listing only as many directories as that takes.

    A slice is a real directory with a real core.md; anything else that lies about is passed over.
    """
    return list(islice(_walk(root, newest_first=True), max(limit, 0)))


def slice_ids(root: Path, *, since_month: str | None = None) -> Iterator[str]:
    """Yield the ids of all slices, or of those from a month on, ascending; raises BadId for a bad month."""
    return _walk(root, newest_first=False, since=tuple(parse_month(since_month).split("-")) if since_month else ())


def free_slice_id(root: Path, at: datetime) -> str:
    """Return the id of the minute of `at`, or of the first minute after it whose directory is not taken."""
    while True:
        slice_id = slice_id_at(at)
        if not os.path.lexists(root / SLICES / path_of(slice_id)):
            return slice_id
        at += timedelta(minutes=1)


def _minute(pattern: re.Pattern[str], text: str) -> datetime:
    match = pattern.fullmatch(text)
    if match:
        year, month, day, hour, minute = map(int, match.groups())
        try:
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        except ValueError:
            pass  # well formed, but no such minute: reported below with the rest
    raise BadId(f"not a slice: {text[:40]!r}")


def _is_name(part: str) -> bool:
    # A lone surrogate has no bytes, and a longer name is refused by the file system.
    size = len(part.encode(errors="ignore"))
    return part not in ("", ".", "..") and "\0" not in part and len(part) <= size <= 255


def _walk(root: Path, *, newest_first: bool, since: tuple[str, ...] = ()) -> Iterator[str]:
    def below(directory: str, names: tuple[str, ...]) -> Iterator[str]:
        depth = len(names)
        if depth == len(_DIGITS):
            if _holds_core(directory) and (slice_id := _real_id(names)):
                yield slice_id
            return
        floor = since[depth] if depth < len(since) and names == since[:depth] else ""
        for name in sorted(_directories(directory), reverse=newest_first):
            if _DIGITS[depth].fullmatch(name) and name >= floor:
                yield from below(f"{directory}/{name}", (*names, name))

    yield from below(f"{root}/{SLICES}", ())


def _directories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _holds_core(directory: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(f"{directory}/timeline").st_mode) and stat.S_ISREG(
            os.lstat(f"{directory}/timeline/core.md").st_mode
        )
    except (FileNotFoundError, NotADirectoryError):
        return False


def _real_id(names: tuple[str, ...]) -> str | None:
    try:
        return parse_slice_id("-".join(names))
    except BadId:
        return None
