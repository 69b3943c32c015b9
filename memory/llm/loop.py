"""The thread in which models are read: one event loop for all answers of the process.

An answer waits for the network nearly all of its time. On an event loop each wait can be given up at once, in every
phase: looking up the name, connecting, waiting for the headers, between two chunks. A thread that is blocked
in a read cannot be.
"""

import asyncio
import os
import threading

_lock = threading.Lock()
_running: tuple[int, asyncio.AbstractEventLoop] | None = None


def model_loop() -> asyncio.AbstractEventLoop:
    """The loop, its thread started on first use. A forked child, which inherits no threads, gets its own."""
    global _running
    with _lock:
        if _running is None or _running[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
            _running = os.getpid(), loop
        return _running[1]
