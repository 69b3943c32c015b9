"""After a reply: what the turn adds to its slice and to the strands, and what the person asked to have on their card.

The floor are existing strands that the person's words name, and `#hashtags`; the model's turn form comes on top, may
fail silently, and is asked for under no lock.
"""

import logging
from dataclasses import replace
from datetime import datetime
from itertools import islice

from memory.conversation import analyzer, card_changes
from memory.conversation.analyzer import TurnMarks
from memory.conversation.companion import Companion
from memory.conversation.person import Person
from memory.folder import derived, rewriting, strands, timeline, todo
from memory.folder.card import Card, parse_card
from memory.folder.card_edits import parse_operations
from memory.folder.errors import Damaged, FolderError, NotThere
from memory.folder.marks import floor_tags
from memory.folder.paths import CARD, STRANDS
from memory.folder.slices import MAX_ITEMS, Slice
from memory.folder.store import MemoryFolder, Write
from memory.folder.touched import turn_owner
from memory.llm.structured import Failure

EARLIER_SLICES = 10

log = logging.getLogger(__name__)


def analyse_turn(
    folder: MemoryFolder, slice_id: str, turn_id: str, *, companion: Companion, person: Person, now: datetime
) -> None:
    """Add the turn's marks to its slice, weave its tags, apply the card changes asked for in it.

    Nothing is written for a turn that adds nothing.
    """
    _mend_strands(folder, slice_id, turn_id, now)
    try:
        found = folder.slice(slice_id)
        marks = _marks(folder, found, turn_id, companion, person)
        with folder.files_lock(timeout=30.0):
            owner = _owner(folder, slice_id, turn_id)
            _weave(folder, slice_id, turn_id, marks or TurnMarks(), owner)
            if marks:
                _resolve_earlier(folder, slice_id, marks.loops_resolved, owner)
                _note_verdict(folder, slice_id, marks)
                _change_card(folder, found, marks, owner, person, now)
    except (FolderError, OSError) as error:
        log.warning("turn %s is not analysed: %s", turn_id, error)


def _marks(folder: MemoryFolder, found: Slice, turn_id: str, companion: Companion, person: Person) -> TurnMarks | None:
    """What the model makes of the turn; None when it says nothing of use, or there was no reply to look at."""
    if companion.model is None or not found.entry(turn_id, "user") or not found.entry(turn_id, "agent"):
        return None
    marks = analyzer.analyse_turn(
        companion.model,
        found,
        turn_id,
        strands=folder.strands(),
        merges=folder.merges(),
        person=person,
        open_loops=_open_loops(folder, found),
        card=_card(folder),
        called=companion.called,
    )
    if isinstance(marks, Failure):
        log.info("turn %s has the floor's tags: %s", turn_id, marks.reason)
        return None
    return marks


def _weave(folder: MemoryFolder, slice_id: str, turn_id: str, marks: TurnMarks, owner: str) -> None:
    woven, merges = folder.strands(), folder.merges()

    def writes(data: bytes, found: Slice) -> list[Write]:
        entry = found.entry(turn_id, "user")
        told = floor_tags(entry.content, woven) if entry else ()
        front = replace(
            found,
            tags=_with(found.tags, (*told, *marks.reuse, *marks.create)),
            open_loops=_with(
                tuple(one for one in found.open_loops if one not in marks.loops_resolved), marks.loops_opened
            ),
            decisions=_with(found.decisions, marks.decisions),
        )
        core = rewriting.writes(folder, data, found, front=front) if front != found else []
        after = strands.weave(woven, front.tags, found.path, merges)
        if after == woven:
            return core
        before = folder.read(STRANDS)
        return [*core, Write(path=STRANDS, found=before, data=strands.render_strands(after).encode())]

    rewriting.change(folder, slice_id, writes, owner=owner)


