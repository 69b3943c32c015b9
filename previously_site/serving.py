"""Everything in one process: the web server, the worker as a thread of it, and an orderly end.

The order at the end: no more connections, answers and streams see `stopping` between two pieces, three seconds for
them to finish, and in any case out after eight. An answer that is cut stays owed on disk.
"""

import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from celery.platforms import SecurityWarning
from celery.worker import state as worker_state
from django.conf import settings

from previously_site.celery import app
from previously_site.stopping import stopping

GRACE_SECONDS = 3
LAST_SECONDS = 7.5

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound


logger = logging.getLogger(__name__)
worker_lost = threading.Event()


class PortTaken(Exception):
    """Somebody else listens there already."""


class AddressUnusable(Exception):
    """The host is no address of this machine, or the port needs rights we lack. The text says which."""


def listen(host: str, port: int) -> socket.socket:
    """A bound, not yet listening socket; port 0 takes any free one. Raises PortTaken or AddressUnusable."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressUnusable(error.strerror or str(error)) from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken from error
        raise AddressUnusable(error.strerror or str(error)) from error
    return bound


def address(host: str, port: int) -> str:
    """The address to open in a browser on this machine."""
    shown = "localhost" if host in EVERY_ADDRESS else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"


def run(listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, then end the process. Does not return."""
    server = _Server(
        uvicorn.Config(
            "previously_site.asgi:application",
            log_config=None,
            # Paths and queries hold one-time links and what people search for.
            access_log=False,
            # Who the client is, is decided by our own count of trusted proxies.
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.force_exit = server.should_exit  # the second time the person means at once
        server.should_exit = True
        stopping.set()
        worker_state.should_stop = os.EX_OK

    # Requests, replies and streams share this process: a thread that renders gives way within a millisecond.
    sys.setswitchinterval(0.001)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=_leave_in_any_case, name="leave", daemon=True).start()
    worker = threading.Thread(target=_work, name="worker", daemon=True)
    if settings.PREVIOUSLY.worker_inside:
        worker.start()
    try:
        server.run(sockets=[listening])
    finally:
        stopping.set()
        worker_state.should_stop = os.EX_OK
        if worker.is_alive():
            worker.join(GRACE_SECONDS)
        _leave()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are ours: uvicorn would raise them again at its end and take the worker's last seconds away."""
        yield


def _work() -> None:
    """The worker, with the settings it has on its own; it ends when `worker_state.should_stop` is set."""
    # It warns of running as root, which matters where messages may carry code; ours carry ids as JSON.
    warnings.simplefilter("ignore", SecurityWarning)
    app.Worker(inside_serve=True, quiet=True, loglevel="WARNING").start()
    if not stopping.is_set():
        logger.critical("The worker has ended by itself; the server stops, so that whatever watches it starts it anew")
        worker_lost.set()
        os.kill(os.getpid(), signal.SIGTERM)


def _leave_in_any_case() -> None:
    stopping.wait()
    time.sleep(LAST_SECONDS)
    _leave()


def _leave() -> None:
    # At the ordinary end Python waits for every thread of the pool, and so for every model that is still talking.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(os.EX_SOFTWARE if worker_lost.is_set() else os.EX_OK)
