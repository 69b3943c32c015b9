"""One attempt at a reply: the model is asked, its pieces go to the reply in flight, its tools are run."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory.conversation import recall, think, tools
from memory.conversation.companion import Companion
from memory.conversation.inflight import ReplyWriter
from memory.conversation.person import Person
from memory.conversation.toolbox import RefusedError, ToolResult
from memory.folder import cognition
from memory.folder.store import MemoryFolder
from memory.folder.turns import clean
from memory.llm.client import Finished, ModelServer, Reasoning, Text, ToolRequest, ToolsNotOffered
from memory.llm.errors import EmptyAnswer

MOST_STEPS = 20
LOOK = 0.25
LABEL_CHARACTERS = 300
BETWEEN_STEPS = "\n\n"
"""Text before and after a tool call are two paragraphs of one reply."""


class Stopped(Exception):
    """The person stopped the reply."""


class Leaving(Exception):
    """This process is about to end; the reply stays owed and the next worker begins anew."""


@dataclass(kw_only=True)
class Reply:
    """What has come of a reply so far; it grows while an attempt runs, so that a broken one leaves what it had."""

    text: str = ""
    thinking: str = ""
    calls: list[cognition.ToolCall] = field(default_factory=list)
    recalls: list[cognition.Recalled] = field(default_factory=list)
    deep: list[cognition.DeepThought] = field(default_factory=list)

    def begin_anew(self) -> None:
        """Forget what a failed attempt brought. Deep thoughts were dear and stay on record."""
        self.text, self.thinking = "", ""
        self.calls.clear()
        self.recalls.clear()

    def block(self, turn_id: str, at: datetime, *, unfinished: str = "") -> cognition.Block:
        """What agent.md keeps of it."""
        return cognition.Block(
            turn_id=turn_id,
            at=at,
            thinking=self.thinking,
            tools=tuple(self.calls),
            recalls=tuple(self.recalls),
            deep=tuple(self.deep),
            unfinished=unfinished,
        )


@dataclass(frozen=True, kw_only=True)
class Speaker:
    """All that an attempt needs to know of the turn it is for."""

    folder: MemoryFolder
    slice_id: str
    companion: Companion
    person: Person
    writer: ReplyWriter
    clock: Callable[[], datetime]

    def interrupted(self) -> bool:
        """Whether the reply is to end now, for either reason."""
        return self.companion.stopping() or self.writer.stop_requested()

    def check(self) -> None:
        """Raises Stopped or Leaving when the reply is to end now; a person's wish comes first."""
        if self.writer.stop_requested():
            raise Stopped
        if self.companion.stopping():
            raise Leaving

    def pause(self, seconds: float) -> None:
        """Wait, looking up four times a second; raises as `check` does."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(LOOK, left))
        self.check()


def speak(speaker: Speaker, model: ModelServer, messages: list[dict[str, Any]], reply: Reply) -> None:
    """Ask until the model has said its last word, at most 20 steps with tools; `reply` and the writer get all of it.

    Raises ModelError, Stopped, Leaving, with what had come so far in `reply`.
    """
    asked: list[dict[str, Any]] = list(messages)
    for step in range(MOST_STEPS + 1):
        offered = tools.TOOLS if step < MOST_STEPS else ()
        said, requests = _listen(speaker, model, asked, offered, reply)
        if not requests:
            break
        asked.append(
            {"role": "assistant", "content": said or None, "tool_calls": [_as_sent(each) for each in requests]}
        )
        for request in requests:
            speaker.check()
            asked.append(_run(speaker, model, request, reply))
    reply.text = clean(reply.text)
    if not reply.text.strip():
        raise EmptyAnswer


def _listen(
    speaker: Speaker, model: ModelServer, asked: list[dict[str, Any]], offered: Any, reply: Reply
) -> tuple[str, list[ToolRequest]]:
    said = ""
    requests: list[ToolRequest] = []
    finished = False
    for piece in model.stream(asked, tools=offered, effort=speaker.companion.effort, stopped=speaker.interrupted):
        match piece:
            case Text(text):
                if not said and reply.text.strip():
                    speaker.writer.text(BETWEEN_STEPS)
                    reply.text += BETWEEN_STEPS
                speaker.writer.text(text)
                said += text
                reply.text += text
            case Reasoning(text):
                speaker.writer.reasoning(text)
                reply.thinking += text
            case ToolRequest():
                requests.append(piece)
            case Finished(reason):
                finished = True
                if reason == "length":
                    speaker.writer.notice("cut_by_length")
            case ToolsNotOffered():
                pass  # the model answers from the slice and the system message alone
    if not finished:
        speaker.check()
        raise Leaving  # interrupted, and the reason for it is gone again: begin anew
    return said, requests


def _run(speaker: Speaker, model: ModelServer, request: ToolRequest, reply: Reply) -> dict[str, Any]:
    parameters = tuple((str(key), _value(value)) for key, value in (request.arguments or {}).items())
    label = _label(parameters)
    speaker.writer.step(request.name, "running", label)
    try:
        done = _RUN.get(request.name, _look)(speaker, model, request, reply)
    except RefusedError as refusal:
        done = _Done(ToolResult(text=f"Error: {refusal}", error=str(refusal)))
    error = done.result.error
    speaker.writer.step(request.name, "error" if error else "ok", label, error or done.shown)
    reply.calls.append(cognition.ToolCall(request.name, parameters, error))
    return {"role": "tool", "tool_call_id": request.id, "content": done.result.text}


@dataclass(frozen=True)
class _Done:
    """What came of a tool: what the model reads, and what its card on the page shows."""

    result: ToolResult
    shown: str = ""


def _look(speaker: Speaker, model: ModelServer, request: ToolRequest, reply: Reply) -> _Done:
    now = speaker.clock()
    return _Done(tools.run(speaker.folder, request.name, request.arguments, person=speaker.person, now=now))


def _recall(speaker: Speaker, model: ModelServer, request: ToolRequest, reply: Reply) -> _Done:
    now = speaker.clock()
    report = recall.recall(
        speaker.folder,
        request.arguments,
        current=speaker.slice_id,
        companion=speaker.companion,
        person=speaker.person,
        now=now,
        stopped=speaker.interrupted,
    )
    speaker.check()
    reply.recalls.append(report.block())
    return _Done(ToolResult(text=recall.as_told(report, speaker.person, now)), recall.as_card(report))


def _think_deep(speaker: Speaker, model: ModelServer, request: ToolRequest, reply: Reply) -> _Done:
    thought = think.think_deep(
        model, request.arguments, person=speaker.person, stopped=speaker.interrupted, heard=speaker.writer.reasoning
    )
    reply.deep.append(cognition.DeepThought(thought.question, thought.answer, thought.trail))
    speaker.check()
    result = ToolResult(text=thought.as_told(), error=thought.cut or None)
    return _Done(result, thought.answer[: think.ANSWER_CHARACTERS])


_RUN: dict[str, Callable[[Speaker, ModelServer, ToolRequest, Reply], _Done]] = {
    "recall": _recall,
    "think_deep": _think_deep,
}


def _label(parameters: tuple[tuple[str, str], ...]) -> str:
    """What a step is about: the question it was given, or else its values."""
    told = dict(parameters).get("question") or ", ".join(value for _, value in parameters)
    return told[:LABEL_CHARACTERS]


def _as_sent(request: ToolRequest) -> dict[str, Any]:
    # Arguments that were no JSON object are not sent back: servers refuse the whole request for them.
    arguments = request.raw if request.arguments is not None else "{}"
    return {"id": request.id, "type": "function", "function": {"name": request.name, "arguments": arguments}}


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
