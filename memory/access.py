"""The only door to a folder: from a signed-in user to that user's own files, and to nobody else's."""

from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.http import Http404

from memory import pace
from memory.conversation.person import Person
from memory.folder import erasing
from memory.folder.clock import known_zone
from memory.folder.closing import limits
from memory.folder.errors import BadId, NotThere
from memory.folder.flushed import flush_directory
from memory.folder.paths import parse_slice_path
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Places


def folder_of(user: Any) -> MemoryFolder:
    """The user's own folder, which need not exist yet. It is named by the account's UUID, never by anything chosen."""
    return MemoryFolder(places(str(user.pk)))


def places(user_id: str) -> Places:
    """Where a user's files are."""
    data = settings.PREVIOUSLY.data_dir
    return Places(
        root=data / "folders" / user_id,
        run=data / "run" / user_id,
        pending=data / "pending" / user_id,
        index=settings.PREVIOUSLY.cache_dir / f"{user_id}.sqlite3",
        wanted=partial(has_account, user_id),
    )


def has_account(user_id: str) -> bool:
    """Whether there is an account with this UUID."""
    return get_user_model().objects.filter(pk=user_id).exists()


def stop_replies(user_id: str) -> None:
    """Ask that replies which are being written to this person end where they are."""
    erasing.ask_replies_to_stop(places(str(UUID(user_id))).run)


def begin_erasing(user_id: str) -> None:
    """Note on disk that this person's account and files go, so that a crash does not leave half of them."""
    marker = _erasing() / str(UUID(user_id))
    marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker.touch(mode=0o600)
    flush_directory(marker.parent)


def erase(user_id: str) -> None:
    """Remove all files of a person whose account is gone, and the note of `begin_erasing`. Raises OSError."""
    pace.forget(user_id)
    erasing.erase(places(str(UUID(user_id))))
    (_erasing() / user_id).unlink(missing_ok=True)


def half_erased() -> list[str]:
    """Of whom `begin_erasing` was said and `erase` has not come to its end."""
    noted = _erasing()
    return [marker.name for marker in noted.iterdir()] if noted.is_dir() else []


def _erasing() -> Path:
    data: Path = settings.PREVIOUSLY.data_dir
    return data / "erasing"


def person_of(user: Any, *, browser_zone: str = "") -> Person:
    """The person as a conversation needs to know them; the browser's zone counts until they have chosen one."""
    configured = settings.PREVIOUSLY
    return Person(
        name=user.called,
        language=user.language or configured.language,
        timezone=known_zone(user.timezone) or known_zone(browser_zone) or known_zone(configured.time_zone) or "UTC",
        limits=limits(user.slice_minutes, user.slice_turns),
    )


def slice_or_404(folder: MemoryFolder, slice_path: str) -> Slice:
    """The slice a URL names; Http404 for one that is not there or is no slice path. Raises Damaged."""
    try:
        return folder.slice(parse_slice_path(slice_path))
    except (BadId, NotThere) as error:
        raise Http404("no such slice") from error
