"""What commits did to a file or to a slice, said so that a person can follow: when, why, and line by line."""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from django.http import Http404
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memory.folder.errors import GitError, NotThere, Outside
from memory.folder.git import CommitView, DiffLine, FileDiff
from memory.folder.paths import CARD, agent_file, appendix_file, core_file, frozen_card_file, slice_of_file
from memory.folder.store import MemoryFolder

A_PAGE = 10
PAGE_BYTES = 300_000
SHOWN_LINES = 400
"""More lines of one file's change than this are left out: whoever wants them all has git."""

SHOWN_CHARACTERS = 2_000
"""How much of one line of a change is shown."""

log = logging.getLogger(__name__)

_TURN = re.compile(r"turn [A-Za-z0-9_-]{1,16}(, again)?: (.*)")
_CLOSE = re.compile(r"close [0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{4}:? ?(.*)")
_FILES: Mapping[Callable[[str], str], object] = {
    core_file: gettext_lazy("Conversation"),
    agent_file: gettext_lazy("Thoughts"),
    appendix_file: gettext_lazy("Appendix"),
    frozen_card_file: gettext_lazy("Card"),
}
_MARKS = {"add": ("ins", "+"), "remove": ("del", "−"), "context": ("span", " ")}


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What became of one file: its name in words, `added`, `removed` or `changed`, and the lines."""

    name: str
    change: str
    lines: SafeString


@dataclass(frozen=True, kw_only=True)
class Change:
    """One commit. `why` says what made it, `about` is the text of its message that is somebody's words.

    `cut` when there was more of it than a page can show.
    """

    id: str
    at: datetime
    why: str
    about: str
    files: tuple[FileChange, ...]
    cut: bool
    blob: str | None
    """The id of the bytes that its first file was left with, None when the file was removed."""


@dataclass(frozen=True, kw_only=True)
class History:
    """A page of changes, newest first. `before` goes on behind the last of them, '' at the end."""

    changes: tuple[Change, ...] = ()
    before: str = ""
    uncommitted: bool = False
    """Whether something was written that is not in a commit yet."""
    trouble: str = ""
    """Why the history cannot be read."""


def history_of(folder: MemoryFolder, path: str, *, before: str = "", limit: int = A_PAGE) -> History:
    """The changes to a file, or to all files of a directory. Raises Http404 when `before` is no commit."""
    if not folder.exists():
        return History()
    waiting = any(one == path or one.startswith(f"{path}/") for one in folder.state.touched())
    try:
        views, more = folder.repository.diffs(path=path, limit=limit, before=before or None, at_most=PAGE_BYTES)
    except (NotThere, Outside) as error:
        raise Http404 from error
    except GitError as error:
        log.warning("the history of %s cannot be read: %s", folder.root.name, error)
        return History(uncommitted=waiting, trouble=str(error))
    changes = tuple(map(_change, views))
    return History(changes=changes, before=changes[-1].id if more and changes else "", uncommitted=waiting)


def _change(view: CommitView) -> Change:
    why, about = _said(view.commit.subject)
    files = tuple(map(_file, view.files))
    blob = view.files[0].blob if view.files else None
    return Change(id=view.commit.id, at=view.commit.at, why=why, about=about, files=files, cut=view.cut, blob=blob)


def _said(subject: str) -> tuple[str, str]:
    """Why a commit was made, and the words of its message."""
    if subject == "card edited by its owner":
        return _("You edited your card"), ""
    if turn := _TURN.fullmatch(subject):
        return (_("Tried again") if turn[1] else _("A turn")), turn[2]
    if close := _CLOSE.fullmatch(subject):
        return _("After a slice closed"), close[1]
    if subject.startswith("recovered turn "):
        return _("Recovered after a crash"), ""
    if subject.startswith("before an edit: "):
        return _("As it was before your edit"), ""
    if subject.startswith("edited by hand: "):
        return _("Edited by hand"), ""
    return subject, ""


def _file(diff: FileDiff) -> FileChange:
    is_card = diff.path == CARD or diff.path.endswith("/previously.md")
    return FileChange(
        name=_name(diff.path),
        change=diff.change,
        lines=lines(_without_front_matter(diff.lines) if is_card else diff.lines),
    )


def _without_front_matter(changed: Sequence[DiffLine]) -> Sequence[DiffLine]:
    """The change to a card without its stamps, which change with every edit; all of it when nothing else changed."""
    ends = [number for number, line in enumerate(changed) if line.text == "---"]
    if len(ends) < 2 or ends[0] != 0:
        return changed
    rest = changed[ends[1] + 1 :]
    touched = [number for number, line in enumerate(rest) if line.kind in ("add", "remove")]
    gaps = [number for number, line in enumerate(rest) if line.kind == "gap"]
    if not touched:
        return changed
    # What is left of the first hunk is only there for the sake of the stamps.
    return rest[gaps[0] + 1 :] if gaps and gaps[0] < touched[0] else rest


def _name(path: str) -> str:
    slice_id = slice_of_file(path)
    if slice_id:
        for file, name in _FILES.items():
            if file(slice_id) == path:
                return str(name)
    return _("Card") if path == CARD else path


def lines(changed: Iterable[DiffLine]) -> SafeString:
    """The lines of a change as HTML: a mark in front of each, so that nothing depends on colour."""
    shown, left = [], 0
    for line in changed:
        if len(shown) >= SHOWN_LINES:
            left += 1
        elif line.kind == "gap":
            shown.append('<span class="gap">⋯</span>')
        else:
            shown.append(_line(line.kind, line.text))
    if left:
        words = ngettext("%(count)d more line", "%(count)d more lines", left) % {"count": left}
        shown.append(f'<span class="gap">{escape(words)}</span>')
    return mark_safe("".join(shown))  # noqa: S308 - escaped line by line


def _line(kind: str, text: str) -> str:
    name, mark = _MARKS[kind]
    words = text.rstrip("\r")
    if len(words) > SHOWN_CHARACTERS:
        words = f"{words[:SHOWN_CHARACTERS]} …"
    return f'<{name}><span class="mark">{mark}</span><bdi>{escape(words)}</bdi>\n</{name}>'


def between(old: str, new: str) -> SafeString:
    """What would have to change in the old text to make it the new one, as HTML."""
    found: list[DiffLine] = []
    for line in list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=2, lineterm=""))[2:]:
        if line.startswith("@@"):
            if found:
                found.append(DiffLine("gap", ""))
        else:
            kind = {"+": "add", "-": "remove"}.get(line[:1], "context")
            found.append(DiffLine(kind, line[1:]))  # type: ignore[arg-type]
    return lines(found)
