"""The friendly default: Markdown about what was said, so that anyone can try the product without a model."""

import json
import re
import zlib
from typing import Any

from tests.model_server.answers import Answer
from tests.model_server.forms import fill_in

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ASKS_TIME = re.compile(
    r"what time|what day|what'?s the (time|date)|current time|today's date|几点|几号|星期几|现在时间", re.I
)
_ASKS_CARD = re.compile(r"know about me|remember about me|my card|记得我|了解我", re.I)
_ASKS_CODE = re.compile(r"\b(code|python|script|function)\b|代码|程序|脚本", re.I)
_THANKS = re.compile(r"^\s*(thanks|thank you|thx|谢谢|多谢)", re.I)


def talk(body: dict[str, Any], *, words_per_second: float = 0) -> Answer:
    """The same request always gets the same answer."""
    messages = [message for message in body.get("messages", []) if isinstance(message, dict)]
    said = _last_said(messages)
    chinese = bool(_CHINESE.search(said))
    if body.get("response_format"):
        return fill_in(body)
    if messages and messages[-1].get("role") == "tool":
        return Answer(text=_from_tool(messages, chinese=chinese), words_per_second=words_per_second)
    if wanted := _tool_for(said, body.get("tools") or []):
        return Answer(tool_calls=[{"name": wanted, "arguments": {}}], words_per_second=words_per_second)
    reasoning = ""
    if len(said) > 40:
        reasoning = (
            "对方说了不少，先抓住要点。"
            if chinese
            else "There is a lot in this; first the point of it, then a question."
        )
    reply = _in_chinese(said) if chinese else _in_english(said)
    return Answer(text=reply, reasoning=reasoning, words_per_second=words_per_second)


def _last_said(messages: list[dict[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            return str(message["content"])
    return ""


def _tool_for(said: str, tools: list[Any]) -> str:
    """The offered tool that the words ask for, or ''."""
    offered = {tool.get("function", {}).get("name") for tool in tools if isinstance(tool, dict)}
    wanted = "current_time" if _ASKS_TIME.search(said) else "read_card" if _ASKS_CARD.search(said) else ""
    return wanted if wanted in offered else ""


def _from_tool(messages: list[dict[str, Any]], *, chinese: bool) -> str:
    result = messages[-1].get("content")
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    quoted = "\n".join(f"> {line}" for line in text.strip().splitlines()[:20])
    return f"我查了一下：\n\n{quoted}\n" if chinese else f"I looked it up:\n\n{quoted}\n"


def _gist(said: str, length: int) -> str:
    """The first sentence, harmless inside Markdown emphasis."""
    line = next((line for line in said.splitlines() if line.strip()), "").strip()
    sentence = re.split(r"(?<=[.!?。！？])\s*", line)[0]
    short = sentence if len(sentence) <= length else sentence[:length].rstrip() + "…"
    return re.sub(r"[*_`<>\[\]]", "", short)


def _in_english(said: str) -> str:
    gist = _gist(said, 80) or "nothing yet"
    if _THANKS.search(said):
        return "You are welcome. I am here when you want to go on."
    if _ASKS_CODE.search(said):
        return (
            f"About *{gist}* — a small start:\n\n"
            '```python\ndef greet(name: str) -> str:\n    return f"Hello, {name}!"\n\n\nprint(greet("Alice"))\n```\n\n'
            "What should it do next?"
        )
    variant = zlib.crc32(said.encode("utf-8", "replace")) % 3
    if variant == 0:
        return f"You said: *{gist}*\n\nTwo things I would like to know:\n\n- what matters **most**\n- what comes next"
    if variant == 1:
        return f"I see — **{gist}**\n\nTell me a little more. What made you think of it today?"
    steps = "1. look at what is there\n2. choose one small step\n3. talk again"
    return f"> {gist}\n\nThat stays with me. Here is how I would go at it:\n\n{steps}"


def _in_chinese(said: str) -> str:
    gist = _gist(said, 40) or "还没有内容"
    if _THANKS.search(said):
        return "不客气。想继续的时候，我都在。"
    if _ASKS_CODE.search(said):
        return f'关于“{gist}”，先从这里开始：\n\n```python\nprint("你好，Alice")\n```\n\n接下来想让它做什么？'
    variant = zlib.crc32(said.encode("utf-8", "replace")) % 3
    if variant == 0:
        return f"你说的是：*{gist}*\n\n我想知道两件事：\n\n- 其中**最重要**的是什么\n- 接下来打算怎么做"
    if variant == 1:
        return f"明白了，**{gist}**\n\n再多说一点吧。今天怎么会想到这个？"
    return f"> {gist}\n\n我记下了。可以这样来：\n\n1. 先看看手上有什么\n2. 选一个小步骤\n3. 做完再聊"
