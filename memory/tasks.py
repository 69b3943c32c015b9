"""What runs in the worker: thin tasks that carry ids, find the person and their folder, and call one function.

Nothing is retried or delayed by the broker; what is owed is on disk and the sweep finds it. A task never makes a
folder: one for a person or a folder that is gone logs that and ends.
"""

import logging
import os
import socket
from functools import lru_cache, partial

from celery import Task, shared_task
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import close_old_connections, connections
from kombu.exceptions import OperationalError

from accounts.models import User
from memory import access
from memory.conversation import answer as answering
from memory.conversation import close as closing
from memory.conversation.companion import Companion
from memory.conversation.due import Answer, Close, Job, Settle, due
from memory.conversation.inflight import sweep_old
from memory.conversation.settle import clear_marker, renew_strands
from memory.conversation.settle import settle as settle_folder
from memory.folder import locks, todo
from memory.folder.clock import utc_now
from memory.folder.errors import BadId, Damaged, FolderError, LockTimeout, NotThere
from memory.folder.paths import parse_slice_id, parse_turn_id
from memory.folder.store import MemoryFolder
from memory.llm.client import ModelServer, ServerSettings
from memory.models import WorkerSeen
from previously_site.stopping import stopping

log = logging.getLogger(__name__)


def enqueue(user_id: str, job: Job) -> bool:
    """Hand a job to the broker; False when it cannot be reached: the work stays due on disk, and only waits.

    Waits a second for the broker at most. The files that the job is about are flushed already.
    """
    match job:
        case Answer(slice_id, turn_id):
            return _publish(answer, user_id, slice_id, turn_id)
        case Close(slice_id, step):
            return _publish(CLOSE_STEPS[step], user_id, slice_id)
        case Settle():
            return _publish(settle, user_id)


@shared_task
def answer(user_id: str, slice_id: str, turn_id: str) -> None:
    """Answer a turn, or the earlier one that is still owed a reply."""
    user = _user(user_id)
    folder = user and _folder(user)
    if not user or not folder:
        return
    person = access.person_of(user, browser_zone=_zone(folder, slice_id))
    connections.close_all()  # the model is waited for without holding a database connection
    answering.answer(
        folder,
        parse_slice_id(slice_id),
        parse_turn_id(turn_id),
        companion=companion(),
        person=person,
        clock=utc_now,
        enqueue=partial(enqueue, user_id),
    )
    clear_marker(folder, now=utc_now())


@shared_task
def analyse_close(user_id: str, slice_id: str) -> None:
    """First step of a close pass: the marks of the slice."""
    _step(user_id, slice_id, todo.ANALYSE_CLOSE)


@shared_task
def evolve_card(user_id: str, slice_id: str) -> None:
    """Second step: what the slice says about the person goes into their card."""
    _step(user_id, slice_id, todo.EVOLVE_CARD)


@shared_task
def backfill(user_id: str, slice_id: str) -> None:
    """Third step: a few older slices get the marks they lack."""
    _step(user_id, slice_id, todo.BACKFILL)


@shared_task
def consolidate_strands(user_id: str, slice_id: str) -> None:
    """Fourth step: strands and timeline are made new."""
    _step(user_id, slice_id, todo.CONSOLIDATE_STRANDS)


@shared_task
def upkeep(user_id: str, slice_id: str) -> None:
    """Last step: one commit for the pass, and the repository is kept small."""
    _step(user_id, slice_id, todo.UPKEEP)


CLOSE_STEPS: dict[str, Task] = {
    todo.ANALYSE_CLOSE: analyse_close,
    todo.EVOLVE_CARD: evolve_card,
    todo.BACKFILL: backfill,
    todo.CONSOLIDATE_STRANDS: consolidate_strands,
    todo.UPKEEP: upkeep,
}


@shared_task
def settle(user_id: str) -> None:
    """Commit what was written without a turn, or could not be committed before. Calls no model."""
    user = _user(user_id)
    folder = user and _folder(user)
    connections.close_all()
    if folder:
        renew_strands(folder, now=utc_now())
        settle_folder(folder, now=utc_now())
        clear_marker(folder, now=utc_now())


@shared_task
def sweep() -> None:
    """Enqueue whatever is due for anybody."""
    sweep_now()


def sweep_now() -> int:
    """Enqueue what is due for every person with a pending marker; the number of jobs. One sweep at a time."""
    data = settings.PREVIOUSLY.data_dir
    WorkerSeen.objects.update_or_create(name=f"{socket.gethostname()}-{os.getpid()}", defaults={"at": utc_now()})
    try:
        with locks.held(data / "sweep.lock", timeout=0):
            return sum(_sweep_person(marker.name) for marker in sorted((data / "pending").glob("*")))
    except LockTimeout:
        return 0


@lru_cache(maxsize=1)
def companion() -> Companion:
    """The companion that the settings describe, one a process."""
    configured = settings.PREVIOUSLY
    model = None
    if configured.model:
        model = ModelServer(
            ServerSettings(
                url=configured.model_url,
                key=configured.model_key,
                model=configured.model,
                analyst=configured.model_analyst,
                tools=configured.model_tools,
                context=configured.model_context,
            )
        )
    return Companion(model=model, stopping=stopping.is_set)


def _sweep_person(user_id: str) -> int:
    user = _user(user_id)
    if user is None:
        return 0
    folder = access.folder_of(user)
    now = utc_now()
    try:
        jobs = due(folder, now)
        for job in jobs:
            enqueue(user_id, job)
        sweep_old(folder.state.directory, now)
        if not jobs:
            clear_marker(folder, now=now)
    except (FolderError, OSError) as error:
        log.warning("the sweep passes over %s: %s", user_id, error)
        return 0
    return len(jobs)


def _step(user_id: str, slice_id: str, step: str) -> None:
    """Run a step of a close pass and enqueue what is due after it."""
    user = _user(user_id)
    folder = user and _folder(user)
    if not user or not folder:
        return
    person = access.person_of(user, browser_zone=_zone(folder, slice_id))
    connections.close_all()
    slice_id = parse_slice_id(slice_id)
    if closing.run_step(folder, slice_id, step, companion=companion(), person=person, now=utc_now()):
        clear_marker(folder, now=utc_now())
        for job in due(folder, utc_now()):
            if isinstance(job, Close):
                enqueue(user_id, job)


def _user(user_id: str) -> User | None:
    close_old_connections()
    try:
        return User.objects.get(pk=user_id)
    except (User.DoesNotExist, ValidationError):
        log.warning("there is no account %s; its task ends", user_id)
        return None


def _folder(user: User) -> MemoryFolder | None:
    folder = access.folder_of(user)
    if folder.exists():
        return folder
    log.warning("account %s has no folder; its task ends", user.pk)
    return None


def _zone(folder: MemoryFolder, slice_id: str) -> str:
    try:
        return folder.slice(slice_id).timezone
    except (BadId, NotThere, Damaged):
        return ""


def _publish(task: Task, *arguments: str) -> bool:
    try:
        task.apply_async(arguments)
    except (OperationalError, OSError) as error:
        log.warning("the broker is not there, %s waits for the sweep: %s", task.name, error)
        return False
    return True
