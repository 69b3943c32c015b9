"""A person's folder with a past, and what a page says, for the tests of the pages."""

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse

from accounts.models import User
from memory import access
from memory.folder import git
from memory.folder.clock import utc_now
from memory.folder.paths import core_file, slice_id_at
from memory.folder.slices import Slice, render
from memory.folder.store import MemoryFolder
from memory.folder.turns import Entry

HTMX = {"HTTP_HX_REQUEST": "true"}


def calls_of_git(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines of git from now on, in a list that grows with each."""
    ran: list[list[str]] = []
    run = git._run

    def counted(command: list[str], *arguments: Any, **named: Any) -> Any:
        ran.append(command)
        return run(command, *arguments, **named)

    monkeypatch.setattr(git, "_run", counted)
    return ran


def folder_of(user: User) -> MemoryFolder:
    """The user's folder, made if there is none."""
    folder = access.folder_of(user)
    if not folder.exists():
        git.create(folder.root, format_version=1)
    return folder


def keep(
    user: User,
    start: datetime | None = None,
    *said: tuple[str, str, str | None],
    minutes_ago: int = 5,
    active: bool = False,
    **marks: object,
) -> Slice:
    """Put a slice into the folder: `said` are (turn id, the person's words, the reply or None), a minute apart."""
    start = start or utc_now() - timedelta(minutes=minutes_ago)
    entries: list[Entry] = []
    for number, (turn_id, words, reply) in enumerate(said):
        at = start + timedelta(minutes=number)
        entries.append(Entry(turn_id, at, "user", words))
        if reply is not None:
            entries.append(Entry(turn_id, at + timedelta(seconds=20), "agent", reply))
    closed = {} if active else {"end": entries[-1].at if entries else start, "closed_by": "time_cap"}
    given: dict = {"status": "active" if active else "closed", "timezone": "Europe/Berlin"} | closed | marks
    made = Slice(slice_id=slice_id_at(start), start=start, entries=tuple(entries), **given)
    path = folder_of(user).root / core_file(made.slice_id)
    path.parent.mkdir(parents=True)
    path.write_text(render(made), "utf-8")
    return made


def newest(user: User) -> Slice:
    """The newest slice, which has to be readable."""
    found = access.folder_of(user).newest(1)[0]
    assert isinstance(found, Slice)
    return found


def text_of(response: HttpResponse) -> str:
    return response.content.decode()


def turn_field(page: str) -> str:
    """The turn id that the composer carries."""
    found = re.search(r'name="turn" id="turn" value="([^"]*)"', page)
    assert found
    return found[1]


def seen_fields(page: str) -> list[str]:
    return re.findall(r'name="seen" value="([^"]*)"', page)


def entries(page: str) -> list[str]:
    """The ids of the entries in the order they stand."""
    return re.findall(r'<article class="entry [^"]*" id="([^"]*)"', page)


def notices(page: str) -> list[str]:
    """The words of the notices, their links included."""
    place = re.search(r'id="notices".*?</div></div>|id="notices"[^>]*></div>', page, re.S)
    words = re.findall(r"<p>(.*?)</p>", place[0], re.S) if place else []
    return [html.unescape(re.sub(r"<[^>]*>", "", word)).strip() for word in words]
