"""Deep thought: one question to a model by itself, with no tools and no memory, and all the time it needs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memory import prompts
from memory.conversation import toolbox
from memory.conversation.person import Person
from memory.conversation.toolbox import RefusedError
from memory.conversation.tools import THINK_DEEP
from memory.folder.turns import clean
from memory.llm.client import ModelServer, Reasoning, Text
from memory.llm.errors import ModelError

MOST_SECONDS = 295.0
EFFORTS = ("low", "medium", "high")
ANSWER_CHARACTERS = 20_000


@dataclass(frozen=True, kw_only=True)
class Thought:
    """What came of it. `cut` says why it is not whole: a ModelError's code, `too_long`; '' when it is."""

    question: str
    answer: str
    trail: str
    cut: str = ""

    def as_told(self) -> str:
        """What the agent reads; failure is data, too."""
        if not self.cut:
            return self.answer[:ANSWER_CHARACTERS]
        so_far = f" What there was of it:\n\n{self.answer[:ANSWER_CHARACTERS]}" if self.answer else ""
        return f"Error: the thought was not finished ({self.cut}).{so_far}"


def think_deep(
    model: ModelServer,
    arguments: dict[str, Any] | None,
    *,
    person: Person,
    stopped: Callable[[], bool],
    heard: Callable[[str], object] = lambda reasoning: None,
    seconds: float = MOST_SECONDS,
) -> Thought:
    """Think about one question; `heard` gets the reasoning as it comes. Raises RefusedError for bad arguments.

    Answer and trail are kept when it is cut: by the person, by the model server, or after `seconds`.
    """
    given = toolbox.checked(THINK_DEEP, arguments)
    if not given["question"].strip():
        raise RefusedError("question is empty")
    effort = given.get("effort", "medium")
    if effort not in EFFORTS:
        raise RefusedError(f"effort has to be one of {', '.join(EFFORTS)}")
    until = time.monotonic() + seconds
    asked = [
        {"role": "system", "content": prompts.load("think_deep", person.language)},
        {"role": "user", "content": given["question"]},
    ]
    answer = trail = cut = ""
    try:
        for piece in model.stream(asked, effort=effort, stopped=lambda: stopped() or time.monotonic() >= until):
            if isinstance(piece, Text):
                answer += piece.text
            elif isinstance(piece, Reasoning):
                trail += piece.text
                heard(piece.text)
    except ModelError as error:
        cut = error.code
    if not cut and time.monotonic() >= until:
        cut = "too_long"
    elif not cut and stopped():
        cut = "stopped"
    return Thought(question=clean(given["question"]), answer=clean(answer), trail=clean(trail), cut=cut)
