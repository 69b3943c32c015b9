"""What the server was told to answer, and what it was asked."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.model_server.answers import Answer, Rule, error_body
from tests.model_server.talker import talk

ANALYST = "analyst"
"""The model that a test gives structured calls to: the script is for the one that talks, rules are for both."""


@dataclass(kw_only=True)
class Call:
    """One request. `ended` is '' while it is being answered, then 'answered', 'cut' (by us) or 'hung_up' (by them)."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    waiting: bool = False
    ended: str = ""


@dataclass
class Book:
    """Everything the server remembers; `changed` wakes whoever waits for a call to get somewhere."""

    words_per_second: float = 0
    calls: list[Call] = field(default_factory=list)
    script: list[Answer] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    context_tokens: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self._fitted: list[int] = []
        self._used: list[int] = []

    def clear(self) -> None:
        """Forget everything and let go of the answers that hang."""
        self.calls, self.script, self.context_tokens = [], [], 0
        self.set_rules([])
        self.release()

    def set_rules(self, rules: list[Rule]) -> None:
        self.rules = rules
        self._fitted = [0] * len(rules)
        self._used = [0] * len(rules)

    def release(self) -> None:
        self.released.set()
        self.released = asyncio.Event()

    def answer_to(self, call: Call) -> Answer:
        """By context size, else the first rule that fits, else the script, else the talker."""
        tokens = approximate_tokens(call.body)
        if self.context_tokens and tokens > self.context_tokens:
            message = f"This model's maximum context length is {self.context_tokens} tokens, but you sent {tokens}."
            return Answer(status=400, body=error_body(message, code="context_length_exceeded"))
        ruled = self._by_rule(call)
        if ruled is not None:
            return ruled
        if self.script and call.path == "/chat/completions" and call.body.get("model") != ANALYST:
            return self.script.pop(0)
        if call.path == "/models":
            return Answer(body={"object": "list", "data": [{"id": "talker", "object": "model"}]})
        if call.path != "/chat/completions":
            return Answer(status=404, body=error_body("Not Found"))
        return talk(call.body, words_per_second=self.words_per_second)

    def _by_rule(self, call: Call) -> Answer | None:
        for number, rule in enumerate(self.rules):
            if not _fits(rule, call):
                continue
            self._fitted[number] += 1
            if rule.nth is not None and self._fitted[number] != rule.nth:
                continue
            if rule.times is not None and self._used[number] >= rule.times:
                continue
            used = self._used[number]
            self._used[number] += 1
            return rule.answers[min(used, len(rule.answers) - 1)]
        return None

    async def mark(self, call: Call, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(call, name, value)
        async with self.changed:
            self.changed.notify_all()

    async def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Whether it held within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout), self.changed:
                await self.changed.wait_for(holds)
        except TimeoutError:
            return False
        return True


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def approximate_tokens(body: dict[str, Any]) -> int:
    """A token for four ASCII characters, one for each other character."""
    text = "".join(text_of(message) for message in body.get("messages", []))
    ascii_count = sum(character.isascii() for character in text)
    return ascii_count // 4 + len(text) - ascii_count


def _fits(rule: Rule, call: Call) -> bool:
    messages = call.body.get("messages", [])
    system = "\n".join(text_of(message) for message in messages if message.get("role") == "system")
    user = next((text_of(message) for message in reversed(messages) if message.get("role") == "user"), "")
    return (
        rule.path == call.path
        and rule.system in system
        and rule.user in user
        and rule.model in ("", call.body.get("model"))
        and rule.form in ("", _form(call))
        and (rule.has_tools is None or rule.has_tools == bool(call.body.get("tools")))
    )


def _form(call: Call) -> str:
    """The name of the form that a structured call asks for, '' for any other request."""
    schema = (call.body.get("response_format") or {}).get("json_schema") or {}
    return str(schema.get("name", ""))
