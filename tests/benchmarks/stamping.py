"""A model server whose words say when they were sent: `python -m tests.benchmarks.stamping --words-per-second 40`.

A word is `17:1786397422123`, its number from 1 and milliseconds since 1970. How many come is said in the message,
`say 400 words`; every 40 words a paragraph ends, unless the message asks for them `in one piece`. A request that is
not to be streamed gets an empty JSON object.
"""

import argparse
import asyncio
import json
import re
import time
from contextlib import suppress
from typing import Any

PARAGRAPH = 40
_ASKED = re.compile(r"say (\d+) words( in one piece)?")


def message(words: int, *, in_one_piece: bool) -> str:
    """What a person says to get so many words."""
    return f"Please say {words} words{' in one piece' if in_one_piece else ''}."


async def serve(port: int, words_per_second: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = re.search(r"content-length: (\d+)", head)
                body = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
                await _answer(writer, body, words_per_second)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
        await server.serve_forever()


async def _answer(writer: asyncio.StreamWriter, body: dict[str, Any], words_per_second: float) -> None:
    if not body.get("stream"):
        text = json.dumps({"choices": [{"index": 0, "finish_reason": "stop",
                                        "message": {"role": "assistant", "content": "{}"}}]}).encode()  # fmt: skip
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text))
        writer.write(text)
        await writer.drain()
        return
    said = next(one["content"] for one in reversed(body["messages"]) if one["role"] == "user")
    asked = _ASKED.search(said)
    count = int(asked[1]) if asked else 1
    whole = bool(asked and asked[2])
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    clock = asyncio.get_running_loop().time
    begun = clock()
    for number in range(1, count + 1):
        if (wait := begun + number / words_per_second - clock()) > 0:
            await asyncio.sleep(wait)
        after = "\n\n" if not whole and number % PARAGRAPH == 0 else " "
        _event(writer, json.dumps(_chunk({"content": f"{number}:{time.time_ns() // 1_000_000}{after}"}, None)))
        await writer.drain()
    _event(writer, json.dumps(_chunk({}, "stop")))
    _event(writer, "[DONE]")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _chunk(delta: dict[str, str], reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "talker", "choices": [choice]}


def _event(writer: asyncio.StreamWriter, data: str) -> None:
    line = f"data: {data}\n\n".encode()
    writer.write(b"%x\r\n%b\r\n" % (len(line), line))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stamping", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--words-per-second", type=float, default=40)
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, options.words_per_second))


if __name__ == "__main__":
    main()
