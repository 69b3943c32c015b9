from tests.llm.conftest import connect
from tests.model_server.fixture import model_server, model_server_process

__all__ = ["connect", "model_server", "model_server_process"]
