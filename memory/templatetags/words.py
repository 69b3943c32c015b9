"""Messages as HTML and codes as words, for the templates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django import template
from django.utils.safestring import SafeString

from memory import markdown as reading
from memory import wording
from memory.conversation.events import Notice, Step
from memory.folder.clock import parse_stamp
from memory.folder.paths import parse_slice_path, parse_turn_id

LARGE_CHARS = 50_000
"""A message longer than this is folded behind a control, so that one huge paste does not bury a conversation."""

register = template.Library()


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A moment that a recall found: where, when (in its slice's zone), what the slice is about, and the words."""

    path: str
    turn_id: str
    at: datetime
    zone: str
    focus: str
    quote: str


@register.filter
def markdown(text: str) -> SafeString:
    """A finished reply."""
    return reading.render(text, final=True)


@register.filter
def verbatim(text: str) -> SafeString:
    """What a person typed, as typed."""
    return reading.render_person(text)


@register.filter
def large(text: str) -> bool:
    return len(text) > LARGE_CHARS


@register.filter
def failure(code: str) -> str:
    return wording.failure(code)


@register.filter
def waiting_for(code: str) -> str:
    return wording.waiting(code)


@register.filter
def step_words(step: Step) -> str:
    return wording.step(step.name, running=step.state == "running")


@register.filter
def notice_words(notice: Notice) -> str:
    return wording.reply_notice(notice.code, notice.values)


@register.filter
def hits(step: Step) -> list[Hit] | None:
    """What a recall found: its detail is JSON, a list of hits with `at` as in the record; None for any other step."""
    if step.name != "recall" or step.state != "ok":
        return None
    try:
        return [_hit(found) for found in json.loads(step.detail)]
    except (ValueError, KeyError, TypeError):
        return None  # shown as any other step, with its detail as it is


def _hit(found: Mapping[str, str]) -> Hit:
    parse_slice_path(found["path"])
    return Hit(
        path=found["path"],
        turn_id=parse_turn_id(found["turn_id"]),
        at=parse_stamp(found["at"]),
        zone=found["zone"],
        focus=found["focus"],
        quote=found["quote"],
    )
