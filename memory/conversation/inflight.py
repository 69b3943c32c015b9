"""A reply in flight: written by the one worker that answers, read by any number of pages, in a file of events.

`<run>/replies/<slice>-<turn>.events` is only ever appended to. The writer holds the person's reply lock; readers take
no lock, keep no file open and remember how far they have read (`events.py`). What stands here is for watching only: the
reply itself is recorded in the slice, so losing this file loses nothing.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from memory.conversation.events import (
    Attempt,
    Ended,
    EndKind,
    Event,
    Heartbeat,
    Notice,
    Reasoning,
    Step,
    StepState,
    Text,
    Waiting,
    line_of,
)
from memory.conversation.outcomes import REPLIES, make_replies, reply_file
from memory.folder.clock import utc_now

BATCH = 0.05
HEARTBEAT = 5.0
STOP_LOOK = 0.25
KEPT_FOR = timedelta(days=1)

log = logging.getLogger(__name__)


class ReplyWriter:
    """Writes the events of one turn's reply. Use as a context manager, one at a time a turn (under the reply lock).

    Pieces are gathered and written at most 20 times a second: at once when nothing was written lately, else by a timer
    thread, which also adds a heartbeat whenever 5 s pass without an event. Leaving the context without `end` (the
    worker is stopping) leaves a chain of attempts that the next worker continues.
    """

    def __init__(
        self,
        run: Path,
        slice_id: str,
        turn_id: str,
        *,
        now: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self._run = run
        self._events = reply_file(run, slice_id, turn_id, "events")
        self._stop = reply_file(run, slice_id, turn_id, "stop")
        self._now = now
        self._monotonic = monotonic
        self._heartbeat = heartbeat
        self._made_at = monotonic()
        self._lock = threading.Condition()
        self._waiting: list[Event] = []
        self._written_at = float("-inf")
        self._ended = False
        self._begun = False
        self._left = False
        self._stop_seen = False
        self._stop_looked_at = float("-inf")
        self._timer: threading.Thread | None = None
        # Made here and never again: a folder that is deleted meanwhile stays deleted.
        make_replies(run)

    def __enter__(self) -> Self:
        self._timer = threading.Thread(target=self._keep_time, name=f"reply {self._events.stem}", daemon=True)
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._left = True
            self._lock.notify()
        if self._timer:
            self._timer.join()
        with self._lock:
            self._write_or_log()

    def attempt(self) -> None:
        """The model is about to be asked; pages forget what an earlier attempt brought."""
        self._add(Attempt(self._at()))

    def text(self, text: str) -> None:
        """A piece of the reply came."""
        if text:
            self._add(Text(self._at(), text))

    def reasoning(self, text: str) -> None:
        """A piece of reasoning came."""
        if text:
            self._add(Reasoning(self._at(), text))

    def step(self, name: str, state: StepState, label: str = "", detail: str = "") -> None:
        """A tool began (`running`) or came back (`ok`, `error`)."""
        self._add(Step(self._at(), name, state, label, detail))

    def notice(self, code: str, **values: str | int) -> None:
        """Something to tell the person beside the reply."""
        self._add(Notice(self._at(), code, values))

    def waiting(self, code: str) -> None:
        """The reply waits for something before it can begin."""
        self._add(Waiting(self._at(), code))

    def end(self, how: EndKind, code: str | None = None, *, passing: bool = False) -> None:
        """The one terminal event, written at once, after the reply or its outcome is on disk.

        Raises OSError when it cannot be written; pages then find out from the slice.
        """
        self._add(Ended(self._at(), how, code or "", passing))
        with self._lock:
            self._write()

    def stop_requested(self) -> bool:
        """Whether somebody asked this reply to stop; cheap, the disk is looked at each 0.25 s at most."""
        now = self._monotonic()
        if not self._stop_seen and now - self._stop_looked_at >= STOP_LOOK:
            self._stop_looked_at = now
            self._stop_seen = self._stop.exists()
        return self._stop_seen

    def tick(self) -> float:
        """What the timer does: write what is due, or a heartbeat. Returns the seconds until it is to be asked again."""
        with self._lock:
            return self._tick()

    def _at(self) -> int:
        return int(self._now().timestamp() * 1000)

    def _add(self, event: Event) -> None:
        with self._lock:
            if self._ended:
                raise RuntimeError("the reply has ended; nothing can follow its terminal event")
            self._ended = isinstance(event, Ended)
            last = self._waiting[-1] if self._waiting else None
            # The pieces of one batch read as one; it keeps the time at which the first of them came.
            if isinstance(event, Text) and isinstance(last, Text):
                self._waiting[-1] = Text(last.at, last.text + event.text)
            elif isinstance(event, Reasoning) and isinstance(last, Reasoning):
                self._waiting[-1] = Reasoning(last.at, last.text + event.text)
            else:
                self._waiting.append(event)
            # The first words are what people wait for; what comes after them may gather.
            first = not self._begun and isinstance(event, Text | Reasoning)
            self._begun = first or (self._begun and not isinstance(event, Attempt))
            if first or self._monotonic() - self._written_at >= BATCH:
                self._write_or_log()
            if last is None and self._waiting:
                self._lock.notify()  # the timer sleeps towards its next heartbeat and would come too late

    def _keep_time(self) -> None:
        with self._lock:
            while not self._left:
                self._lock.wait(self._tick())

    def _tick(self) -> float:
        now = self._monotonic()
        if not self._waiting and not self._ended and now - max(self._written_at, self._made_at) >= self._heartbeat:
            self._waiting.append(Heartbeat(self._at()))
        if self._waiting and now - self._written_at >= BATCH:
            self._write_or_log()
        due = self._written_at + BATCH if self._waiting else max(self._written_at, self._made_at) + self._heartbeat
        return max(due - self._monotonic(), BATCH / 10)

    def _write_or_log(self) -> None:
        """Write; what the disk does not take is kept for the next time, for no reply may fail because it is watched."""
        try:
            self._write()
        except OSError as error:
            self._written_at = self._monotonic()
            log.warning("events of reply %s not written: %s", self._events.stem, error)

    def _write(self) -> None:
        if not self._waiting:
            return
        _append(self._events, b"".join(line_of(event) for event in self._waiting))
        self._waiting.clear()
        self._written_at = self._monotonic()


def _append(path: Path, data: bytes) -> None:
    """Add whole lines to the file. A line that a killed writer left torn is ended first, so that it spoils no other."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            data = b"\n" + data
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
        except OSError:
            os.ftruncate(handle, size)  # all of the batch comes again, so none of it may stay
            raise
    finally:
        os.close(handle)


def sweep_old(run: Path, now: datetime) -> int:
    """Remove the files of replies that nobody touched for a day, and return how many.

    A living writer touches its file every few seconds, and a message is owed a reply for 24 hours, so a file that old
    belongs to a turn that is over in every case.
    """
    removed = 0
    try:
        files = list((run / REPLIES).iterdir())
    except FileNotFoundError:
        return 0
    for file in files:
        try:
            if now.timestamp() - os.stat(file, follow_symlinks=False).st_mtime > KEPT_FOR.total_seconds():
                file.unlink()
                removed += 1
        except FileNotFoundError:
            continue  # another sweep was faster
    return removed
