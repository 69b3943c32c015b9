"""`python -m tests.benchmarks.run`: measures everything and prints one Markdown table.

Folders come from a cache directory, and everything happens in copies of them. Times are medians. CPU is what to
compare on a machine that does other things as well; wall clock times then say little.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memory.folder.store import MemoryFolder
from tests.benchmarks import accepting, committing, stack, turns
from tests.benchmarks.measure import ms
from tests.benchmarks.seed import copy_to, seed_benchmark, sizes_of
from tests.benchmarks.table import Row, markdown, size
from tests.model_server.fixture import ModelServerProcess

PARTS = ("accepted", "commit", "pages", "turn", "redis")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.run", description=__doc__)
    parser.add_argument("--sizes", default="100,10000,36500")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "previously-benchmarks")
    options = parser.parse_args()
    only = options.only.split(",")
    if unknown := set(only) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    sizes = sizes_of(options.sizes)
    options.cache.mkdir(parents=True, exist_ok=True)
    seeded = [seed_benchmark(options.cache, slices) for slices in sizes]
    work = Path(tempfile.mkdtemp(prefix="work-", dir=options.cache))
    model = turns.told_model(ModelServerProcess())
    try:
        settings = {"PREVIOUSLY_MODEL_URL": model.url, "PREVIOUSLY_MODEL": "talker"}
        stack.open_data(work / "data", settings)
        people = {}
        for one in seeded:
            print(f"copying {size(one.slices)} slices", file=sys.stderr)
            people[one.slices] = Person(one.slices)
            copy_to(one, people[one.slices].places)
        rows = []
        for row in _rows(people, only, work / "data", settings, model):
            rows.append(row)
            print(f"{row.slices}: {row.what}: {row.measured}", file=sys.stderr, flush=True)
    finally:
        model.stop()
        shutil.rmtree(work)
    load = "{:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg())
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} {platform.machine()}; "
          f"load average at the end {load}\n")  # fmt: skip
    print(markdown(rows))


class Person:
    """An account with the folder of one size."""

    def __init__(self, slices: int) -> None:
        from memory import access

        self.slices = slices
        self.user: Any = stack.make_person(f"Alice-{slices}")
        self.session = stack.sign_in(self.user)
        self.places = access.places(str(self.user.pk))
        self.folder: MemoryFolder = access.folder_of(self.user)


def _rows(
    people: dict[int, Person], only: list[str], data: Path, settings: dict[str, str], model: ModelServerProcess
) -> Iterable[Row]:
    if "accepted" in only:
        found = {}
        for slices, person in people.items():
            found[slices] = accepting.accepted(person.folder)
            yield from (one.row(slices) for one in found[slices])
            yield accepting.while_closing(person.folder, slices)
        yield from accepting.flatness(found)
    if "commit" in only:
        made = {}
        start = committing.process_start()
        yield Row(what="starting git at all", slices="", measured=f"wall {ms(start.wall)}, CPU {ms(start.cpu)}")
        for slices, person in people.items():
            rows, made[slices] = committing.commits(person.folder, slices)
            yield from rows
            yield from committing.closes(person.folder, slices)
        yield from committing.flatness(made)
    if "pages" in only:
        from tests.benchmarks import pages

        queries = {}
        for slices, person in people.items():
            rows, queries[slices] = pages.pages(person.user, slices)
            yield from rows
            yield from pages.posts(person.user, slices)
        yield pages.constant_queries(queries)
    took = turns.model_seconds(model)
    for part, serve, how, limit in (
        ("turn", stack.embedded, "embedded", 0.06),
        ("redis", stack.separate, "Redis, web and worker apart", 0.04),
    ):
        if part not in only:
            continue
        with serve(data, settings) as running:
            for slices, person in people.items():
                yield from turns.whole_turns(
                    running, person.session, slices, model_seconds=took, how=how, first_limit=limit
                )


if __name__ == "__main__":
    main()