def _with(have: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """What there is and what is new to it by normalised form, as far as there is room."""
    forms = {strands.normalise(one) for one in have}
    added: dict[str, str] = {}
    for one in new:
        if (form := strands.normalise(one)) and form not in forms:
            added.setdefault(form, one)
    return (*have, *islice(added.values(), max(0, MAX_ITEMS - len(have))))


def _resolve_earlier(folder: MemoryFolder, slice_id: str, resolved: tuple[str, ...], owner: str) -> None:
    """Take resolved loops out of the closed slices that still list them as open, so that nobody is asked again."""
    for line in timeline.catalogue(folder.root, limit=EARLIER_SLICES) if resolved else ():
        if not isinstance(line, timeline.Line) or line.id == slice_id or not set(resolved) & set(line.open_loops):
            continue

        def writes(data: bytes, found: Slice) -> list[Write]:
            left = tuple(loop for loop in found.open_loops if loop not in resolved)
            front = replace(found, open_loops=left)
            return rewriting.writes(folder, data, found, front=front) if left != found.open_loops else []

        rewriting.change(folder, line.id, writes, owner=owner)


def _note_verdict(folder: MemoryFolder, slice_id: str, marks: TurnMarks) -> None:
    """Keep what the turns say about whether the slice is worth remembering; one that is, decides for all."""
    works = folder.state.todo()
    before = todo.verdict_on(works, slice_id)
    if before is True:
        return
    close = todo.close_of(works, slice_id)
    if close:
        # The slice closed before its last turn was analysed.
        worth = bool(close.worth_it) or marks.worth_remembering
        works = [replace(one, worth_it=worth) if one == close else one for one in works]
    else:
        verdict = todo.Work(what=todo.VERDICT, slice_id=slice_id, worth_it=marks.worth_remembering)
        works = [*todo.without(works, slice_id, todo.VERDICT), verdict]
    folder.state.save_todo(works)


def _change_card(
    folder: MemoryFolder, found: Slice, marks: TurnMarks, owner: str, person: Person, now: datetime
) -> None:
    """Apply at once what the person asked to have changed; the running slice's prompt stays as it is."""
    if not marks.card_operations:
        return
    changed = card_changes.apply_to(
        card_changes.read_card(folder),
        parse_operations(list(marks.card_operations), here=found.path),
        rules=card_changes.rules_for(folder, asked_by_person=True),
        at=now,
        slice_id=found.slice_id,
        language=person.language,
    )
    for refusal in changed.refused:
        log.info("a card change asked for in slice %s is refused: %s", found.slice_id, refusal.code)
    if changed.applied:
        folder.apply([Write(path=CARD, found=folder.read(CARD), data=changed.card_text.encode())], owner=owner)


def _mend_strands(folder: MemoryFolder, slice_id: str, turn_id: str, now: datetime) -> None:
    with folder.files_lock(timeout=30.0):
        if derived.set_aside_if_corrupt(folder, now=now):
            log.warning("strands.json of %s was corrupt; it is kept beside a new one", folder.root.name)
            derived.put(folder, derived.rebuild(folder), owner=turn_owner(slice_id, turn_id), now=now)


def _open_loops(folder: MemoryFolder, found: Slice) -> tuple[str, ...]:
    """The loops that the newest closed slices left open, newest first."""
    lines = timeline.catalogue(folder.root, limit=EARLIER_SLICES)
    earlier = [line for line in lines if isinstance(line, timeline.Line) and line.id != found.slice_id]
    return tuple(dict.fromkeys(loop for line in earlier for loop in line.open_loops))


def _card(folder: MemoryFolder) -> Card | None:
    try:
        return parse_card(card_changes.read_card(folder))
    except (Damaged, NotThere):
        return None


def _owner(folder: MemoryFolder, slice_id: str, turn_id: str) -> str:
    """The commit the marks go with: the turn's own, or the next turn's when its claim has made that one already.

    When that one is over as well, they get a commit of their own.
    """
    own = turn_owner(slice_id, turn_id)
    owners = [owner for touch in folder.state.touched().values() for owner in touch.owners]
    if own in owners:
        return own
    return owners[-1] if owners else f"late marks of turn {turn_id}"
