"""A backup while people talk: accounts, the secret key, and each folder's whole history.

The database is copied first, then every folder is settled and bundled, so a folder is never older than the accounts
and holds each message that was taken before the backup began. Nothing is read from a live repository's files: git
makes the bundles. All of it is made in a hidden directory beside the target and renamed into place at the end.
"""

import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import django
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from git import Git

from accounts.models import User
from memory import access
from memory.conversation.settle import settle
from memory.folder.bundle import head_of
from memory.folder.clock import utc_now
from memory.folder.errors import FolderError
from memory.folder.flushed import flush_directory, flush_file
from memory.folder.gitdir import FORMAT_VERSION
from memory.folder.store import MemoryFolder
from previously_site import manifest as manifests
from previously_site.manifest import DATABASE, DUMP, KEY, MANIFEST, Manifest, SavedFile, SavedFolder

DETACHED = "refs/heads/restored"
"""The branch on which a folder is restored that stood on none."""
SHOWN_PATHS = 5

Tell = Callable[[str], object]


class Refused(Exception):
    """Nothing was done; the text says why and what to do."""


def backup(target: Path, *, tell: Tell) -> list[str]:
    """Make a backup as the new directory `target`; returns what is missing in it, a sentence each.

    Raises Refused when the target is there already or lies in the data folder, and OSError.
    """
    if os.path.lexists(target):
        raise Refused(f"{target} exists already: name a directory that is not there yet.")
    if target.resolve().is_relative_to(settings.DATA_DIR.resolve()):
        raise Refused(f"{target} lies in the data folder and would be lost with it: name a directory elsewhere.")
    people = [str(pk) for pk in User.objects.order_by("date_joined").values_list("pk", flat=True)]
    missing: list[str] = []
    with _made_whole(target) as place:
        database = _database(place, target, tell)
        folders = tuple(_folders(place, people, missing, tell))
        manifest = Manifest(
            made=utc_now(),
            folder_format=FORMAT_VERSION,
            versions={"python": platform.python_version(), "django": django.__version__, "git": _git_version()},
            migrations=applied_migrations(),
            database=database,
            secret_key=_secret_key(place, tell),
            folders=folders,
        )
        _write(place / MANIFEST, [manifests.render(manifest).encode()])
    tell(f"{target}: {len(folders)} folders of {len(people)} people.")
    return missing


def applied_migrations() -> dict[str, str]:
    """The last migration of each of our own apps that this database has."""
    names = sorted(MigrationRecorder(connection).applied_migrations())
    return {app: name for app, name in names if app in ("accounts", "memory")}


@contextmanager
def _made_whole(target: Path) -> Iterator[Path]:
    """A directory for its owner alone that takes the name `target` at the end, or is gone."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = target.with_name(f".{target.name}-unfinished-{os.getpid()}")
    place.mkdir(mode=0o700)
    try:
        yield place
        for directory in (*(path for path in place.iterdir() if path.is_dir()), place):
            flush_directory(directory)
        if os.path.lexists(target):
            raise Refused(f"{target} was made by somebody else meanwhile: name another directory.")
        os.rename(place, target)
        flush_directory(target.parent)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _database(place: Path, target: Path, tell: Tell) -> SavedFile | None:
    if connection.vendor != "sqlite":
        url = (
            '"$PREVIOUSLY_DATABASE_URL"'
            if os.environ.get("PREVIOUSLY_DATABASE_URL")
            else '"$(cat "$PREVIOUSLY_DATABASE_URL_FILE")"'
        )
        tell(
            "The accounts are in PostgreSQL and not in this backup. Run this beside it:\n"
            f"  pg_dump --format=custom --file={target}/{DUMP} --dbname={url}"
        )
        return None
    copy = place / DATABASE
    with (
        closing(sqlite3.connect(settings.DATABASES["default"]["NAME"], timeout=60)) as source,
        closing(sqlite3.connect(copy)) as made,
    ):
        source.backup(made)
        made.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal beside it
        [[said]] = made.execute("PRAGMA quick_check(1)").fetchall()
    if said != "ok":
        raise Refused(f"The database is damaged ({said}): bring an earlier backup of it back.")
    copy.chmod(0o600)
    flush_file(copy)
    return manifests.measured(copy)


def _secret_key(place: Path, tell: Tell) -> SavedFile | None:
    if settings.PREVIOUSLY.secret_key:
        tell("The secret key comes from the environment and is not in this backup: keep it where you keep the others.")
        return None
    _write(place / KEY, [f"{settings.SECRET_KEY}\n".encode()])
    return manifests.measured(place / KEY)


def _folders(place: Path, people: list[str], missing: list[str], tell: Tell) -> Iterator[SavedFolder]:
    (place / "folders").mkdir(mode=0o700)
    step = max(1, len(people) // 20)
    for number, person in enumerate(people, 1):
        folder = MemoryFolder(access.places(person))
        if folder.exists():
            try:
                yield _folder(place, person, folder, missing, tell)
            except FolderError as error:
                missing.append(f"{person}: not in the backup: {error}. Run `manage.py doctor {person}`.")
        if number % step == 0 or number == len(people):
            tell(f"{number} of {len(people)} people")


def _folder(place: Path, person: str, folder: MemoryFolder, missing: list[str], tell: Tell) -> SavedFolder:
    """Commit all that was said, then bundle. Raises FolderError."""
    waits = settle(folder, now=utc_now(), unended=True)
    if waits:
        missing.append(f"{person}: its last words could not be committed ({waits}). Run `manage.py doctor {person}`.")
    if left_out := _by_hand(folder):
        tell(f"{person}: {left_out}")
    repository = folder.repository
    branch = repository.branch() or DETACHED
    head, bundle = None, None
    if repository.tip():
        path = place / "folders" / f"{person}.bundle"
        _write(path, repository.bundle())
        # The list of the bundle, not the folder, says where it ends: people may have gone on talking.
        head, bundle = head_of(path), manifests.measured(path)
    return SavedFolder(person=person, format=repository.format(), head=head, branch=branch, bundle=bundle)


def _by_hand(folder: MemoryFolder) -> str:
    """Name files that somebody changed and has not committed: they are theirs to commit, and no bundle holds them."""
    with folder.files_lock(timeout=30.0):
        ours = folder.state.touched().keys() | folder.state.index_due().keys()
        paths = [path for row in folder.repository.status() if (path := row[3:]) not in ours]
    if not paths:
        return ""
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    shown = ", ".join(map(ascii, paths[:SHOWN_PATHS]))
    return f"changed by hand and not committed, so not in the backup: {shown}{more}. Commit them with git."


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        try:
            for piece in pieces:
                file.write(piece)
        except BaseException:
            path.unlink()  # half a bundle is none
            raise
        file.flush()
        os.fsync(file.fileno())


def _git_version() -> str:
    return ".".join(map(str, Git().version_info))
