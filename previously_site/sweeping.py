"""The timer of the sweep: one thread a worker process, at the start and each minute after."""

import logging
import threading

from django.db import close_old_connections

from previously_site.stopping import stopping

SECONDS_BETWEEN = 60

logger = logging.getLogger(__name__)


def start() -> threading.Thread:
    """Start the timer thread; it ends when the process is told to stop."""
    thread = threading.Thread(target=_sweep_until_stopped, name="sweep", daemon=True)
    thread.start()
    return thread


def _sweep_until_stopped() -> None:
    from memory.tasks import sweep_now

    while True:
        try:
            sweep_now()
        except Exception:
            # One bad pass must not end the timer: the next one may find the disk or the database back.
            logger.exception("The sweep failed; it is tried again in %s seconds", SECONDS_BETWEEN)
        finally:
            close_old_connections()
        if stopping.wait(SECONDS_BETWEEN):
            return
