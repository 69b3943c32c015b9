"""What is put to the model: one system message a slice, and the slice's own words after it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from memory import prompts
from memory.folder import clock, timeline
from memory.folder.card import parse_card
from memory.folder.errors import BadId, Damaged, FolderError, NotThere
from memory.folder.paths import id_of, minute_of, path_of
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice, Line

from . import anchors, window
from .person import Person
from .phrases import Phrases, phrases
from .quoting import card_lines, fenced, quoted_line
from .window import Key

RECENT = 10
TOPICS = 20
CARD_TOKENS = 5_000
CONTINUATION_HOURS = 24

Message = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Messages:
    """One request: the messages exactly as they are sent.

    `left_out` counts the turns for which there was no room, `shortened` the messages sent without their middle.
    `order` is to be handed to the next call for the same slice as `sent`.
    """

    messages: list[Message]
    left_out: int
    shortened: int
    order: tuple[Key, ...]


def system_message(folder: MemoryFolder, slice_: Slice, *, person: Person) -> str:
    """The system message of a slice, from the folder as it is now; the caller keeps it for the slice's whole life.

    No clock is asked: all times are those of the slice's start, in the slice's zone, and only older slices are told
    of. So the same folder always gives the same bytes. The blocks come most stable first.
    """
    words = phrases(person.language)
    around = anchors.anchors(slice_.start, slice_.timezone)
    before = _before(folder, slice_)
    return prompts.load(
        "companion",
        person.language,
        called=_called(person, words),
        card=_card(folder, words),
        began=words.began.format(
            time=anchors.full_time(slice_.start, slice_.timezone, person.language),
            zone=anchors.zone_words(slice_.start, slice_.timezone),
        ),
        today=anchors.full_day(around.today, person.language),
        yesterday=anchors.full_day(around.yesterday, person.language),
        this_week=anchors.days_from_to(around.this_week, person.language),
        last_week=anchors.days_from_to(around.last_week, person.language),
        before=_since(slice_, before[0] if before else None, words, person.language),
        timeline=_recent(before, slice_, words, person.language),
        topics=_topics(folder, slice_, words, person.language),
    )


def build_messages(
    slice_: Slice, turn_id: str, *, system: str, context_tokens: int, sent: Iterable[Key] = ()
) -> Messages:
    """The request for the answer to one turn: the system message, then the slice up to the person's entry of the turn.

    Each turn is the person's entry and, if there is one, the agent's; a turn that was stopped or failed has only the
    former. With `sent`, the `order` of the request before (of any turn of this slice_), every request begins with all
    messages of the one before, until the context is full: then whole turns are left out from the oldest on, in steps.
    A message longer than half of the room goes out without its middle, always the same way.

    Raises NotThere when the slice has no such entry.
    """
    if slice_.entry(turn_id, "user") is None:
        raise NotThere(f"no message {turn_id} in slice {slice_.slice_id}")
    room = window.room(system, context_tokens)
    order = window.in_order(slice_.entries, turn_id, tuple(sent))
    asked = order[: order.index((turn_id, "user")) + 1]
    whole = {entry.key: entry.content for entry in reversed(slice_.entries)}
    texts = {key: window.shortened(whole[key], room.message) for key in asked}
    gone = window.left_out(asked, lambda key: window.tokens(texts[key]) + window.PER_MESSAGE, room.history)
    kept = [key for key in asked if key[0] not in gone]
    roles = {"user": "user", "agent": "assistant"}
    return Messages(
        messages=[
            {"role": "system", "content": system},
            *({"role": roles[key[1]], "content": texts[key]} for key in kept),
        ],
        left_out=len(gone),
        shortened=sum(texts[key] != whole[key] for key in kept),
        order=order,
    )


def _before(folder: MemoryFolder, slice_: Slice) -> list[Line | DamagedSlice]:
    """The newest closed or damaged slices older than this one, newest first."""
    older = timeline.newest_first(folder.root, before=slice_.slice_id)
    return list(islice((line for line in older if isinstance(line, DamagedSlice) or not line.active), RECENT))


def _called(person: Person, words: Phrases) -> str:
    name = quoted_line(person.name, 80)
    return f"{words.called}\n{fenced('name', [f'- {name}'])}\n\n" if name else ""


def _card(folder: MemoryFolder, words: Phrases) -> str:
    try:
        card = parse_card(folder.card())
    except Damaged:
        return words.card_damaged
    lines, complete = card_lines(card, CARD_TOKENS)
    if not lines:
        return words.card_empty
    return fenced("card", lines) + ("" if complete else f"\n{words.card_more}")


def _since(slice_: Slice, before: Line | DamagedSlice | None, words: Phrases, language: str) -> str:
    parts = []
    if before is None:
        parts.append(words.first)
    elif isinstance(before, DamagedSlice):
        day = clock.local_day(minute_of(before.id), slice_.timezone)
        parts.append(words.before_damaged.format(day=anchors.full_day(day, language)))
    else:
        ended = min(before.end or before.start, slice_.start)
        told = words.before.format(
            gap=anchors.time_between(ended, slice_.start, slice_.timezone, language),
            time=anchors.full_time(ended, slice_.timezone, language),
        )
        parts.append(f"{told}\n{fenced('conversation', [f'- {_about(before)}'])}")
        if anchors.hours_between(ended, slice_.start) < CONTINUATION_HOURS:
            parts.append(words.continuation)
    if slice_.evolution_summary:
        lines = [f"- {quoted_line(slice_.evolution_summary, 1_000)}"]
        parts.append(f"{words.card_changed}\n{fenced('card changes', lines)}")
    return "\n\n".join(parts)


def _recent(before: list[Line | DamagedSlice], slice_: Slice, words: Phrases, language: str) -> str:
    lines = []
    for line in before:
        if isinstance(line, DamagedSlice):
            day = clock.local_day(minute_of(line.id), slice_.timezone)
            lines.append(f"- {anchors.full_day(day, language)}: {words.timeline_damaged} [{path_of(line.id)}]")
        else:
            lines.append(f"- {anchors.full_time(line.start, line.timezone, language)}: {_about(line)}")
    return fenced("conversations", lines) if lines else words.timeline_none


def _about(line: Line) -> str:
    said = " — ".join(part for part in (quoted_line(line.focus, 200), quoted_line(line.summary, 200)) if part)
    return f"{said or '…'} [{line.path}]"


def _last_seen(paths: tuple[str, ...], before: str) -> datetime | None:
    """The minute of the newest slice older than the slice path `before`, None when there is none."""
    for path in reversed(paths):
        if path < before:
            with suppress(BadId):
                return minute_of(id_of(path))
    return None


def _topics(folder: MemoryFolder, slice_: Slice, words: Phrases, language: str) -> str:
    try:
        strands = folder.strands()
    except FolderError:
        return words.topics_damaged
    seen = {key: at for key, paths in strands.items() if (at := _last_seen(paths, slice_.path))}
    if not seen:
        return words.topics_none
    today = clock.local_day(slice_.start, slice_.timezone)
    newest = sorted(seen, key=lambda key: (-seen[key].timestamp(), key))[:TOPICS]
    lines = []
    for key in newest:
        last = words.topic.format(
            day=anchors.short_day(clock.local_day(seen[key], slice_.timezone), today, language),
            ago=anchors.days_ago(anchors.days_between(seen[key], slice_.start, slice_.timezone), language),
        )
        lines.append(f"- {quoted_line(key, 100)} ({last})")
    told = words.topics_all
    if len(seen) > len(newest):
        told = words.topics_some.format(shown=len(newest), total=len(seen))
    return f"{told}\n{fenced('topics', lines)}\n\n{words.topics_ask}"
