"""Seconds of wall clock and of CPU, and the floor under a flushed message: the same bytes appended and flushed bare."""

import os
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """One measured call, in seconds; `cpu` is this thread's and that of the processes it started and waited for."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Samples:
    """The same call, measured several times."""

    all: tuple[Sample, ...]

    @property
    def wall(self) -> float:
        """The median wall clock time."""
        return statistics.median(sample.wall for sample in self.all)

    @property
    def cpu(self) -> float:
        """The median CPU time."""
        return statistics.median(sample.cpu for sample in self.all)

    @property
    def p95(self) -> float:
        """The wall clock time that 95 of 100 stayed below."""
        return percentile((sample.wall for sample in self.all), 0.95)


class Watch:
    """Takes samples: `with watch.one(): …`."""

    def __init__(self) -> None:
        self.taken: list[Sample] = []

    @contextmanager
    def one(self) -> Iterator[None]:
        cpu, wall = _cpu(), time.perf_counter()
        yield
        wall, cpu = time.perf_counter() - wall, _cpu() - cpu
        self.taken.append(Sample(wall, cpu))

    @property
    def samples(self) -> Samples:
        return Samples(tuple(self.taken))


def repeated(call: Callable[[], object], times: int) -> Samples:
    """The call measured so many times, after one that warms up."""
    watch = Watch()
    call()
    for _ in range(times):
        with watch.one():
            call()
    return watch.samples


def append_and_flush(place: Path, data: bytes) -> float:
    """Seconds to append the bytes to a file on the disk of `place` and flush it: no message can cost less."""
    handle = os.open(place / "floor", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        begun = time.perf_counter()
        os.write(handle, data)
        os.fsync(handle)
        return time.perf_counter() - begun
    finally:
        os.close(handle)


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cpu_of(pid: int) -> float:
    """CPU seconds that a process and the children it waited for have used; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Resident megabytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def ms(seconds: float) -> str:
    """`3.1 ms`."""
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:,.0f} ms"


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + children.ru_utime + children.ru_stime
