"""`python -m tests.killing --trials 300`: trials, and a table of what they came to; exits 1 when a promise broke."""

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.killing import direct, served
from tests.killing.fuse import PLACES
from tests.killing.results import Result, table
from tests.model_server.fixture import ModelServerProcess

WORDS_PER_SECOND = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.killing", description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--place", choices=("any", "time", *PLACES), default="any", help="any: each in its turn")
    parser.add_argument(
        "--stack",
        choices=("functions", "embedded", "redis"),
        default="functions",
        help="functions: a process that calls them; embedded: `serve`; redis: two web processes and two workers",
    )
    parser.add_argument("--broker", default="redis://127.0.0.1:6379/7", help="a database of its own for --stack redis")
    parser.add_argument("--seed", type=int, default=None, help="the same one gives the same work and the same steps")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    places = ("time", *PLACES) if options.place == "any" else (options.place,)
    plan = list(itertools.islice(itertools.cycle(places), options.trials))
    place = Path(tempfile.mkdtemp(prefix="previously-killing-"))
    print(f"{options.trials} trials, {options.stack}, seed {seed}, in {place}", flush=True)
    model = ModelServerProcess(words_per_second=WORDS_PER_SECOND)
    began = time.monotonic()
    try:
        if options.stack == "functions":
            results = list(_shown(direct.trials(place, model, plan, seed)))
        else:
            broker = options.broker if options.stack == "redis" else ""
            results = list(_shown(served.trials(place, model, plan, seed, broker=broker)))
    finally:
        model.stop()
    print(table(results))
    print(f"{time.monotonic() - began:.0f} s")
    broken = any(result.broken for result in results)
    if not broken:
        place.rmdir()
    return 1 if broken else 0


def _shown(results: Iterator[Result]) -> Iterator[Result]:
    for result in results:
        if result.broken:
            print(f"trial {result.number} ({result.place}, {result.died}), kept in {result.kept}:", flush=True)
            print("\n".join(f"    {line}" for line in result.broken), flush=True)
        yield result


if __name__ == "__main__":
    sys.exit(main())
