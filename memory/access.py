"""The only door to a folder: from a signed-in user to that user's own files, and to nobody else's."""

from typing import Any

from django.conf import settings
from django.http import Http404

from memory.conversation.person import Person
from memory.folder.clock import known_zone
from memory.folder.closing import limits
from memory.folder.errors import BadId, NotThere
from memory.folder.paths import parse_slice_path
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder, Places


def folder_of(user: Any) -> MemoryFolder:
    """The user's own folder, which need not exist yet. It is named by the account's UUID, never by anything chosen."""
    return MemoryFolder(places(str(user.pk)))


def places(user_id: str) -> Places:
    """Where a user's files are."""
    data = settings.PREVIOUSLY.data_dir
    return Places(root=data / "folders" / user_id, run=data / "run" / user_id, pending=data / "pending" / user_id)


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
