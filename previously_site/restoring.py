"""A backup brought back into an empty data folder, whole or not at all.

Everything is checked and made below `.restoring` in the data folder, then renamed into place. Each folder gets our own
skeleton; of the backup it takes objects, branches and files, never a configuration, hooks or alternates.
"""

import os
import shutil
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from accounts.models import User
from memory.folder import git
from memory.folder.errors import FolderError
from memory.folder.flushed import flush_directory
from memory.folder.git import Repository
from memory.folder.gitdir import FORMAT_VERSION
from previously_site import manifest as manifests
from previously_site.backing_up import Refused, Tell
from previously_site.manifest import DATABASE, DUMP, KEY, MANIFEST, Manifest, SavedFolder, Unreadable

STAGING = ".restoring"
HARMLESS = frozenset({STAGING, KEY, "lost+found"})
"""What an empty data folder may hold: an earlier try, the key that starting a command makes, a volume's own."""


def restore(source: Path, *, tell: Tell) -> None:
    """Fill the data folder from the backup `source`. Raises Refused, and then nothing has changed; OSError."""
    manifest = _checked(source, tell)
    data = settings.DATA_DIR
    _is_empty(data)
    _is_for_this_database(manifest, source)
    staging = data / STAGING
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700)
    try:
        _folders(manifest, source, staging, tell)
        _copies(manifest, source, staging)
        os.sync()
        _into_place(manifest, staging, data)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _tell_of_the_key(manifest, tell)
    tell(f"{len(manifest.folders)} folders are back, as of {manifest.made:%Y-%m-%d %H:%M} UTC. Start serve now.")


def _checked(source: Path, tell: Tell) -> Manifest:
    """The manifest of a backup that this version can read and of which no byte is missing. Raises Refused."""
    try:
        manifest = manifests.parse((source / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        raise Refused(f"{source} holds no {MANIFEST}: name the directory that `manage.py backup` made.") from None
    except UnicodeDecodeError:
        raise Refused(f"{source / MANIFEST} is damaged: take another backup.") from None
    except Unreadable as error:
        raise Refused(f"{source / MANIFEST}: {error}. Take another backup, or a newer Previously.") from None
    newest = max([manifest.folder_format, *(folder.format for folder in manifest.folders)])
    if newest > FORMAT_VERSION:
        raise Refused(
            f"The folders in {source} have format {newest}, and this version reads up to {FORMAT_VERSION}:"
            " restore with the version that made the backup, or a newer one."
        )
    ours = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    for app, name in manifest.migrations.items():
        if (app, name) not in ours:
            raise Refused(f"The accounts in {source} were made by a newer version ({app} {name}): upgrade first.")
    files = manifest.files()
    for number, (name, saved) in enumerate(files.items(), 1):
        path = source / name
        if path.is_symlink() or not path.is_file():
            raise Refused(f"{path} is missing: the backup is not whole, take another one.")
        if manifests.measured(path) != saved:
            raise Refused(f"{path} is damaged or was cut short: take another backup.")
        if number % max(1, len(files) // 20) == 0:
            tell(f"{number} of {len(files)} files checked")
    return manifest


def _is_empty(data: Path) -> None:
    found = sorted({path.name for path in data.iterdir()} - HARMLESS)
    if found:
        raise Refused(
            f"The data folder {data} is not empty (it holds {', '.join(found[:5])}): name an empty one with"
            " PREVIOUSLY_DATA_DIR, or move what is in it away."
        )


def _is_for_this_database(manifest: Manifest, source: Path) -> None:
    if manifest.database is None:
        dump = f'pg_restore --no-owner --clean --if-exists --dbname="$PREVIOUSLY_DATABASE_URL" {source / DUMP}'
        if connection.vendor == "sqlite":
            raise Refused("The accounts of this backup are in PostgreSQL: set PREVIOUSLY_DATABASE_URL, then " + dump)
        try:
            there = {str(pk) for pk in User.objects.values_list("pk", flat=True)}
        except DatabaseError as error:
            why = str(error).strip().splitlines()[0]
            raise Refused(f"The accounts are not in the database yet ({why}). First {dump}") from error
        missing = [folder.person for folder in manifest.folders if folder.person not in there]
        if missing:
            raise Refused(f"The database lacks the accounts of {len(missing)} folders. First {dump}")
    elif connection.vendor != "sqlite":
        raise Refused("The accounts of this backup are in SQLite: restore without PREVIOUSLY_DATABASE_URL.")
    elif Path(settings.DATABASES["default"]["NAME"]).exists():
        name = settings.DATABASES["default"]["NAME"]
        raise Refused(
            f"There is a database already, {name}: move it away, or name another with PREVIOUSLY_DATABASE_URL."
        )


def _folders(manifest: Manifest, source: Path, staging: Path, tell: Tell) -> None:
    for name in ("folders", "pending"):
        (staging / name).mkdir(mode=0o700)
    step = max(1, len(manifest.folders) // 20)
    for number, saved in enumerate(manifest.folders, 1):
        try:
            _folder(saved, source, staging)
        except FolderError as error:
            raise Refused(f"{source / saved.file} cannot be used: {error}. Take another backup.") from error
        # Whatever was due when the backup was made is found by the first sweep.
        (staging / "pending" / saved.person).touch(mode=0o600)
        if number % step == 0:
            tell(f"{number} of {len(manifest.folders)} folders made")


def _folder(saved: SavedFolder, source: Path, staging: Path) -> None:
    root = staging / "folders" / saved.person
    git.create(root, format_version=saved.format)
    if saved.head is None:
        return
    repository = Repository(root, staging / "run")
    repository.restore_from(source / saved.file, head=saved.head, branch=saved.branch)
    if complaints := repository.fsck():
        raise FolderError(f"git fsck: {complaints[0]}")


def _copies(manifest: Manifest, source: Path, staging: Path) -> None:
    for name, saved in ((DATABASE, manifest.database), (KEY, manifest.secret_key)):
        if saved:
            shutil.copyfile(source / name, staging / name)
            (staging / name).chmod(0o600)


def _into_place(manifest: Manifest, staging: Path, data: Path) -> None:
    # First what may lie on another volume and so may fail; the others are renames within the data folder.
    if manifest.database:
        shutil.move(staging / DATABASE, settings.DATABASES["default"]["NAME"])
    if manifest.secret_key:
        os.replace(staging / KEY, data / KEY)
    for name in ("folders", "pending"):
        os.rename(staging / name, data / name)
    flush_directory(data)


def _tell_of_the_key(manifest: Manifest, tell: Tell) -> None:
    if manifest.secret_key is None and not settings.PREVIOUSLY.secret_key:
        tell("The backup holds no secret key: set PREVIOUSLY_SECRET_KEY as it was, or everybody signs in anew.")
    elif manifest.secret_key and settings.PREVIOUSLY.secret_key:
        tell("PREVIOUSLY_SECRET_KEY is set and counts; if it is not the one of the backup, everybody signs in anew.")
