"""Run by hand: `python -m tests.model_server --port 8001`, then set the model's address to the one it prints."""

import argparse
import asyncio
import contextlib

from tests.model_server.book import Book
from tests.model_server.server import start


async def serve(host: str, port: int, words_per_second: float) -> None:
    server = await start(Book(words_per_second=words_per_second), host=host, port=port)
    async with server:
        bound = server.sockets[0].getsockname()
        print(f"http://{bound[0]}:{bound[1]}/v1", flush=True)
        print(
            f"Try it with PREVIOUSLY_MODEL_URL=http://{bound[0]}:{bound[1]}/v1 and PREVIOUSLY_MODEL=talker", flush=True
        )
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.model_server", description="A friendly model server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001, help="0 is any free one")
    parser.add_argument("--words-per-second", type=float, default=40, help="0 is all at once")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.host, options.port, options.words_per_second))


if __name__ == "__main__":
    main()
