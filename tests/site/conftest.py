"""The model server, for tests of a whole site."""

from tests.model_server.fixture import model_server, model_server_process

__all__ = ["model_server", "model_server_process"]
