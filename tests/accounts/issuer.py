"""A single sign-on server as small as one can be: it knows one person and trusts whoever asks."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Issuer:
    """Its address, and what it says of the person who signs in there."""

    url: str = ""
    person: dict[str, Any] = field(default_factory=dict)


@contextmanager
def running() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/.well-known/openid-configuration":
                self._say(
                    {
                        "issuer": issuer.url,
                        "authorization_endpoint": f"{issuer.url}/authorize",
                        "token_endpoint": f"{issuer.url}/token",
                        "userinfo_endpoint": f"{issuer.url}/userinfo",
                        "jwks_uri": f"{issuer.url}/keys",
                    }
                )
            else:
                self._say(issuer.person)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._say({"access_token": "a-token", "token_type": "Bearer"})

        def log_message(self, *_: Any) -> None:
            """Tests print enough."""

        def _say(self, what: dict[str, Any]) -> None:
            body = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
