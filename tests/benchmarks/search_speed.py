"""How fast the search index answers and takes a turn, in CPU time of one core, at 1,000, 10,000 and 36,500 slices.

    python -m tests.benchmarks.search_speed [--sizes 1000,10000,36500] [--questions 300] [--keep DIRECTORY]

The text is made up: words of a Zipf-like frequency, seasons of talk about the same topics, a fifth of the slices in
Chinese. The documents are the product's own, made from slices as the format has them; only git takes no part, so that
years fit into a minute.
"""

import argparse
import itertools
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.folder.closing import close
from memory.folder.paths import slice_id_at
from memory.folder.search import SearchIndex, database
from memory.folder.search.building import fill
from memory.folder.search.document import Document, document
from memory.folder.slices import Slice
from memory.folder.turns import Entry, Role

FIRST = datetime(2023, 1, 1, 7, 5, tzinfo=UTC)
FUNCTION_WORDS = "the a to of and i you it is was that in for on my we have with this but"
ENTRIES = 22
"""Entries of a slice on average; so 36,500 slices have about 800,000."""


class Talk:
    """Made-up talk: the same for the same seed."""

    def __init__(self, seed: int = 20230101) -> None:
        self.random = random.Random(seed)
        vowels, consonants = "aeiou", "bcdfghklmnprstvw"
        syllables = [c + v for c in consonants for v in vowels]
        self.words = ["".join(self.random.choices(syllables, k=self.random.randint(1, 4))) for _ in range(60_000)]
        self.words = list(dict.fromkeys(self.words))
        # Zipf's law, flattened at the top as if the stop words were gone already; half of all text is stop words.
        self.weights = list(itertools.accumulate(1 / (rank + 8) for rank in range(len(self.words))))
        self.function_words = FUNCTION_WORDS.split()
        self.han = [chr(0x4E00 + number * 7) for number in range(2_800)]
        self.han_weights = list(itertools.accumulate(1 / (rank + 20) for rank in range(len(self.han))))
        self.topics = [self._words(40) for _ in range(400)]

    def _words(self, count: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.weights, k=count)

    def sentence(self, topic: list[str], count: int) -> str:
        """English: half function words, a seventh about the topic."""
        chosen = []
        for word in self._words(count):
            luck = self.random.random()
            if luck < 0.5:
                chosen.append(self.random.choice(self.function_words))
            else:
                chosen.append(self.random.choice(topic) if luck < 0.64 else word)
        return " ".join(chosen).capitalize() + "."

    def han_sentence(self, count: int) -> str:
        return "".join(self.random.choices(self.han, cum_weights=self.han_weights, k=count)) + "。"

    def slices(self, count: int) -> Iterator[Slice]:
        """So many closed slices, ten a day, with the floor marks they would have without a model."""
        for number in range(count):
            start = FIRST + timedelta(minutes=144 * number)
            topic = self.topics[(number // 30 + self.random.randint(0, 12)) % len(self.topics)]
            entries = []
            for place in range(self.random.randint(ENTRIES // 2, ENTRIES * 3 // 2)):
                length = self.random.randint(4, 30) if place % 2 == 0 else self.random.randint(12, 60)
                text = self.han_sentence(length) if number % 5 == 0 else self.sentence(topic, length)
                role: Role = "user" if place % 2 == 0 else "agent"
                entries.append(Entry(f"t{place // 2:05d}", start + timedelta(seconds=50 * place), role, text))
            opened = Slice(slice_id=slice_id_at(start), status="active", start=start, entries=tuple(entries))
            yield close(replace(opened, tags=tuple(topic[:2])), by="time_cap", language="en")

    def question(self) -> str:
        """As people ask: some words of one topic and some of none, in a third of the questions a date."""
        kind = self.random.random()
        if kind < 0.2:
            return self.han_sentence(self.random.randint(2, 9))
        words = [*self.random.choices(self.random.choice(self.topics), k=self.random.randint(1, 4)), *self._words(3)]
        date = FIRST + timedelta(days=self.random.randint(0, 3000))
        named = "" if kind < 0.67 else self.random.choice([f" on {date:%d %B %Y}", f" in {date:%B %Y}", " last week"])
        return f"What did you say about the {' '.join(words)}{named}?"


def filled(file: Path, count: int) -> float:
    """Make an index of so many slices; the CPU seconds, those of making up the text left out."""
    talking = 0.0

    def documents() -> Iterator[Document]:
        nonlocal talking
        slices = Talk().slices(count)
        for _ in range(count):
            begun = time.process_time()
            slice_ = next(slices)
            talking += time.process_time() - begun
            yield document(slice_)

    spent = _cpu(lambda: fill(file, documents(), commit=None, loose=frozenset()))
    return spent - talking


def _cpu(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def measure(place: Path, count: int, questions: int) -> str:
    """One row of the table."""
    index = SearchIndex(place / f"{count}.sqlite3")
    building_seconds = None if index.file.exists() else filled(index.file, count)
    with closing(database.open_(index.file)) as opened:
        entries = database.totals(opened).entries
    talk = Talk(7)
    now = FIRST + timedelta(minutes=144 * count)
    asked = [talk.question() for _ in range(questions)]
    for question in asked[:20]:
        index.search(question, now=now, timezone="UTC")
    times = sorted(_cpu(lambda q=question: index.search(q, now=now, timezone="UTC")) for question in asked)
    replaced = sorted(
        _cpu(lambda growing=growing: index.replace(growing))
        for slice_ in Talk(9).slices(10)
        for growing in _grown(slice_, now)
    )
    size = index.file.stat().st_size / 1e6
    building = "not made now" if building_seconds is None else f"{1000 * building_seconds / count:.2f}"
    return (
        f"| {count:,} | {entries:,} | {1000 * statistics.median(times):.1f} | {1000 * _p95(times):.1f} "
        f"| {1000 * statistics.median(replaced):.1f} | {1000 * _p95(replaced):.1f} "
        f"| {building} | {size:.0f} |"
    )


def _grown(slice_: Slice, now: datetime) -> Iterator[Slice]:
    """A slice of now after each of its turns."""
    open_now = replace(slice_, slice_id=slice_id_at(now), start=now, status="active", end=None, focus="", summary="")
    for count in range(2, len(slice_.entries) + 1, 2):
        yield replace(open_now, entries=slice_.entries[:count])


def _p95(ascending: list[float]) -> float:
    return ascending[int(0.95 * (len(ascending) - 1))]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,36500")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this directory, and use those that are there")
    options = parser.parse_args()
    place = options.keep or Path(tempfile.mkdtemp(prefix="search-speed-"))
    place.mkdir(parents=True, exist_ok=True)
    print("| slices | entries | query p50 ms | p95 ms | replace p50 ms | p95 ms | building, ms a slice | MB |")
    print("|---" * 8 + "|")
    try:
        for size in options.sizes.split(","):
            print(measure(place, int(size), options.questions), flush=True)
    finally:
        if options.keep is None:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
