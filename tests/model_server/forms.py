"""The default answers to structured calls: valid forms that say as little as they may."""

import json
import re
from typing import Any

from tests.model_server.answers import Answer

_SAID = re.compile(r"^> (.*\S)", re.M)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def fill_in(body: dict[str, Any]) -> Answer:
    """A filled-in form for the schema that the request names; `{}` for one that is not known."""
    schema = body["response_format"].get("json_schema") or {}
    form = _FORMS.get(str(schema.get("name")))
    return Answer(text=json.dumps(form(body), ensure_ascii=False) if form else "{}")


def _turn(body: dict[str, Any]) -> dict[str, Any]:
    lists = ("reuse", "create", "loops_opened", "loops_resolved", "decisions", "card_operations")
    return {"worth_remembering": False} | {name: [] for name in lists}


def _close(body: dict[str, Any]) -> dict[str, Any]:
    texts = [str(message.get("content")) for message in body.get("messages", []) if message.get("role") == "user"]
    said = _SAID.search("\n".join(texts))
    line = said[1][:80] if said else "…"
    chinese = bool(_CHINESE.search(line))
    return {
        "focus": f"谈到：{line}" if chinese else f"About: {line}",
        "summary": f"聊了聊{line[:40]}" if chinese else f"A talk about {line[:60]}",
        "tags": [],
        "emotional_tone": "neutral",
        "open_loops": [],
        "decisions": [],
    }


def _evolve_card(body: dict[str, Any]) -> dict[str, Any]:
    return {"operations": [], "evolution_summary": ""}


def _merge(body: dict[str, Any]) -> dict[str, Any]:
    return {"merges": []}


_FORMS = {"turn": _turn, "close": _close, "backfill": _close, "evolve_card": _evolve_card, "merge": _merge}
