"""The numbers of each folder, kept in a row a person, so that the administration sees them without opening a folder."""

import logging
from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime

from django.db import DatabaseError

from accounts.models import User
from memory import access
from memory.conversation import facts
from memory.folder.errors import FolderError
from memory.folder.store import MemoryFolder
from memory.models import FolderFacts

A_SWEEP = 20
"""At most so many folders are counted for the first time in one sweep, for the sweep has other things to do."""

log = logging.getLogger(__name__)


def count(person_id: str, folder: MemoryFolder, now: datetime) -> None:
    """Count a folder and keep the numbers. Trouble is logged: the numbers stay as they were then."""
    try:
        found = asdict(facts.facts(folder)) | asdict(facts.unfinished(folder, now))
    except (FolderError, OSError) as error:
        log.warning("the folder of %s could not be counted: %s", person_id, error)
        return
    try:
        FolderFacts.objects.update_or_create(person_id=person_id, defaults=found | {"at": now})
    except DatabaseError as error:  # the account may have gone meanwhile
        log.warning("the numbers of %s are not kept: %s", person_id, error)


def count_unfinished(person_id: str, folder: MemoryFolder, now: datetime) -> None:
    """Keep what is still to do for a person. Raises FolderError and OSError."""
    FolderFacts.objects.filter(person_id=person_id).update(**asdict(facts.unfinished(folder, now)))


def nothing_unfinished(*, but: Collection[str]) -> None:
    """Note that nothing is left to do for anybody but these people: nobody else has a marker of due work."""
    nothing = asdict(facts.Unfinished())
    for row in FolderFacts.objects.exclude(owed=0, closes=0, failed_closes=0, uncommitted=0):
        if str(row.person_id) not in but:
            FolderFacts.objects.filter(pk=row.pk).update(**nothing)


def count_missing(now: datetime) -> None:
    """Count folders that have never been counted: of new people, and of all after an upgrade."""
    for person in User.objects.filter(facts=None)[:A_SWEEP]:
        count(str(person.pk), access.folder_of(person), now)
