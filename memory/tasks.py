"""What runs in the worker: thin tasks that carry ids, find the person and their folder, and call one function.

Nothing is retried or delayed by the broker; what is owed is on disk and the sweep finds it. A task never makes a
folder: one for a person or a folder that is gone logs that and ends.
"""

import logging
import os
import socket
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from celery import Task, shared_task
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, close_old_connections, connections
from kombu.exceptions import OperationalError

from accounts import leaving
from accounts.models import User
from memory import access, facts
from memory.conversation import answer as answering
from memory.conversation import close as closing
from memory.conversation import indexing
from memory.conversation.companion import Companion
from memory.conversation.due import Answer, Close, Job, Settle, due
from memory.conversation.inflight import sweep_old
from memory.conversation.settle import clear_marker, renew_strands
from memory.conversation.settle import settle as settle_folder
from memory.folder import erasing, locks, todo
from memory.folder.clock import utc_now
from memory.folder.errors import BadId, Damaged, FolderError, LockTimeout, NotThere
from memory.folder.paths import parse_slice_id, parse_turn_id
from memory.folder.store import MemoryFolder
from memory.llm.client import ModelServer, ServerSettings
from memory.llm.structured import Called
from memory.models import ModelCalls, WorkerSeen
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
    if not user or not folder or not user.is_active:
        return
    person = access.person_of(user, browser_zone=_zone(folder, slice_id))
    connections.close_all()  # the model is waited for without holding a database connection
    answering.answer(
        folder,
        parse_slice_id(slice_id),
        parse_turn_id(turn_id),
        companion=companion(user),
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
    """Last step: one commit for the pass, and the repository is kept small. The folder is counted."""
    _step(user_id, slice_id, todo.UPKEEP)
    user = _user(user_id)
    folder = user and _folder(user)
    if folder:
        facts.count(user_id, folder, utc_now())


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
def index(user_id: str) -> None:
    """Bring the search index up to the folder, or make it. Calls no model."""
    user = _user(user_id)
    folder = user and _folder(user)
    connections.close_all()
    if folder:
        indexing.catch_up(folder)


def enqueue_index(user_id: str) -> bool:
    """Have the search index made in the background; False when the broker cannot be reached."""
    return _publish(index, user_id)


@shared_task
def sweep() -> None:
    """Enqueue whatever is due for anybody."""
    sweep_now()


def sweep_now() -> int:
    """Enqueue what is due for every person with a pending marker; the number of jobs. One sweep at a time."""
    data = settings.PREVIOUSLY.data_dir
    # Before the lock: each host has indexes of its own.
    indexing.forget_gone(settings.PREVIOUSLY.cache_dir, data / "folders")
    WorkerSeen.objects.update_or_create(name=f"{socket.gethostname()}-{os.getpid()}", defaults={"at": utc_now()})
    try:
        with locks.held(data / "sweep.lock", timeout=0):
            _finish_erasing(data)
            markers = sorted((data / "pending").glob("*"))
            jobs = sum(_sweep_person(marker) for marker in markers)
            facts.nothing_unfinished(but=[marker.name for marker in markers])
            facts.count_missing(utc_now())
            return jobs
    except LockTimeout:
        return 0


def work_off(*, progress: Callable[[Job], object]) -> int:
    """Do everything that is due here and now, without a broker; the number of jobs done.

    For one process that has the data folder to itself or shares it: the locks are the same as the workers'.
    """
    done = 0
    for marker in sorted((settings.PREVIOUSLY.data_dir / "pending").glob("*")):
        user_id, tried = marker.name, set[Job]()
        user = _user(user_id)
        while user and (jobs := [job for job in _due_now(user) if job not in tried]):
            tried.add(jobs[0])
            if isinstance(jobs[0], Close):
                closing.take_up(access.folder_of(user), jobs[0].slice_id)
            _run_here(user_id, jobs[0])
            progress(jobs[0])
            done += 1
    return done


def _due_now(user: User) -> list[Job]:
    return _allowed(user, due(access.folder_of(user), utc_now()))


def _run_here(user_id: str, job: Job) -> None:
    match job:
        case Answer(slice_id, turn_id):
            answer(user_id, slice_id, turn_id)
        case Close(slice_id, step):
            CLOSE_STEPS[step](user_id, slice_id)
        case Settle():
            settle(user_id)


def companion(user: User) -> Companion:
    """The companion that the settings describe, with the model and the effort that the person has chosen."""
    configured = settings.PREVIOUSLY
    chosen = user.model if user.model in configured.models_allowed else configured.model
    return Companion(
        model=model_server(chosen) if chosen else None,
        effort=user.effort,
        card_wait=configured.card_wait_seconds,
        stopping=stopping.is_set,
        called=count_call,
    )


@lru_cache
def model_server(model: str) -> ModelServer:
    """The server that the settings name, to answer with this model; one a process, with its connections."""
    configured = settings.PREVIOUSLY
    return ModelServer(
        ServerSettings(
            url=configured.model_url,
            key=configured.model_key,
            model=model,
            analyst=configured.model_analyst,
            tools=configured.model_tools,
            context=configured.model_context,
        )
    )


def count_call(call: Called) -> None:
    """Add a call to the hour's numbers. Holds no connection afterwards: the next thing may be a wait for the model."""
    try:
        ModelCalls.add(call.kind, failed=not call.ok, seconds=call.seconds, now=utc_now())
    except DatabaseError as error:
        log.warning("a call of the kind %s is not counted: %s", call.kind, error)
    finally:
        connections.close_all()


def _finish_erasing(data: Path) -> None:
    """Go on with deletions of accounts that were cut short, and remove what late writers have left behind."""
    for user_id in access.half_erased():
        try:
            leaving.finish(user_id)
        except OSError as error:
            log.error("the files of the deleted account %s cannot be removed: %s", user_id, error)
    for name in ("folders", "run"):
        erasing.clear_leftovers(data / name)
    erasing.clear_strays(data / "run", data / "folders", wanted=access.has_account)


def _sweep_person(marker: Path) -> int:
    user_id = marker.name
    user = _user(user_id)
    if user is None:
        marker.unlink(missing_ok=True)
        return 0
    folder = access.folder_of(user)
    now = utc_now()
    try:
        jobs = _allowed(user, due(folder, now))
        for job in jobs:
            if isinstance(job, Close):
                closing.take_up(folder, job.slice_id)
            enqueue(user_id, job)
        facts.count_unfinished(user_id, folder, now)
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
    if not user or not folder or not user.is_active:
        return
    person = access.person_of(user, browser_zone=_zone(folder, slice_id))
    connections.close_all()
    slice_id = parse_slice_id(slice_id)
    if closing.run_step(folder, slice_id, step, companion=companion(user), person=person, now=utc_now()):
        clear_marker(folder, now=utc_now())
        for job in due(folder, utc_now()):
            if isinstance(job, Close):
                enqueue(user_id, job)


def _allowed(user: User, jobs: list[Job]) -> list[Job]:
    """Of a closed account only commits are made: nobody is answered, no model is asked."""
    return jobs if user.is_active else [job for job in jobs if isinstance(job, Settle)]


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
