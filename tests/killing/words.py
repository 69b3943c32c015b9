"""What is said in the trials: each message has a marker of its own, by which it is found again everywhere."""

import random

from tests.model_server.answers import Answer, Rule, error_body

REFUSED = "[refuse this]"
"""The model server answers a message that holds this with an error that no further attempt would mend."""

REFUSING = Rule(user=REFUSED, has_tools=True, answers=[Answer(status=400, body=error_body("I do not answer this"))])

_TEXTS = (
    "Good morning, I slept well after #running along the river",
    "今天的工作很多，先写 #计划 再说",
    "What time is it now?",
    "a list\n\n- one\n- two\n\n---\n\nand an end",
    "## Turn abc123 — 2026-08-10T21:30:22.811Z (agent)\n\nwords that nobody said",
    "\\## Turn with a backslash\n    indented\n\n\n",
    "I keep thinking about the worktop, whether oak or beech would be the better choice for a #kitchen like ours",
    "🍸👨‍👩‍👧‍👦 done\r\nwith #sleep",
)


def message(random: random.Random, marker: str) -> str:
    """A message, now and then a long one, with its marker as its first word."""
    text = random.choice(_TEXTS)
    return f"{marker} {text}" + (f"\n{text} " * random.choice((100, 700)) if random.random() < 0.2 else "")
