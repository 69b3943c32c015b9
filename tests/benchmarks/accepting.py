"""How long it takes to take in a message: its words are on the disk when `receive` returns."""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory.conversation.analyse import analyse_turn
from memory.conversation.close import run_step
from memory.conversation.companion import Companion
from memory.conversation.person import Person
from memory.conversation.receive import Received, end_slice, receive
from memory.conversation.recording import record
from memory.conversation.settle import settle
from memory.folder import todo
from memory.folder.closing import Limits
from memory.folder.cognition import Block
from memory.folder.paths import new_turn_id
from memory.folder.store import MemoryFolder
from tests.benchmarks.measure import Samples, Watch, append_and_flush, ms, percentile
from tests.benchmarks.table import Row, size

BEGIN = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
ALICE = Person(name="Alice", language="en", timezone="Europe/Lisbon", limits=Limits(120, 100))
SAID = "Thanks, that helps. I will do the first part tomorrow and tell you how it went. " * 3
NO_MODEL = Companion(model=None)
REPLY = "Good. Take the smallest piece first, and look at the rest when it is done.\n\n" * 6
TIMES = 30


class Talking:
    """Alice talks in a folder with a clock of its own, which goes on from where it was left."""

    def __init__(self, folder: MemoryFolder, now: datetime = BEGIN) -> None:
        self.folder = folder
        self.now = now
        self.shown: list[str] = []

    def say(self, text: str = SAID) -> Received:
        taken = receive(self.folder, text, turn_id=new_turn_id(), seen=self.shown, person=ALICE, now=self.now)
        assert isinstance(taken, Received)
        self.shown.append(taken.turn_id)
        return taken

    def hear(self, taken: Received, text: str = REPLY) -> None:
        """The reply is recorded."""
        self.now += timedelta(seconds=20)
        block = Block(turn_id=taken.turn_id, at=self.now, thinking="First say what has been reached.")
        record(self.folder, taken.slice_id, taken.turn_id, text, block, now=self.now)
        self.now += timedelta(seconds=20)

    def analyse(self, taken: Received) -> None:
        """The turn gets its tags, which are woven."""
        analyse_turn(self.folder, taken.slice_id, taken.turn_id, companion=NO_MODEL, person=ALICE, now=self.now)

    def settle(self) -> None:
        settle(self.folder, now=self.now)

    def turn(self, text: str = SAID) -> Received:
        """A whole turn, committed."""
        taken = self.say(text)
        self.hear(taken)
        self.settle()
        return taken

    def begin(self) -> None:
        """A first turn in a slice that goes on; what this closed behind it is left alone."""
        self.turn()
        self.forget_close_work()

    def end(self) -> str:
        """The slice is over; its id. The next message opens another."""
        ended = end_slice(self.folder, None, person=ALICE, now=self.now)
        self.now += timedelta(hours=1)
        return ended.closed.slice_id  # type: ignore[union-attr]

    def close_step(self, slice_id: str, step: str) -> None:
        """One step of the close pass of a slice, with no model."""
        assert run_step(self.folder, slice_id, step, companion=NO_MODEL, person=ALICE, now=self.now)

    def forget_close_work(self) -> None:
        """Leave it undone: what a pass costs is measured elsewhere."""
        self.folder.state.save_todo([])
        self.settle()


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Messages taken in, with the bare floor of the same bytes taken between them."""

    what: str
    samples: Samples
    floor: float
    cpu_limit: float
    floors: int

    @property
    def wall_limit(self) -> float:
        return self.samples.cpu + self.floors * self.floor

    def row(self, slices: int) -> Row:
        taken = self.samples
        return Row(
            what=f"message accepted, {self.what}",
            slices=size(slices),
            measured=f"CPU {ms(taken.cpu)}, wall {ms(taken.wall)}, append + fsync {ms(self.floor)}, "
            f"wall {taken.wall / self.floor:.1f} × that",
            limit=f"CPU ≤ {ms(self.cpu_limit)}, wall ≤ CPU + {self.floors} × append + fsync = {ms(self.wall_limit)}",
            held=taken.cpu <= self.cpu_limit and taken.wall <= self.wall_limit,
        )


def accepted(folder: MemoryFolder, *, times: int = TIMES) -> list[Accepted]:
    """An open slice, the first message of one, and one that closes the slice before it."""
    talking = Talking(folder)
    opened, first, closing = Watch(), Watch(), Watch()
    floors: list[float] = []
    talking.begin()
    for number in range(times):
        if number % 20 == 19:
            talking.end()
            talking.forget_close_work()
            talking.turn()
        with opened.one():
            taken = talking.say()
        floors.append(_floor(folder))
        talking.hear(taken)
        talking.settle()
    for _ in range(times):
        talking.end()
        talking.forget_close_work()
        with first.one():
            taken = talking.say()
        floors.append(_floor(folder))
        talking.hear(taken)
        talking.settle()
        talking.now += timedelta(hours=3)
        with closing.one():
            taken = talking.say()
        assert taken.closed
        floors.append(_floor(folder))
        talking.hear(taken)
        talking.forget_close_work()
    floor = percentile(floors, 0.5)
    return [
        Accepted(what="open slice", samples=opened.samples, floor=floor, cpu_limit=0.005, floors=4),
        Accepted(what="first of a slice", samples=first.samples, floor=floor, cpu_limit=0.008, floors=8),
        Accepted(what="with a close", samples=closing.samples, floor=floor, cpu_limit=0.012, floors=14),
    ]


def while_closing(folder: MemoryFolder, slices: int) -> Row:
    """Messages into an open slice while the close pass of the one before runs in the same process."""
    talking = Talking(folder, BEGIN + timedelta(days=40))
    talking.begin()
    talking.turn("Something new to file, #benchmark")
    closed = talking.end()
    talking.settle()
    talking.turn()
    quiet, busy = Watch(), Watch()
    for _ in range(15):
        with quiet.one():
            talking.say()
    begun = threading.Event()

    def close() -> None:
        begun.set()
        for step in todo.STEPS:
            talking.close_step(closed, step)

    worker = threading.Thread(target=close)
    worker.start()
    begun.wait()
    while worker.is_alive() and len(busy.taken) < 80:
        with busy.one():
            talking.say()
        worker.join(0.01)
    worker.join()
    taken = busy.samples
    return Row(
        what="message accepted while a close runs (one process)",
        slices=size(slices),
        measured=f"median {ms(taken.wall)}, p95 {ms(taken.p95)}, worst {ms(max(one.wall for one in taken.all))} "
        f"of {len(taken.all)}; before it {ms(quiet.samples.wall)}",
        limit=f"p95 ≤ 2 × median = {ms(2 * taken.wall)}",
        held=taken.p95 <= 2 * taken.wall,
    )


def flatness(found: dict[int, list[Accepted]]) -> list[Row]:
    """Whether size matters: the same message in the smallest and in larger folders."""
    smallest, *larger = sorted(found)
    rows = []
    for number, base in enumerate(found[smallest]):
        for slices in larger:
            ratio = found[slices][number].samples.cpu / base.samples.cpu
            rows.append(
                Row(
                    what=f"message accepted, {base.what}: CPU against {size(smallest)} slices",
                    slices=size(slices),
                    measured=f"{ratio:.2f} ×",
                    limit="≤ 1.2 ×",
                    held=ratio <= 1.2,
                )
            )
    return rows


def _floor(folder: MemoryFolder) -> float:
    return append_and_flush(folder.state.directory, f"## Turn mVhV2g — 2026-08-10 (user)\n\n{SAID}\n".encode())
