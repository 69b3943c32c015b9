from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory.llm.client import ModelServer, ServerSettings
from tests.model_server.fixture import ModelServerProcess, model_server, model_server_process

__all__ = ["model_server", "model_server_process"]

KEY = "sk-alices-secret-key-0123456789"


@pytest.fixture
def connect(model_server: ModelServerProcess) -> Iterator[Callable[..., ModelServer]]:
    """Makes a client of the model server, with settings of one's choice."""
    made: list[ModelServer] = []

    def connect(**settings: Any) -> ModelServer:
        made.append(ModelServer(ServerSettings(**{"url": model_server.url, "key": KEY, "model": "talker", **settings})))
        return made[-1]

    yield connect
    for server in made:
        server.close()
