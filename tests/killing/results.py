"""What the trials came to."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Result:
    """One trial: where the process was to die and did, how many messages it had acknowledged, what was broken."""

    number: int
    place: str
    died: str
    acknowledged: int
    broken: tuple[str, ...]
    kept: Path
    """Where the folder is, if anything was broken."""


def table(results: Iterable[Result]) -> str:
    """One line a place: trials, of them killed at a chosen step, messages acknowledged, broken promises."""
    by_place: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_place[result.place].append(result)
    by_place["all"] = [result for found in list(by_place.values()) for result in found]
    rows = [f"{'place':<10} {'trials':>7} {'at a step':>10} {'acknowledged':>13} {'broken':>7}"]
    for place, found in by_place.items():
        at_step = sum(":" in result.died for result in found)
        acknowledged = sum(result.acknowledged for result in found)
        broken = sum(bool(result.broken) for result in found)
        rows.append(f"{place:<10} {len(found):>7} {at_step:>10} {acknowledged:>13} {broken:>7}")
    return "\n".join(rows)
