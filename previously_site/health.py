"""What watches from outside: `/healthz` (the process), `/readyz` (all it needs), `/metrics` (numbers, for a token).

Probes ask by address, over plain http, and would fail the checks on host and scheme: so this is middleware, in front
of those checks. Strangers learn one word; the bearer of PREVIOUSLY_METRICS_TOKEN is told what is wrong.
"""

import hmac
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from kombu.exceptions import OperationalError

from memory.folder.clock import utc_now
from memory.health import WORKER_SILENT
from memory.models import WorkerSeen
from previously_site import metrics
from previously_site.celery import app

JUST_STARTED_SECONDS = 90.0
"""So long a server with its worker inside is believed to have one: it sweeps within the first minute."""

_begun = time.monotonic()
Handler = Callable[[HttpRequest], HttpResponseBase]


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing without which messages are not taken or not answered, and what to do when it is `missing`."""

    name: str
    missing: str = ""
    remedy: str = ""


def probes(get_response: Handler) -> Handler:
    """Answer the three addresses, and hand on everything else."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        match request.path_info:
            case "/healthz":
                return _plain("ok\n")
            case "/readyz":
                return _ready(request)
            case "/metrics":
                return _metrics(request)
            case _:
                return get_response(request)

    return middleware


def needs() -> Iterator[Need]:
    """Look at the database, the data folder, the worker and the broker; seconds at most, nobody's words."""
    database = Need(name="database")
    seen = None
    try:
        seen = WorkerSeen.objects.order_by("-at").first()
    except DatabaseError as error:
        database = Need(
            name="database", missing=_first_line(error), remedy="Check PREVIOUSLY_DATABASE_URL and the server."
        )
    yield database
    yield _data()
    yield _worker(seen)
    yield _broker()


def _ready(request: HttpRequest) -> HttpResponse:
    found = list(needs())
    status = 503 if any(need.missing for need in found) else 200
    if not _may_know(request):
        return _plain("ok\n" if status == 200 else "not ready\n", status=status)
    told = {need.name: {"ok": not need.missing, "what": need.missing, "remedy": need.remedy} for need in found}
    response = _plain(json.dumps(told, indent=2) + "\n", status=status)
    response["Content-Type"] = "application/json"
    return response


def _metrics(request: HttpRequest) -> HttpResponse:
    if not _may_know(request):
        return _plain("not found\n", status=404)
    response = _plain(metrics.text(utc_now()))
    response["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8"
    return response


def _may_know(request: HttpRequest) -> bool:
    token: str = settings.PREVIOUSLY.metrics_token
    said = request.headers.get("Authorization", "")
    return bool(token) and hmac.compare_digest(said.encode(), f"Bearer {token}".encode())


def _data() -> Need:
    try:
        # The name is never seen: what is written goes with the handle.
        with tempfile.TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(b"?")
            file.flush()
    except OSError as error:
        remedy = "Free some space, or give this user the rights to PREVIOUSLY_DATA_DIR; no message is taken until then."
        return Need(name="data", missing=error.strerror or str(error), remedy=remedy)
    return Need(name="data")


def _worker(seen: WorkerSeen | None) -> Need:
    inside = settings.PREVIOUSLY.worker_inside
    if seen and utc_now() - seen.at < WORKER_SILENT:
        return Need(name="worker")
    if inside and time.monotonic() - _begun < JUST_STARTED_SECONDS:
        return Need(name="worker")
    remedy = "Start serve again." if inside else "Start one: celery -A previously_site worker."
    missing = f"not seen since {seen.at:%Y-%m-%d %H:%M:%S} UTC" if seen else "never seen"
    return Need(name="worker", missing=missing, remedy=f"{remedy} Messages are kept, and answered then.")


def _broker() -> Need:
    if settings.PREVIOUSLY.worker_inside:
        return Need(name="broker")
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=1)
    except (OperationalError, OSError) as error:
        remedy = "Check PREVIOUSLY_BROKER_URL and the server; messages are kept, and answered when it is back."
        return Need(name="broker", missing=_first_line(error), remedy=remedy)
    return Need(name="broker")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _plain(text: str, *, status: int = 200) -> HttpResponse:
    headers = {"Cache-Control": "no-store"}
    response = HttpResponse(text, status=status, content_type="text/plain; charset=utf-8", headers=headers)
    # Whoever probes is told; Django would write a line for each probe until all is well again.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response
