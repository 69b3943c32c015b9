"""Numbers for Prometheus, in its text format: what is owed, how old it is, what the model does, how big folders are.

They come from rows that the worker keeps and from the names of pending markers, so they cost the same however many
slices there are, and no folder is opened.
"""

import shutil
from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Max, Q, Sum

from memory.health import WORKER_SILENT
from memory.models import FolderFacts, ModelCalls, WorkerSeen

Sample = tuple[str, float]
"""Labels as they stand in the line, '' for none, and the value."""


def text(now: datetime) -> str:
    """All of it, a metric after the other."""
    lines: list[str] = []
    for name, kind, meaning, samples in _metrics(now):
        lines += [f"# HELP previously_{name} {meaning}", f"# TYPE previously_{name} {kind}"]
        lines += [f"previously_{name}{labels} {value:.15g}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _metrics(now: datetime) -> Iterator[tuple[str, str, str, list[Sample]]]:
    facts = FolderFacts.objects.aggregate(
        folders=Count("pk", filter=Q(size__gt=0)),
        slices=Sum("slices", default=0),
        bytes=Sum("size", default=0),
        largest=Max("size", default=0),
        owed=Sum("owed", default=0),
        closes=Sum("closes", default=0),
        failed=Sum("failed_closes", default=0),
        commits=Sum("uncommitted", default=0),
        trouble=Count("pk", filter=~Q(trouble="")),
    )
    waiting = _markers()
    workers = [at for at in WorkerSeen.objects.values_list("at", flat=True) if now - at < WORKER_SILENT]
    yield "replies_owed", "gauge", "Messages that wait for their reply.", [("", facts["owed"])]
    yield "people_pending", "gauge", "People for whom work may be due.", [("", len(waiting))]
    age = max(0.0, now.timestamp() - min(waiting)) if waiting else 0.0
    yield "queue_age_seconds", "gauge", "How long the oldest due work has lain untouched.", [("", age)]
    yield "closes_due", "gauge", "Slices that have closed and are not worked up yet.", [("", facts["closes"])]
    yield "closes_failed", "gauge", "Of these, those whose analysis failed and is tried again.", [("", facts["failed"])]
    yield "commits_waiting", "gauge", "Commits that could not be made yet.", [("", facts["commits"])]
    yield "folders", "gauge", "Folders with at least one commit.", [("", facts["folders"])]
    yield "folders_in_trouble", "gauge", "Folders that need somebody to look at them.", [("", facts["trouble"])]
    yield "folder_bytes", "gauge", "Bytes of all repositories together.", [("", facts["bytes"])]
    yield "folder_bytes_largest", "gauge", "Bytes of the largest repository.", [("", facts["largest"])]
    yield "slices", "gauge", "Slices in all folders.", [("", facts["slices"])]
    yield "workers", "gauge", "Worker processes that have swept within three minutes.", [("", len(workers))]
    yield "disk_free_bytes", "gauge", "Free bytes below the data folder.", [("", _free())]
    yield from _model(now)


def _model(now: datetime) -> Iterator[tuple[str, str, str, list[Sample]]]:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = (
        ModelCalls.objects.filter(hour__gte=midnight)
        .values("kind")
        .annotate(calls=Sum("count"), failed=Sum("errors"), spent=Sum("seconds"))
        .order_by("kind")
    )
    found = [(f'{{kind="{row["kind"]}"}}', row) for row in rows]
    since = "since midnight UTC"
    for name, meaning, key in (
        ("model_calls_total", f"Requests to the model {since}.", "calls"),
        ("model_errors_total", f"Requests to the model that failed, {since}.", "failed"),
        ("model_seconds_total", f"Seconds that requests to the model took, {since}.", "spent"),
    ):
        yield name, "counter", meaning, [(labels, row[key]) for labels, row in found]


def _markers() -> list[float]:
    """When each marker of due work was last touched, in seconds since 1970."""
    times = []
    for marker in (settings.PREVIOUSLY.data_dir / "pending").glob("*"):
        try:
            times.append(marker.stat().st_mtime)
        except FileNotFoundError:
            continue  # the work was done while we looked
    return times


def _free() -> float:
    return float(shutil.disk_usage(settings.PREVIOUSLY.data_dir).free)
