"""The search index kept up with the folder. Derived, and local to a host: trouble with it is logged, never raised."""

import logging
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import UUID

from memory.folder.errors import FolderError, LockTimeout
from memory.folder.paths import slice_ids
from memory.folder.search import NoIndex, SearchIndex
from memory.folder.store import MemoryFolder

FEW = 200
"""So many slices are read while somebody waits; more are left to the background."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Making:
    """How far an index is that is being made: slices read, and of how many."""

    done: int
    of: int


def index_slice(folder: MemoryFolder, slice_id: str) -> None:
    """Make the index hold a slice as it is now; where there is no index yet, it is made."""
    index = SearchIndex(folder.index_file)
    try:
        if index.file.exists():
            index.replace(folder.slice(slice_id))
        else:
            catch_up(folder)
    except (FolderError, OSError) as error:
        log.warning("slice %s is not in the index of %s yet: %s", slice_id, folder.root.name, error)


def catch_up(folder: MemoryFolder) -> None:
    """Bring the index up to the folder, wherever its last commits were made; `making` tells others how far it is."""
    if not folder.exists():
        return  # deleted meanwhile, and so is its index
    note = _note(folder)

    def tell(done: int, of: int) -> None:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = note.with_name(f"{note.name}.{os.getpid()}")
        new.write_text(f"{done} {of}", "ascii")
        os.replace(new, note)

    try:
        SearchIndex(folder.index_file).catch_up(folder, progress=tell)
    except LockTimeout as error:
        log.info("the search index of %s is being made by somebody else: %s", folder.root.name, error)
    except (FolderError, OSError) as error:
        log.warning("the search index of %s is behind: %s", folder.root.name, error)
        note.unlink(missing_ok=True)
    else:
        note.unlink(missing_ok=True)


def caught_up(folder: MemoryFolder) -> bool:
    """Bring the index up to the folder as far as that takes a moment only.

    False when there is more to do than somebody should wait for, which is `catch_up`'s; an index that is there answers
    as it stands meanwhile.
    """
    index = SearchIndex(folder.index_file)
    try:
        return index.learn(folder, most=FEW)
    except NoIndex:
        if len(list(islice(slice_ids(folder.root), FEW + 1))) > FEW:
            return False
        catch_up(folder)
        return index.file.exists()
    except (FolderError, OSError) as error:
        log.warning("the search index of %s is behind: %s", folder.root.name, error)
        return False


def making(folder: MemoryFolder) -> Making | None:
    """How far the index that is being made is; None when nobody has said."""
    try:
        done, of = _note(folder).read_text("ascii").split()
        return Making(int(done), int(of))
    except (OSError, ValueError):
        return None


def forget_gone(cache: Path, folders: Path) -> int:
    """Delete from a cache of indexes what belongs to folders that are no more; the number of files.

    An index is named by its folder, and so is whatever lies beside it. Other files are left alone.
    """
    gone = 0
    for file in cache.glob("*.sqlite3*"):
        name = file.name.partition(".")[0]
        if _is_folder_name(name) and not (folders / name).exists():
            try:
                file.unlink(missing_ok=True)
                gone += 1
            except OSError as error:
                log.warning("%s belongs to no folder and cannot be deleted: %s", file.name, error)
    return gone


def _note(folder: MemoryFolder) -> Path:
    return folder.index_file.with_name(f"{folder.index_file.name}.progress")


def _is_folder_name(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
