"""What a backup says of itself: `manifest.json`, read strictly, for the files beside it are found by it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from memory.folder.clock import parse_stamp, stamp
from memory.folder.gitdir import is_oid

LAYOUT = 1
"""The layout of backups that this code makes, and the newest that it reads."""

MANIFEST = "manifest.json"
DATABASE = "database.sqlite3"
DUMP = "database.pgdump"
KEY = "secret_key"


class Unreadable(Exception):
    """The manifest is no manifest of ours, or of a later version; its text says which."""


@dataclass(frozen=True, kw_only=True)
class SavedFile:
    """How a file of the backup was when it was written: its size in bytes and its SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class SavedFolder:
    """One person's folder: the commit it stands at (None before the first), its branch, and its bundle."""

    person: str
    format: int
    head: str | None
    branch: str
    bundle: SavedFile | None

    @property
    def file(self) -> str:
        """Where the bundle lies in the backup."""
        return f"folders/{self.person}.bundle"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The whole backup. Without `database` the accounts are in a dump of PostgreSQL beside it."""

    made: datetime
    folder_format: int
    versions: dict[str, str]
    migrations: dict[str, str]
    database: SavedFile | None
    secret_key: SavedFile | None
    folders: tuple[SavedFolder, ...]

    def files(self) -> dict[str, SavedFile]:
        """Every file that has to be there, by its place in the backup."""
        found = {DATABASE: self.database, KEY: self.secret_key} | {one.file: one.bundle for one in self.folders}
        return {name: saved for name, saved in found.items() if saved}


def measured(path: Path) -> SavedFile:
    """A file's size and hash as they are now."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SavedFile(size=path.stat().st_size, sha256=digest)


def render(manifest: Manifest) -> str:
    """The manifest as its file."""
    return json.dumps({"layout": LAYOUT} | asdict(manifest) | {"made": stamp(manifest.made)}, indent=2) + "\n"


def parse(text: str) -> Manifest:
    """The manifest from its file; raises Unreadable."""
    try:
        row = json.loads(text)
        layout = int(row["layout"])
        if layout > LAYOUT:
            raise Unreadable(f"this backup has layout {layout}, and this version reads up to {LAYOUT}")
        return Manifest(
            made=parse_stamp(row["made"]),
            folder_format=int(row["folder_format"]),
            versions=dict(row["versions"]),
            migrations=dict(row["migrations"]),
            database=_file(row["database"]),
            secret_key=_file(row["secret_key"]),
            folders=tuple(map(_folder, row["folders"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable("it is no manifest of a backup, or was damaged") from error


def _file(row: dict[str, Any] | None) -> SavedFile | None:
    return SavedFile(size=int(row["size"]), sha256=str(row["sha256"])) if row else None


def _folder(row: dict[str, Any]) -> SavedFolder:
    head = row["head"]
    if str(UUID(row["person"])) != row["person"] or not (head is None or is_oid(head)):
        raise ValueError("not a folder of a backup")
    bundle = _file(row["bundle"])
    if (head is None) != (bundle is None):
        raise ValueError("a folder has a bundle exactly when it has commits")
    return SavedFolder(
        person=row["person"], format=int(row["format"]), head=head, branch=str(row["branch"]), bundle=bundle
    )
