"""One exchange with a model server: the request goes out, the pieces come in, each within its time.

Everything here runs on the loop of memory.llm.loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import openai

from memory.llm.asking import Ask
from memory.llm.errors import ModelError, TimedOut
from memory.llm.pieces import Piece
from memory.llm.reading import Reading
from memory.llm.wire import Wire

GRACE = 5.0  # seconds for the end marker once the model has said why it ended
DRAIN = 1.0  # seconds for the end of the body after the end marker; a body read to its end frees the connection


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Seconds to the first thing the model produces, from one chunk to the next, and for the answer in all."""

    first: float
    between: float
    whole: float


def within(seconds: float) -> Patience:
    """All in `seconds`, however they are spread."""
    return Patience(first=seconds, between=seconds, whole=seconds)


async def accepted(
    client: openai.AsyncOpenAI, ask: Ask, stack: AsyncExitStack, *, keep_tools: bool
) -> tuple[Ask, AsyncIterator[bytes]]:
    """Send `ask`, or the most of it that the server does not refuse; what was sent, and the bytes of the answer.

    The response is closed with `stack`. The bytes are read here rather than by the client's own stream, which knows
    event streams only, makes nothing of a whole answer or an HTML page, and costs 2.5 times the CPU a chunk.
    """
    while True:
        try:
            response: Any = await stack.enter_async_context(
                client.chat.completions.with_streaming_response.create(**ask.parameters())
            )
            return ask, response.iter_bytes()
        except openai.APIStatusError as refused:
            lesser = ask.less(refused.status_code, refused.response.text, keep_tools=keep_tools)
            if lesser is None:
                raise
            ask = lesser


async def read_pieces(
    body: AsyncIterator[bytes], patience: Patience, began: float, put: Callable[[Piece], None]
) -> None:
    """Put the pieces of one answer. `began` is the loop's time when it was asked for. Raises ModelError."""
    reading, wire = Reading(), Wire()
    loop = asyncio.get_running_loop()
    last = began + patience.whole
    try:
        async with asyncio.timeout_at(min(began + patience.first, last)) as limit:
            async for chunk in body:
                for answer in wire.feed(chunk):
                    _put_all(reading.feed(answer), put)
                if wire.done:
                    break
                if reading.begun:
                    wait = min(GRACE, patience.between) if reading.reason else patience.between
                    limit.reschedule(min(loop.time() + wait, last))
            else:
                for answer in wire.end():
                    _put_all(reading.feed(answer), put)
    except TimeoutError:
        if not reading.reason:
            _put_all(reading.held(), put)
            raise TimedOut from None
    except httpx2.TransportError:
        pass  # broken off: whether the answer was complete by then, `end` knows
    except ModelError:
        _put_all(reading.held(), put)
        raise
    _put_all(reading.end(marked=wire.complete), put)


async def drained(body: AsyncIterator[bytes]) -> None:
    """Read what follows the end marker, for a moment, so that the connection can serve the next request."""
    try:
        async with asyncio.timeout(DRAIN):
            async for _ in body:
                pass
    except (TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        pass  # the answer is complete; the connection is not used again


def _put_all(pieces: Iterable[Piece], put: Callable[[Piece], None]) -> None:
    for piece in pieces:
        put(piece)
