"""How the server is: what it needs to remember and to reply, each with its remedy. Reads nobody's words."""

import platform
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import celery
import django
from django.conf import settings
from django.db import connection
from django.db.models import Sum
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from memory import tasks, wording
from memory.folder.clock import utc_now
from memory.llm.errors import ModelError
from memory.models import FolderFacts, ModelCalls, WorkerSeen

WORKER_SILENT = timedelta(minutes=3)
"""A worker sweeps each minute; one that has not for so long is gone, or stuck."""
QUEUE_OLD = timedelta(minutes=15)
LITTLE_SPACE = 1_000_000_000
LITTLE_SHARE = 0.05
PING_SECONDS = 3.0

_MODEL_REMEDIES = {
    "unreachable": gettext_lazy("See whether the server at PREVIOUSLY_MODEL_URL runs and can be reached from here."),
    "timed_out": gettext_lazy("The server took too long for a small question: see how busy it is."),
    "bad_key": gettext_lazy("Set another PREVIOUSLY_MODEL_KEY: the server does not accept this one."),
    "no_such_model": gettext_lazy("Set PREVIOUSLY_MODEL to one that the server has."),
    "not_a_model_server": gettext_lazy("Correct PREVIOUSLY_MODEL_URL: what answers there is no model server."),
    "out_of_quota": gettext_lazy("The account at the model server is used up: see to it there."),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at. `well` is None when nothing can be said against or for it."""

    name: str
    state: str
    well: bool | None
    remedy: str = ""
    """What to do; '' while there is nothing to do."""


def look(*, ask_model: bool) -> list[Finding]:
    """Look at everything; the model server is asked only on request, for that may take seconds."""
    now = utc_now()
    data: Path = settings.PREVIOUSLY.data_dir
    sums = FolderFacts.objects.aggregate(
        owed=Sum("owed", default=0), failed=Sum("failed_closes", default=0), uncommitted=Sum("uncommitted", default=0)
    )
    return [
        _worker(now),
        _queue(data / "pending", now),
        _owed(sums["owed"]),
        _closes(sums["failed"]),
        _commits(sums["uncommitted"]),
        _folders(),
        _disk(data),
        _model(now, ask=ask_model),
        _versions(),
    ]


def _worker(now: datetime) -> Finding:
    seen = WorkerSeen.objects.order_by("-at").first()
    well = seen is not None and now - seen.at < WORKER_SILENT
    inside = settings.PREVIOUSLY.worker_inside
    start = _("Start “manage.py serve” again.") if inside else _("Start one: celery -A previously_site worker.")
    return Finding(
        name=_("Worker"),
        state=_("seen %(ago)s ago") % {"ago": _span(now - seen.at)} if seen else _("none has ever been seen"),
        well=well,
        remedy="" if well else _("Nobody replies and nobody remembers until a worker runs.") + " " + start,
    )


def _queue(pending: Path, now: datetime) -> Finding:
    times = [marker.stat().st_mtime for marker in pending.glob("*")]
    if not times:
        return Finding(name=_("Queue"), state=_("nothing is waiting"), well=True)
    age = timedelta(seconds=max(0.0, now.timestamp() - min(times)))
    count = ngettext("%(count)d person", "%(count)d people", len(times)) % {"count": len(times)}
    well = age < QUEUE_OLD
    return Finding(
        name=_("Queue"),
        state=_("work is due for %(people)s, the oldest for %(age)s") % {"people": count, "age": _span(age)},
        well=well,
        remedy=""
        if well
        else _("See whether the worker and the model server answer, and what the log says of these people's ids."),
    )


def _owed(count: int) -> Finding:
    return Finding(
        name=_("Replies owed"),
        state=str(count),
        well=count == 0 or None,
        remedy=_("They are written as soon as the worker and the model server answer.") if count else "",
    )


def _closes(count: int) -> Finding:
    return Finding(
        name=_("Closes that failed"),
        state=str(count),
        well=count == 0,
        remedy=_(
            "The model gave no usable answer about a slice that closed. It is asked again within the hour; the slice"
            " has plain marks until then. If it stays so, try another PREVIOUSLY_MODEL_ANALYST."
        )
        if count
        else "",
    )


def _commits(count: int) -> Finding:
    return Finding(
        name=_("Commits that wait"),
        state=str(count),
        well=count == 0 or None,
        remedy=_("Every word is on disk; the worker commits them. If they stay, look for folders in trouble.")
        if count
        else "",
    )


def _folders() -> Finding:
    count = FolderFacts.objects.exclude(trouble="").count()
    return Finding(
        name=_("Folders in trouble"),
        state=str(count),
        well=count == 0,
        remedy=_("The list of people says which, and what to do.") if count else "",
    )


def _disk(data: Path) -> Finding:
    usage = shutil.disk_usage(data)
    well = usage.free > LITTLE_SPACE and usage.free > LITTLE_SHARE * usage.total
    words = {"free": filesizeformat(usage.free), "total": filesizeformat(usage.total)}
    return Finding(
        name=_("Disk"),
        state=_("%(free)s free of %(total)s") % words,
        well=well,
        remedy="" if well else _("Make room: on a full disk no message can be taken in."),
    )


def _model(now: datetime, *, ask: bool) -> Finding:
    configured = settings.PREVIOUSLY
    if not configured.model:
        remedy = _("Set PREVIOUSLY_MODEL_URL and PREVIOUSLY_MODEL; until then the chat is a journal.")
        return Finding(name=_("Model"), state=_("none is set"), well=None, remedy=remedy)
    calls = ModelCalls.objects.filter(hour__gt=now - timedelta(hours=24)).aggregate(
        count=Sum("count", default=0), errors=Sum("errors", default=0)
    )
    counted = _("%(count)d requests in a day, %(errors)d of them failed") % calls
    if not ask:
        return Finding(name=_("Model"), state=f"{configured.model}: {counted}", well=None)
    try:
        offered = tasks.model_server(configured.model).ping(timeout=PING_SECONDS)
    except ModelError as error:
        return Finding(
            name=_("Model"),
            state=_("%(model)s cannot be asked; %(counted)s") % {"model": configured.model, "counted": counted},
            well=False,
            remedy=str(_MODEL_REMEDIES.get(error.code) or wording.failure(error.code)),
        )
    well = not offered or configured.model in offered
    return Finding(
        name=_("Model"),
        state=_("the server answers; %(counted)s") % {"counted": counted},
        well=well,
        remedy="" if well else str(_MODEL_REMEDIES["no_such_model"]),
    )


def _versions() -> Finding:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    with connection.cursor() as cursor:
        name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(connection.vendor, connection.vendor)
        cursor.execute("SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version")
        database = f"{name} {cursor.fetchone()[0]}"
    said = (
        f"Python {platform.python_version()}",
        f"Django {django.get_version()}",
        f"Celery {celery.__version__}",
        git.strip(),
        database,
    )
    return Finding(name=_("Versions"), state=" · ".join(said), well=None)


_UNITS = (
    (86_400, ngettext_lazy("%(count)d day", "%(count)d days", "count")),
    (3_600, ngettext_lazy("%(count)d hour", "%(count)d hours", "count")),
    (60, ngettext_lazy("%(count)d minute", "%(count)d minutes", "count")),
    (1, ngettext_lazy("%(count)d second", "%(count)d seconds", "count")),
)


def _span(length: timedelta) -> str:
    """A length of time in its largest unit."""
    seconds = max(0, int(length.total_seconds()))
    size, words = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    return str(words % {"count": seconds // size})
