"""A person talking in a folder of their own: real receive, real answer, real git, a clock that is set by hand."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.conversation.answer import answer
from memory.conversation.close import run_step, take_up
from memory.conversation.companion import Companion
from memory.conversation.due import Answer, Close, Job, Settle, due
from memory.conversation.person import Person
from memory.conversation.receive import Ended, NothingOpen, Received, receive
from memory.conversation.settle import renew_strands, settle
from memory.folder import todo
from memory.folder.closing import Limits
from memory.folder.paths import agent_file, core_file
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Places

BEGIN = datetime(2026, 8, 10, 21, 30, 22, 811000, tzinfo=UTC)


class Talk:
    """Alice's page and her worker. `shown` is what the page shows; `clock` is moved by the tests alone."""

    def __init__(self, place: Path, companion: Companion | None = None, **person: object) -> None:
        self.folder = MemoryFolder(
            Places(root=place / "folders" / "alice", run=place / "run" / "alice", pending=place / "pending" / "alice")
        )
        self.folder.root.parent.mkdir(parents=True, exist_ok=True)
        self.companion = companion or Companion(model=None)
        alice = Person(name="Alice", language="en", timezone="Asia/Shanghai", limits=Limits())
        self.person = replace(alice, **person)  # type: ignore[arg-type]
        self.clock = BEGIN
        self.shown: list[str] = []
        self.jobs: list[Job] = []

    def later(self, **by: float) -> None:
        """Move the clock."""
        self.clock += timedelta(**by)

    def receive(self, text: str, *, turn_id: str = "", seen: list[str] | None = None) -> Received:
        """The page sends a message; what is shown afterwards is what a page would show."""
        taken = self.command(text, turn_id=turn_id, seen=seen)
        assert isinstance(taken, Received)
        self.shown = [taken.turn_id] if taken.closed else [*self.shown, taken.turn_id]
        return taken

    def command(self, text: str, *, turn_id: str = "", seen: list[str] | None = None) -> Received | Ended | NothingOpen:
        """The page sends something, whatever becomes of it."""
        return receive(
            self.folder,
            text,
            turn_id=turn_id,
            seen=self.shown if seen is None else seen,
            person=self.person,
            now=self.clock,
        )

    def answer(self, taken: Received, *, clock: Callable[[], datetime] | None = None) -> None:
        """The worker gets the task of this turn."""
        answer(
            self.folder,
            taken.slice_id,
            taken.turn_id,
            companion=self.companion,
            person=self.person,
            clock=clock or (lambda: self.clock),
            enqueue=self.jobs.append,
        )

    def say(self, text: str, **how: object) -> Received:
        """A message and its reply."""
        taken = self.receive(text, **how)  # type: ignore[arg-type]
        self.later(seconds=2)
        self.answer(taken)
        return taken

    def reload(self) -> None:
        """A fresh page shows an empty live conversation."""
        self.shown = []

    def sweep(self) -> list[Job]:
        """Do whatever is due now, as the sweep would have it done; the jobs."""
        jobs = due(self.folder, self.clock)
        for job in jobs:
            if isinstance(job, Close):
                take_up(self.folder, job.slice_id)
            self._do(job)
        return jobs

    def work(self) -> None:
        """Do all that is due now, as the tasks do that are enqueued when a message arrives."""
        while jobs := due(self.folder, self.clock):
            for job in jobs:
                self._do(job)

    def end(self) -> None:
        """The person ends the slice, and the worker does what follows from that."""
        assert isinstance(self.command("/close"), Ended)
        self.reload()
        self.work()

    def _do(self, job: Job) -> None:
        match job:
            case Answer(slice_id, turn_id):
                self.answer(Received(slice_id=slice_id, turn_id=turn_id, at=self.clock, existed=True))
            case Close(slice_id, step):
                self.close_pass(slice_id, step)
            case Settle():
                renew_strands(self.folder, now=self.clock)
                settle(self.folder, now=self.clock)

    def close_pass(self, slice_id: str, step: str = todo.ANALYSE_CLOSE) -> None:
        """Run a close pass from this step on, as the worker's tasks do one after the other."""
        for name in todo.STEPS[todo.STEPS.index(step) :]:
            self.step(slice_id, name)

    def step(self, slice_id: str, name: str) -> bool:
        """Run one step of a close pass; whether it was its turn."""
        return run_step(
            self.folder, slice_id, name, companion=self.companion, person=self.person, now=self.clock
        )

    def slice(self, slice_id: str) -> Slice:
        return self.folder.slice(slice_id)

    def core(self, slice_id: str) -> Path:
        """The path of a slice's core.md."""
        return self.folder.root / core_file(slice_id)

    def agent(self, slice_id: str) -> Path:
        """The path of a slice's agent.md."""
        return self.folder.root / agent_file(slice_id)

    def git(self, *arguments: str) -> str:
        """What the person's own git prints, run in the folder as they would."""
        return subprocess.run(
            ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.org", *arguments],
            cwd=self.folder.root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def subjects(self) -> list[str]:
        """The subjects of all commits, oldest first."""
        return self.git("log", "--reverse", "--format=%s").splitlines()

    def check_sound(self) -> None:
        """Git finds nothing to complain of and nothing to commit."""
        assert self.git("status", "--porcelain") == ""
        self.git("fsck", "--strict", "--full")
