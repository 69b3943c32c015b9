"""What is left when everybody has been at a folder, and the looking whether it is whole."""

import time
from collections import Counter
from collections.abc import Callable

from memory.folder.paths import CARD, slice_ids
from memory.folder.slices import Slice
from tests.conversation.talk import Talk


def slices_of(talk: Talk) -> list[Slice]:
    return [talk.slice(slice_id) for slice_id in slice_ids(talk.folder.root)]


def texts(talk: Talk) -> Counter[str]:
    """How often each text of the person is there."""
    return Counter(entry.content for found in slices_of(talk) for entry in found.person_entries)


def finish(talk: Talk) -> None:
    """Sweep until nothing is due, then look whether every turn has one reply and one commit."""
    for _ in range(100):
        if not talk.sweep():
            break
    for found in slices_of(talk):
        keys = Counter(entry.key for entry in found.entries)
        assert set(keys.values()) == {1}
        assert {turn_id for turn_id, role in keys if role == "agent"} == {one.turn_id for one in found.person_entries}
    turns = Counter(subject.split()[1].rstrip(":") for subject in talk.subjects() if subject.startswith("turn "))
    assert set(turns.values()) <= {1}
    assert len(turns) == sum(texts(talk).values())
    talk.check_sound()


def working(talk: Talk, seconds: float = 20.0) -> Callable[[], None]:
    """A worker that sweeps until nothing has been due for a while."""

    def work() -> None:
        quiet_since = began = time.monotonic()
        while time.monotonic() - quiet_since < 0.5 and time.monotonic() - began < seconds:
            if talk.sweep():
                quiet_since = time.monotonic()
            time.sleep(0.01)

    return work


def finish_index(talk: Talk) -> None:
    """Sweep until nothing is due; the work tree equals HEAD but for the card that the person edits."""
    for _ in range(10):
        if not talk.sweep():
            break
    assert {line[3:] for line in talk.git("status", "--porcelain").splitlines()} <= {CARD}
    talk.git("fsck", "--strict", "--full")
