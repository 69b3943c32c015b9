"""Forms as a scripted model fills them in, and a talk whose model is counted."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memory.conversation.companion import Companion
from memory.llm.client import ModelServer
from memory.llm.structured import Called
from tests.conversation.talk import Talk
from tests.model_server.answers import Answer, Rule
from tests.model_server.book import ANALYST

Connect = Callable[..., ModelServer]

GARBAGE = Answer(text="I would rather talk about the weather.")
DOWN = Answer(status=503, body="down for maintenance")

_LEAST: dict[str, dict[str, Any]] = {
    "turn": {
        "worth_remembering": False,
        "reuse": [],
        "create": [],
        "loops_opened": [],
        "loops_resolved": [],
        "decisions": [],
        "card_operations": [],
    },
    "close": {
        "focus": "What was on Alice's mind",
        "summary": "She talked it through.",
        "tags": [],
        "emotional_tone": "neutral",
        "open_loops": [],
        "decisions": [],
    },
    "evolve_card": {"operations": [], "evolution_summary": ""},
    "merge": {"merges": []},
}
_LEAST["backfill"] = _LEAST["close"]


def form(kind: str, **fields: Any) -> Answer:
    """A valid form that says these things and as little else as it may."""
    return Answer(text=json.dumps({**_LEAST[kind], **fields}, ensure_ascii=False))


def filled(kind: str, *answers: Answer, **how: Any) -> Rule:
    """The rule that gives these answers to the requests for a form, the last again and again; with none, the least."""
    return Rule(form=kind, answers=list(answers or [form(kind)]), **how)


def added(slice_path: str, turn_id: str, quote: str, text: str, *, section: str = "Now") -> dict[str, Any]:
    """A card operation: one more entry, with its receipt."""
    receipts = [{"receipt": f"{slice_path}#{turn_id}", "quote": quote}]
    return {"op": "add", "section": section, "old": "", "text": text, "past": "", "receipts": receipts}


class CountedTalk(Talk):
    """Alice with a companion that has a model; `asked` hears of every call, `count` says how many there were."""

    def __init__(self, place: Path, model: ModelServer, *, card_wait: float = 0.0, **person: object) -> None:
        self.asked: list[Called] = []
        companion = Companion(model=model, pauses=(), card_wait=card_wait, called=self.asked.append)
        super().__init__(place, companion, **person)

    def count(self) -> Counter[str]:
        """Calls by kind since the last count, replies left out."""
        counted = Counter(call.kind for call in self.asked if call.kind != "answer")
        self.asked.clear()
        return counted


def counted_talk(place: Path, connect: Connect, **how: Any) -> CountedTalk:
    """Alice's talk over the scripted model server."""
    return CountedTalk(place, connect(analyst=ANALYST), **how)


def forms_in(bodies: Sequence[dict[str, Any]]) -> list[str]:
    """The names of the forms that requests asked for, '' for those that asked for none."""
    return [((body.get("response_format") or {}).get("json_schema") or {}).get("name", "") for body in bodies]
