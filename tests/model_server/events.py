"""An answer as chat completions JSON: the chunks of a stream, or one whole document."""

import json
import re
from typing import Any

from tests.model_server.answers import Answer

_CREATED = 1_786_397_422
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def words(text: str) -> list[str]:
    """The text by words, its white space kept; scripts without spaces by two characters."""
    pieces: list[str] = []
    for word in re.findall(r"\S+\s*|\s+", text):
        if _CJK.search(word):
            pieces += [word[at : at + 2] for at in range(0, len(word), 2)]
        else:
            pieces.append(word)
    return pieces


def chunks(answer: Answer, model: str) -> list[str]:
    """The data of each event before the end marker, as many as the stream has chunks."""
    if not answer.choices:
        return [json.dumps({**_head(model, streamed=True), "choices": []})] * 3
    deltas: list[dict[str, Any]] = []
    tagged = answer.reasoning_as in ("think", "thinking")
    if answer.reasoning and not tagged:
        deltas += [{answer.reasoning_as: word, "content": None} for word in words(answer.reasoning)]
    deltas += [{"content": piece} for piece in _content(answer)]
    deltas += _tool_deltas(answer)
    if deltas:
        deltas[0] = {"role": "assistant", **deltas[0]}
    events = [_event(model, delta, None) for delta in deltas] + answer.lines
    if answer.finish_reason is not None:
        events.append(_event(model, {}, _reason(answer)))
    return events


def document(answer: Answer, model: str) -> str:
    """The whole answer as one document."""
    head = _head(model, streamed=False)
    if not answer.choices:
        return json.dumps({**head, "choices": []})
    message: dict[str, Any] = {"role": "assistant", "content": "".join(_content(answer)) or None}
    if answer.reasoning and answer.reasoning_as not in ("think", "thinking"):
        message[answer.reasoning_as] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [_tool_call(call) for call in answer.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**head, "choices": [choice], "usage": usage})


def _content(answer: Answer) -> list[str]:
    pieces = answer.chunks or words(answer.text)
    if answer.reasoning and answer.reasoning_as in ("think", "thinking"):
        tag = answer.reasoning_as
        pieces = [f"<{tag}>", *words(answer.reasoning), f"</{tag}>", *pieces]
    return pieces


def _tool_deltas(answer: Answer) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = []
    for index, call in enumerate(answer.tool_calls):
        whole = _tool_call(call)
        arguments = whole["function"]["arguments"]
        size = answer.fragment or len(arguments) or 1
        whole["function"]["arguments"] = ""
        deltas.append({"tool_calls": [{"index": index, **whole}]})
        for at in range(0, len(arguments), size):
            piece = {"index": index, "function": {"arguments": arguments[at : at + size]}}
            deltas.append({"tool_calls": [piece]})
    return deltas


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    whole: dict[str, Any] = {"type": "function", "function": {"name": call["name"], "arguments": text}}
    call_id = call.get("id", f"call_{call['name']}")
    return whole if call_id is None else {"id": call_id, **whole}


def _reason(answer: Answer) -> str | None:
    if answer.finish_reason != "":
        return answer.finish_reason
    return "tool_calls" if answer.tool_calls else "stop"


def _event(model: str, delta: dict[str, Any], reason: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return json.dumps({**_head(model, streamed=True), "choices": [choice]})


def _head(model: str, *, streamed: bool) -> dict[str, Any]:
    kind = "chat.completion.chunk" if streamed else "chat.completion"
    return {"id": "chatcmpl-1", "object": kind, "created": _CREATED, "model": model}
