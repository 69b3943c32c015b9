"""What the worker does with a turn and with a slice that closed: commits, strands, index, and what that leaves."""

import subprocess
from datetime import timedelta

from memory.conversation.due import has_ended
from memory.folder import todo
from memory.folder.commits import commit_ready, refresh_index
from memory.folder.store import MemoryFolder
from tests.benchmarks.accepting import BEGIN, Talking
from tests.benchmarks.measure import Samples, Watch, ms, repeated
from tests.benchmarks.table import Row, size

TIMES = 20
CLOSES = 12


def commits(folder: MemoryFolder, slices: int, *, times: int = TIMES) -> tuple[list[Row], Samples]:
    """Commits of turns that gain no strand, which are returned as well, and of turns that do."""
    talking = Talking(folder, BEGIN + timedelta(days=80))
    talking.begin()
    plain, strand, index, analysis = Watch(), Watch(), Watch(), Watch()
    for _ in range(times):
        taken = talking.say("That is all for now, thank you.")
        talking.hear(taken)
        with analysis.one():
            talking.analyse(taken)
        with plain.one():
            _commit(talking)
        with index.one():
            assert refresh_index(folder)
    for number in range(times):
        taken = talking.say(f"Also: #topic-{number}")
        talking.hear(taken)
        with strand.one():
            talking.analyse(taken)
            _commit(talking)
        assert refresh_index(folder)
    no_strand, gained = plain.samples, strand.samples
    kept = f"{len(folder.strands()):,} strands"
    rows = [
        Row(
            what="commit of a turn, no strand gained",
            slices=size(slices),
            measured=f"wall {ms(no_strand.wall)}, CPU {ms(no_strand.cpu)}",
            limit="≤ 25.0 ms",
            held=no_strand.wall <= 0.025,
        ),
        Row(
            what=f"weave and commit of a turn, a strand gained ({kept})",
            slices=size(slices),
            measured=f"wall {ms(gained.wall)}, CPU {ms(gained.cpu)}",
            limit="≤ 400 ms",
            held=gained.wall <= 0.4,
        ),
        _beside("analysis of a turn that gains no strand", slices, analysis.samples),
        _beside("index refresh after a commit", slices, index.samples),
    ]
    return rows, no_strand


def closes(folder: MemoryFolder, slices: int, *, times: int = CLOSES) -> list[Row]:
    """The mechanical close, the close pass behind it, and the disk that turns take.

    The disk is that of the second half: the first makes the young pack which later ones are folded into, and with it
    a whole copy of strands.json that would count for turns still to come.
    """
    talking = Talking(folder, BEGIN + timedelta(days=120))
    talking.begin()
    mechanical, status = Watch(), Watch()
    steps = {name: Watch() for name in todo.STEPS}
    turns = before = 0
    for number in range(times):
        if number == times // 2:
            turns, before = 0, _git_bytes(folder)
        for turn in range(5):
            taken = talking.say(f"#subject-{number}" if turn == 0 else "And then, after a while, it went on like that.")
            talking.hear(taken)
            talking.analyse(taken)
            talking.settle()
            turns += 1
        with mechanical.one():
            closed = talking.end()
        for name, watch in steps.items():
            with watch.one():
                talking.close_step(closed, name)
        talking.forget_close_work()  # with floor marks it would be tried again later
    for _ in range(3):
        with status.one():
            subprocess.run(["git", "status", "--porcelain"], cwd=folder.root, check=True, capture_output=True)
    a_turn = (_git_bytes(folder) - before) / turns / 1024
    return [
        Row(
            what="close, mechanical part",
            slices=size(slices),
            measured=f"wall {ms(mechanical.samples.wall)}, CPU {ms(mechanical.samples.cpu)}",
            limit="≤ 50.0 ms",
            held=mechanical.samples.wall <= 0.05,
        ),
        *(_beside(f"close pass without a model: {name}", slices, watch.samples) for name, watch in steps.items()),
        _beside("`git status` by the person", slices, status.samples),
        Row(
            what=f"disk a turn after upkeep ({turns} turns)",
            slices=size(slices),
            measured=f"{a_turn:.1f} KB",
            limit="≤ 3 KB",
            held=a_turn <= 3,
        ),
    ]


def flatness(found: dict[int, Samples]) -> list[Row]:
    """Commits in the smallest folder against those in larger ones."""
    smallest, *larger = sorted(found)
    rows = []
    for slices in larger:
        ratio = found[slices].wall / found[smallest].wall
        rows.append(
            Row(
                what=f"commit of a turn, no strand gained: against {size(smallest)} slices",
                slices=size(slices),
                measured=f"{ratio:.2f} ×",
                limit="≤ 1.2 ×",
                held=ratio <= 1.2,
            )
        )
    return rows


def process_start() -> Samples:
    """What starting git costs here at all, as every commit and index refresh does."""
    return repeated(lambda: subprocess.run(["git", "--version"], check=True, capture_output=True), 20)


def _commit(talking: Talking) -> None:
    folder, now = talking.folder, talking.now
    with folder.files_lock():
        made = commit_ready(folder, lambda owner: has_ended(folder, owner, now), now=now)
    assert made


def _beside(what: str, slices: int, samples: Samples) -> Row:
    return Row(what=what, slices=size(slices), measured=f"wall {ms(samples.wall)}, CPU {ms(samples.cpu)}")


def _git_bytes(folder: MemoryFolder) -> int:
    files = (folder.root / ".git" / "objects").rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
