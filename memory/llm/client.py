"""A model server, spoken to through the `openai` client."""

import asyncio
import contextlib
import logging
import os
import queue
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import openai

from memory.llm.asking import Ask, Message
from memory.llm.connection import open_client
from memory.llm.errors import EmptyAnswer, ModelError, NoSuchModel, NotAModelServer
from memory.llm.exchange import Patience, accepted, drained, read_pieces, within
from memory.llm.loop import model_loop
from memory.llm.pieces import Finished, Piece, Reasoning, Text, ToolRequest, ToolsNotOffered
from memory.llm.settings import ServerSettings
from memory.llm.troubles import RAISED, model_names, of_exception

__all__ = [
    "Finished",
    "ModelServer",
    "Piece",
    "Reasoning",
    "ServerSettings",
    "Text",
    "ToolRequest",
    "ToolsNotOffered",
]

LONGEST_DETAIL = 200
LOOK = 0.25  # seconds between two looks at `stopped`
GATHER = 0.03  # seconds in which pieces gather; a page is told of them 20 times a second at most

# On DEBUG these write down requests, which hold the conversation, and headers.
for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True)
class _Over:
    """Nothing more comes: the answer is complete, or this is what went wrong."""

    error: Exception | None


class ModelServer:
    """One model server. One object serves all threads, which share its connections and what it has learned."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._client: tuple[int, openai.AsyncOpenAI] | None = None
        self._without_tools: frozenset[str] = frozenset()  # the models that were found to refuse tools
        self._without_effort: frozenset[str] = frozenset()
        self._without_form: frozenset[tuple[str, str]] = frozenset()  # (model, kind of answer that was refused)

    @property
    def supports_tools(self) -> bool:
        """Whether the next request offers the tools it is given. Under 'auto' True until the server refused them."""
        return self._offers_tools(self.settings.model)

    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] = (),
        effort: str | None = None,
        stopped: Callable[[], bool],
        model: str | None = None,
    ) -> Generator[Piece]:
        """The answer to `messages`, in pieces as they come, ending with Finished; asked for when first iterated.

        `stopped` is looked at before the request and then at least every LOOK seconds, also while the model is
        silent; when it says True the iteration ends quietly, without Finished. That, and closing the iterator,
        closes the connection at once. Raises ModelError, after all pieces that came before the trouble.
        `model` is another of the server's models than the settings name.
        """
        settings = self.settings
        patience = Patience(first=settings.first, between=settings.between, whole=settings.whole)
        ask = Ask(model=model or settings.model, messages=messages, tools=tuple(tools), effort=effort or "")
        return self._answer(ask, patience, stopped)

    def call(
        self,
        messages: Sequence[Message],
        *,
        timeout: float,
        model: str | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> str:
        """The text of one plain answer, reasoning left out, all within `timeout` seconds. Raises ModelError.

        `response_format` is the protocol's own, of the type `json_schema` or `json_object`. A server that refuses the
        first is asked for the second, one that refuses both for any text, and neither is tried again for that model.
        """
        ask = Ask(
            model=model or self.settings.model, messages=messages, response_format=response_format, streamed=False
        )
        text = "".join(piece.text for piece in self._answer(ask, within(timeout), _never) if isinstance(piece, Text))
        if not text.strip():
            raise EmptyAnswer  # tool calls and nothing else, though no tool was offered
        return text

    def ping(self, *, timeout: float = 10.0) -> tuple[str, ...]:
        """The names of the models on offer, empty when the server answers but keeps no list. Raises ModelError."""
        try:
            return asyncio.run_coroutine_threadsafe(self._models(timeout), model_loop()).result()
        except (NotAModelServer, NoSuchModel):
            ask = Ask(model=self.settings.model, messages=[{"role": "user", "content": "ping"}])
            with contextlib.closing(self._answer(ask, within(timeout), _never)) as answer:
                next(answer)  # the first piece is proof enough; closing saves the rest
            return ()

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None and client[0] == os.getpid():
            asyncio.run_coroutine_threadsafe(client[1].close(), model_loop()).result()

    def _offers_tools(self, model: str) -> bool:
        return self.settings.tools == "on" or (self.settings.tools == "auto" and model not in self._without_tools)

    def _answer(self, ask: Ask, patience: Patience, stopped: Callable[[], bool]) -> Generator[Piece]:
        if stopped():
            return
        arrived: queue.SimpleQueue[Piece | _Over] = queue.SimpleQueue()
        reading = asyncio.run_coroutine_threadsafe(self._read(ask, patience, arrived.put), model_loop())
        over = False
        try:
            for item in _until(stopped, arrived):
                if isinstance(item, _Over):
                    over = True
                    if item.error is not None:
                        raise item.error
                    return
                yield item
        finally:
            if not over:
                reading.cancel()

    # The rest runs on the loop's thread alone, so what is learned needs no lock: other threads see the one
    # frozenset or the next.

    async def _read(self, ask: Ask, patience: Patience, put: Callable[[Piece | _Over], None]) -> None:
        """Put the pieces and then _Over; every end but being cancelled puts it."""
        began = asyncio.get_running_loop().time()
        wanted = replace(
            ask,
            tools=ask.tools if self._offers_tools(ask.model) else (),
            effort="" if ask.model in self._without_effort else ask.effort,
        )
        while (wanted.model, wanted.form) in self._without_form:
            wanted = wanted.plainer()
        keep_tools = self.settings.tools == "on"
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout_at(began + min(patience.first, patience.whole)):
                    sent, body = await accepted(self._openai(), wanted, stack, keep_tools=keep_tools)
                self._learn(wanted, sent)
                if ask.tools and not sent.tools:
                    put(ToolsNotOffered())
                await read_pieces(body, patience, began, put)
                put(_Over(None))
                await drained(body)
        except Exception as error:
            # A bug, too, must reach the thread that waits.
            put(_Over(self._trouble(error)))

    def _learn(self, wanted: Ask, sent: Ask) -> None:
        """Remember what the server did without. Only an accepted request teaches; a refusal may just mention tools."""
        if wanted.tools and not sent.tools:
            self._without_tools |= {wanted.model}
        if wanted.effort and not sent.effort:
            self._without_effort |= {wanted.model}
        while wanted.form != sent.form:
            self._without_form |= {(wanted.model, wanted.form)}
            wanted = wanted.plainer()

    async def _models(self, timeout: float) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(timeout):
                response = await self._openai().models.with_raw_response.list()
            return model_names(response.text)
        except RAISED as error:
            raise self._trouble(error) from None

    def _trouble(self, error: Exception) -> Exception:
        """The error as ours; the server's own words may quote the key, so it is taken out of them."""
        trouble = of_exception(error, now=datetime.now(UTC))
        if isinstance(trouble, ModelError):
            words = trouble.detail.replace(self.settings.key, "…") if self.settings.key else trouble.detail
            trouble.detail = words[:LONGEST_DETAIL]
        return trouble

    def _openai(self) -> openai.AsyncOpenAI:
        """The client, made on first use, as it belongs to the loop. A forked child makes its own."""
        if self._client is None or self._client[0] != os.getpid():
            self._client = os.getpid(), open_client(self.settings)
        return self._client[1]


def _never() -> bool:
    return False


def _until(stopped: Callable[[], bool], arrived: "queue.SimpleQueue[Piece | _Over]") -> Iterator[Piece | _Over]:
    """What arrives, until `stopped` says True at one of the looks.

    A model sends a word at a time. Waking a thread for each would cost more than all else with many replies at once, so
    after the first piece they are taken as they have gathered.
    """
    looked = time.monotonic()
    while True:
        with contextlib.suppress(queue.Empty):
            yield arrived.get(timeout=LOOK)
            while time.monotonic() - looked < LOOK:
                yield arrived.get_nowait()
        time.sleep(GATHER)
        if time.monotonic() - looked >= LOOK:
            looked = time.monotonic()
            if stopped():
                return
