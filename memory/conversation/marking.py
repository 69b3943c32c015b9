"""analyse_close: a closed slice gets its marks from the model, each field with the floor's under it.

A slice that has the floor's marks waits for better ones; one that has a model's is left alone, so that a step delivered
twice, or a hand edit, is not overwritten.
"""

from dataclasses import replace
from typing import TypeVar

from memory.conversation import analyzer
from memory.conversation.analyzer import CloseMarks
from memory.conversation.companion import Companion
from memory.conversation.person import Person
from memory.folder import cognition, rewriting
from memory.folder.errors import Damaged
from memory.folder.marks import is_floor_summary
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Write
from memory.folder.strands import Merges, Strands, follow, normalise
from memory.folder.touched import close_owner
from memory.llm.structured import Failure

MOST_RELATED = 5
UNUSABLE = Failure(reason="no_summary", reached=True)

T = TypeVar("T")


def waits_for_marks(found: Slice | None) -> bool:
    """Whether a model may still give this slice its marks: it has the floor's summary, or none at all."""
    return found is not None and not found.active and (found.dry or is_floor_summary(found.summary))


def mark(folder: MemoryFolder, slice_id: str, *, companion: Companion, person: Person) -> bool:
    """Mark the slice that has just closed, related slices included; whether it is worth remembering.

    Whatever the model does the slice keeps at least the floor. Raises NotThere, Damaged, LockTimeout.
    """
    owner = close_owner(slice_id)
    mark_anew(folder, slice_id, companion=companion, person=person, owner=owner, kind="close")
    woven = _strands(folder)
    recalled = cognition.recalled_paths(folder.agent_text(slice_id))

    def writes(data: bytes, found: Slice) -> list[Write]:
        related = _related(found, recalled, woven, _merges(folder))
        if related == found.related_slices:
            return []
        return rewriting.writes(folder, data, found, front=replace(found, related_slices=related))

    with folder.files_lock(timeout=30.0):
        rewriting.change(folder, slice_id, writes, owner=owner)
    found = folder.slice(slice_id)
    return bool(found.tags or found.open_loops or found.decisions)


def mark_anew(
    folder: MemoryFolder, slice_id: str, *, companion: Companion, person: Person, owner: str, kind: str
) -> Failure | None:
    """Ask the model for the marks of a slice that waits for some, and write what is sound; None when it has them now.

    Of a slice that is backfilled (`kind` 'backfill') the open loops and decisions stay: they are long past.
    """
    asked = folder.slice(slice_id)
    if companion.model is None or not waits_for_marks(asked):
        return None
    marks = analyzer.analyse_close(
        companion.model,
        asked,
        strands=_strands(folder),
        merges=_merges(folder),
        person=person,
        kind=kind,
        called=companion.called,
    )
    if isinstance(marks, Failure):
        return marks

    def writes(data: bytes, found: Slice) -> list[Write]:
        if not waits_for_marks(found):
            return []
        return rewriting.writes(folder, data, found, front=_marked(found, asked, marks, whole=kind != "backfill"))

    with folder.files_lock(timeout=30.0):
        rewriting.change(folder, slice_id, writes, owner=owner)
    return UNUSABLE if waits_for_marks(folder.slice(slice_id)) else None


def _marked(found: Slice, asked: Slice, marks: CloseMarks, *, whole: bool) -> Slice:
    """The slice with the marks that could be used, the others as they are.

    What changed since the model was asked about the slice as `asked` stays: a text that a person wrote, and items that
    the late analysis of a last turn added.
    """

    return replace(
        found,
        focus=_newer(found.focus, asked.focus, marks.focus),
        summary=_newer(found.summary, asked.summary, marks.summary),
        tags=_with_added(found.tags, asked.tags, marks.tags),
        emotional_tone=_newer(found.emotional_tone, asked.emotional_tone, marks.emotional_tone),
        open_loops=_with_added(found.open_loops, asked.open_loops, marks.open_loops if whole else None),
        decisions=_with_added(found.decisions, asked.decisions, marks.decisions if whole else None),
    )


def _newer(now: T, before: T, new: T | None) -> T:
    return now if new is None or now != before else new


def _with_added(now: tuple[str, ...], before: tuple[str, ...], new: tuple[str, ...] | None) -> tuple[str, ...]:
    return now if new is None else tuple(dict.fromkeys((*new, *(item for item in now if item not in before))))


def _related(found: Slice, recalled: tuple[str, ...], woven: Strands, merges: Merges) -> tuple[str, ...]:
    """At most 5 slice paths: those recalled in this slice, then those that share most strands with it, newest first."""
    shared: dict[str, int] = {}
    for key in {follow(normalise(tag), merges) for tag in found.tags}:
        for path in woven.get(key, ()):
            shared[path] = shared.get(path, 0) + 1
    by_strands = sorted(sorted(shared, reverse=True), key=lambda path: -shared[path])
    paths = dict.fromkeys((*recalled, *by_strands))
    return tuple(path for path in paths if path < found.path)[:MOST_RELATED]


def _strands(folder: MemoryFolder) -> Strands:
    try:
        return folder.strands()
    except Damaged:
        return {}  # corrupt; set aside and made again when strands are consolidated


def _merges(folder: MemoryFolder) -> Merges:
    try:
        return folder.merges()
    except Damaged:
        return {}  # corrupt; strands stay as they are until it is mended, but a slice has its marks
