"""The Celery application and its worker: one set of habits, inside `serve` and on its own."""

import logging
import os
from typing import Any

from celery import Celery, Task
from celery.apps.worker import Worker
from celery.signals import task_prerun, worker_ready, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "previously_site.settings")


class PreviouslyWorker(Worker):
    """A worker that keeps to itself: no gossip, mingle or heartbeat, and no tasks from another process's memory."""

    def __init__(self, *args: Any, inside_serve: bool = False, **options: Any) -> None:
        if self.app.conf.broker_url.startswith("memory:") and not inside_serve:
            raise SystemExit(
                "With PREVIOUSLY_BROKER_URL=memory:// the worker runs inside `manage.py serve` and nowhere else."
                " Start serve, or set PREVIOUSLY_BROKER_URL to a Redis or Valkey server for web and worker."
            )
        if not inside_serve:
            self.app.conf.broker_transport_options = {"socket_connect_timeout": 5, "socket_timeout": 30}
        quiet_ways = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **(options | quiet_ways))


class PreviouslyCelery(Celery):
    @property
    def Worker(self) -> type[Worker]:  # noqa: N802 - Celery's own name for it
        worker: type[Worker] = self.subclass_with_self(PreviouslyWorker)
        return worker


log = logging.getLogger(__name__)

app = PreviouslyCelery("previously")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])


@worker_ready.connect
def name_tasks(sender: Any = None, **_: Any) -> None:
    """Say what this worker takes on, so that one with older code is noticed among several."""
    names = sorted(name.rpartition(".")[2] for name in app.tasks if not name.startswith("celery."))
    log.info("worker %s takes %s", getattr(sender, "hostname", "?"), ", ".join(names))


@task_prerun.connect
def name_worker(task: Task, args: Any = (), **_: Any) -> None:
    """Say which of several workers runs a task; a task carries ids alone."""
    log.info("worker %s runs %s", task.request.hostname, " ".join((task.name.rpartition(".")[2], *map(str, args))))


@worker_ready.connect
def start_sweeping(**_: Any) -> None:
    """Every worker process sweeps, for no broker is trusted with what is owed."""
    from previously_site.sweeping import start

    start()


@worker_shutting_down.connect
def stop_answering(**_: Any) -> None:
    """Answers in progress look at this flag between chunks; what they cut stays owed."""
    from previously_site.stopping import stopping

    stopping.set()
