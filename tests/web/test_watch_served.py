"""Fifty pages watch one reply of a real server: all keep up, all get the end, and no database connection is held."""

import http.client
import http.cookiejar
import os
import re
import socket
import sqlite3
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memory.conversation.events import Attempt, Ended, Heartbeat, Text
from memory.folder.clock import utc_now
from memory.folder.store import MemoryFolder, Places
from tests.served import Served
from tests.web.watched import Reply, asked, names, parsed

PAGES = 50
DANA = {"email": "dana@example.org", "called": "Dana", "password": "a-long-walk-by-the-sea"}


class Page:
    """One event source: reads in a thread of its own until the server closes the stream."""

    def __init__(self, served: Served, path: str, cookie: str) -> None:
        address = urllib.parse.urlsplit(served.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        connection.request("GET", path, headers={"Cookie": cookie, "Accept": "text/event-stream"})
        self.socket = connection.sock
        self.response = connection.getresponse()
        self.stream = b""
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def leave(self) -> None:
        with suppress(OSError):  # the server may have closed it already
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)

    def _read(self) -> None:
        with suppress(http.client.IncompleteRead):  # we left
            while piece := self.response.read1():
                self.stream += piece


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture
def cookie(served: Served) -> str:
    """Dana makes the first account, which signs her in."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    form = browser.open(served.link, timeout=10).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token
    browser.open(served.link, urllib.parse.urlencode(DANA | {"csrfmiddlewaretoken": token[1]}).encode(), timeout=10)
    return "; ".join(f"{one.name}={one.value}" for one in jar)


@pytest.fixture
def reply(served: Served, cookie: str) -> Reply:
    with sqlite3.connect(served.data_dir / "database.sqlite3") as database:
        [[user_id]] = database.execute("SELECT id FROM accounts_user")
    name = str(uuid.UUID(user_id))
    data = served.data_dir
    places = Places(root=data / "folders" / name, run=data / "run" / name, pending=data / "pending" / name)
    return asked(MemoryFolder(places), utc_now())


@pytest.fixture
def before(served: Served, reply: Reply) -> int:
    """The database connections of the server before any page watches."""
    return open_databases(served)


@pytest.fixture
def pages(served: Served, cookie: str, reply: Reply, before: int) -> Iterator[list[Page]]:
    reply.happens(Attempt(now_ms()), Text(now_ms(), "You settled on **oak**.\n\nIt has"))
    opened = [Page(served, reply.path, cookie) for _ in range(PAGES)]
    wait_for(lambda: all(b"event: whole" in page.stream for page in opened))
    yield opened
    for page in opened:
        page.leave()


def now_ms() -> int:
    return int(utc_now().timestamp() * 1000)


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"it did not happen within {seconds} s"
        time.sleep(0.02)


def open_databases(served: Served) -> int:
    """How often the server process has the database file open: once a connection."""
    descriptors = Path(f"/proc/{served.process.pid}/fd")
    links = []
    for descriptor in descriptors.iterdir():
        try:
            links.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue  # closed while we looked
    return sum(link.endswith("/database.sqlite3") for link in links)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files in /proc, which this system lacks")
def test_it_works(served: Served, reply: Reply, before: int, pages: list[Page]) -> None:
    assert {page.response.status for page in pages} == {200}
    wait_for(lambda: open_databases(served) <= before)

    reply.happens(Text(now_ms(), " to stay under 900.\n\nThen"), Heartbeat(now_ms()))
    wait_for(lambda: all(b"under 900" in page.stream for page in pages))
    wait_for(lambda: open_databases(served) <= before)

    reply.is_recorded("You settled on **oak**.", utc_now())
    reply.happens(Ended(now_ms(), "done"))
    wait_for(lambda: not any(page.thread.is_alive() for page in pages))
    for page in pages:
        assert names(parsed(page.stream)) == ["whole", "block", "tail", "end"]
    wait_for(lambda: open_databases(served) <= before)
    assert "Traceback" not in served.output


def test_a_server_that_stops_asks_its_pages_to_come_back(served: Served, pages: list[Page]) -> None:
    assert served.stop() == 0
    wait_for(lambda: not any(page.thread.is_alive() for page in pages))
    for page in pages:
        assert page.stream.endswith(b"retry: 1000\n\n")
        assert names(parsed(page.stream)) == ["whole"]
