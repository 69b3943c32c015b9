"""The HTTP side: plain asyncio, so that connections can be cut, held and watched."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from tests.model_server.answers import Answer, error_body, rule_from
from tests.model_server.book import Book, Call
from tests.model_server.events import chunks, document


@dataclass(frozen=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class CutError(Exception):
    """The answer is to break off here."""


class Connection:
    """One connection: requests are answered one after the other until either side closes."""

    def __init__(self, book: Book, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._book = book
        self._reader = reader
        self._writer = writer
        self._ahead = b""

    async def serve(self) -> None:
        try:
            while request := await self._next_request():
                await self._serve_one(request)
        except (ConnectionError, CutError, asyncio.IncompleteReadError):
            self._writer.transport.abort()
        finally:
            self._writer.close()

    async def _next_request(self) -> Request | None:
        """The next request, or None when the client has closed."""
        try:
            head = self._ahead + await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        self._ahead = b""
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Request(method=method, path=path, headers=headers, body=body)

    async def _serve_one(self, request: Request) -> None:
        if request.path.startswith("/_control/"):
            await self._control(request)
        elif request.path.startswith("/v1/"):
            await self._model(request)
        else:
            await self._send_json(error_body(f"Not Found: {request.path}"), status=404)

    async def _model(self, request: Request) -> None:
        try:
            body = json.loads(request.body or b"{}")
        except ValueError:
            await self._send_json(error_body("The body is no JSON."), status=400)
            return
        call = Call(path=request.path.removeprefix("/v1"), headers=request.headers, body=body)
        answer = self._book.answer_to(call)
        self._book.calls.append(call)
        await self._book.mark(call)
        try:
            ended = "answered" if await self._unless_hung_up(self._answer(answer, call)) else "hung_up"
        except CutError:
            ended = "cut"
        await self._book.mark(call, ended=ended, waiting=False)
        if ended != "answered":
            raise CutError

    async def _unless_hung_up(self, answering: Coroutine[Any, Any, None]) -> bool:
        """Answer while watching for the client to close; False when it did."""
        answer = asyncio.create_task(answering)
        watch = asyncio.create_task(self._reader.read(1))
        try:
            await asyncio.wait({answer, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and watch.result():
                await asyncio.wait({answer})
            if not answer.done():
                return False
            answer.result()
        except ConnectionError:
            return False
        else:
            return True
        finally:
            await _given_up(answer)
            await _given_up(watch)
            if not watch.cancelled() and watch.exception() is None:
                self._ahead = watch.result()  # the next request had begun

    async def _answer(self, answer: Answer, call: Call) -> None:
        if answer.hang_after == -1:
            await self._hang(call)
        model = str(call.body.get("model", "talker"))
        if answer.status != 200 or answer.body is not None:
            await asyncio.sleep(answer.first_after)
            await self._send_body(answer)
        elif answer.whole or not call.body.get("stream"):
            await asyncio.sleep(answer.first_after)
            if answer.hang_after is not None:
                await self._hang(call)
            text = document(answer, model).encode()
            self._head(200, {"Content-Type": "application/json", "Content-Length": str(len(text)), **answer.headers})
            self._writer.write(text if answer.cut_after is None else text[: len(text) // 2])
            await self._writer.drain()
            if answer.cut_after is not None:
                raise CutError
        else:
            await self._stream(answer, call, chunks(answer, model))

    async def _stream(self, answer: Answer, call: Call, events: list[str]) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **answer.headers})
        await self._writer.drain()
        pause = answer.between or (1 / answer.words_per_second if answer.words_per_second else 0)
        clock = asyncio.get_running_loop().time
        due = clock() + answer.first_after
        if answer.done:
            events = [*events, "[DONE]"]
        for number, event in enumerate(events):
            if number == answer.cut_after:
                raise CutError
            if number == answer.hang_after:
                await self._hang(call)
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            due += pause
            self._chunk(event if event.startswith(":") else f"data: {event}")
            if pause:
                await self._writer.drain()
        if answer.cut_after is not None and answer.cut_after >= len(events):
            raise CutError
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def _hang(self, call: Call) -> None:
        released = self._book.released
        await self._book.mark(call, waiting=True)
        await released.wait()
        await self._book.mark(call, waiting=False)

    async def _control(self, request: Request) -> None:
        name = request.path.removeprefix("/_control/")
        value = json.loads(request.body or b"null")
        book = self._book
        result: Any = None
        if name == "script":
            book.script += [Answer(**answer) for answer in value]
        elif name == "rules":
            book.set_rules([rule_from(rule) for rule in value])
        elif name == "context":
            book.context_tokens = int(value)
        elif name == "clear":
            book.clear()
        elif name == "release":
            book.release()
        elif name == "calls":
            result = [asdict(call) for call in book.calls]
        elif name == "wait":
            result = await book.wait_until(_enough(book, value), value["timeout"])
        else:
            await self._send_json(error_body(f"no such control: {name}"), status=404)
            return
        await self._send_json(result)

    async def _send_body(self, answer: Answer) -> None:
        if isinstance(answer.body, str):
            kind, text = "text/html; charset=utf-8", answer.body
        else:
            kind, text = "application/json", json.dumps(answer.body)
        data = text.encode("utf-8", "surrogatepass")
        self._head(answer.status, {"Content-Type": kind, "Content-Length": str(len(data)), **answer.headers})
        self._writer.write(data)
        await self._writer.drain()

    async def _send_json(self, value: object, *, status: int = 200) -> None:
        await self._send_body(Answer(status=status, body=value))

    def _head(self, status: int, headers: dict[str, str]) -> None:
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self._writer.write("\r\n".join(lines).encode("latin-1"))

    def _chunk(self, line: str) -> None:
        data = f"{line}\n\n".encode("utf-8", "surrogatepass")
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))


def _enough(book: Book, value: dict[str, Any]) -> Callable[[], bool]:
    """Whether at least so many calls came, hang, were hung up on, or were answered."""

    def holds() -> bool:
        counts = {
            "calls": len(book.calls),
            "waiting": sum(call.waiting for call in book.calls),
            "hung_up": sum(call.ended == "hung_up" for call in book.calls),
            "answered": sum(call.ended == "answered" for call in book.calls),
        }
        return all(counts[name] >= least for name, least in value["least"].items())

    return holds


async def _given_up(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, ConnectionError, CutError):
        await task


async def start(book: Book, *, host: str, port: int) -> asyncio.Server:
    """Listen; the port 0 is any free one. A request body may be large, its head not."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(book, reader, writer).serve()

    return await asyncio.start_server(connected, host, port, backlog=256)
