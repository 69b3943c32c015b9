"""How a process of ours is made to die at a chosen step.

Only the process that is to die carries a fuse. Every file it opens for writing, writes, flushes, renames, removes or
locks, every directory it makes and every git it starts is a step, and the functions on the stack say at which place of
the product the step is. At the chosen step the fuse kills the process before the step is done, in the middle of a
write, or a moment after git was started.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

PLACES = ("receive", "boundary", "answer", "close", "commit", "index", "repack", "sweep")
VARIABLE = "PREVIOUSLY_KILLING_FUSE"

_OF_FUNCTION = {
    ("memory.conversation.answer", "answer"): "answer",
    ("memory.conversation.close", "run_step"): "close",
    ("memory.conversation.receive", "_closing"): "boundary",
    ("memory.folder.git", "commit"): "commit",
    ("memory.folder.git", "refresh_index"): "index",
    ("memory.folder.git", "rebuild_index"): "index",
    ("memory.folder.git", "upkeep"): "repack",
    ("memory.tasks", "sweep_now"): "sweep",
    ("tests.conversation.talk", "sweep"): "sweep",
}
_RECEIVING = {("memory.conversation.receive", "_receive"), ("memory.conversation.receive", "_end_slice")}
_EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.truncate", "fcntl.flock", "subprocess.Popen"}
_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True, kw_only=True)
class Fuse:
    """When to die: at step number `step` of `place` ('any': of all places together)."""

    place: str
    step: int
    torn: float = 0.5
    """How much of a write is done, when the step is one."""
    delay: float = 0.0
    """Seconds that a git process is left to run, when the step is its start."""
    with_git: bool = False
    """Whether the git processes die too, or live on without us."""

    def as_text(self) -> str:
        return json.dumps(asdict(self))


def from_text(text: str) -> Fuse:
    return Fuse(**json.loads(text))


def light(fuse: Fuse, *, died: Callable[[str], object] = lambda where: None) -> None:
    """Arm this process. `died` is told, just before the end, the place and the step."""
    steps = 0
    lock = threading.Lock()
    write, fsync = os.write, os.fsync

    def due(what: str) -> str:
        """Where this step is, if it is the last one of this process; '' else."""
        nonlocal steps
        places = places_of(sys._getframe(2))
        if not places or fuse.place not in ("any", *places):
            return ""
        with lock:
            steps += 1
            return f"{places[0]}: {what}" if steps == fuse.step else ""

    def die(where: str) -> None:
        died(where)
        kill(os.getpid(), with_children=fuse.with_git)
        time.sleep(60)  # the signal is on its way

    def on_event(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS and not (event == "open" and _writes(arguments)):
            return
        if where := due(event):
            if event == "subprocess.Popen" and fuse.delay:
                threading.Timer(fuse.delay, die, (where,)).start()
            else:
                die(where)

    def torn_write(handle: int, data: Any) -> int:
        if where := due("write"):
            write(handle, bytes(data)[: int(len(data) * fuse.torn)])
            die(where)
        return write(handle, data)

    def last_fsync(handle: int) -> None:
        if where := due("fsync"):
            die(where)
        fsync(handle)

    sys.addaudithook(on_event)
    os.write, os.fsync = torn_write, last_fsync


def places_of(frame: FrameType | None) -> list[str]:
    """The places that the functions of this stack stand for, the innermost first."""
    places = []
    while frame:
        name = (frame.f_globals.get("__name__", ""), frame.f_code.co_name)
        if name in _RECEIVING:
            # The writes of a message that closes a slice, and those of the command that does.
            places.append("boundary" if frame.f_locals.get("closed") else "receive")
        elif name in _OF_FUNCTION:
            places.append(_OF_FUNCTION[name])
        frame = frame.f_back
    return places


def kill(pid: int, *, with_children: bool) -> None:
    """SIGKILL the process, and with it all that it has started, found before any of them can go on."""
    found = descendants(pid) if with_children else []
    for child in found:
        _signal(child, signal.SIGKILL)
    _signal(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The processes below this one, as /proc shows them."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, task.read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [*children, *(below for child in children for below in descendants(child))]


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, _, flags = arguments
    return bool(flags & _FOR_WRITING)

