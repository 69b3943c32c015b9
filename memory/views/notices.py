"""What a page tells a person beside the conversation: what happened, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from memory import wording
from memory.folder.errors import FolderError
from memory.folder.paths import path_of
from memory.folder.store import MemoryFolder
from memory.folder.timeline import DamagedSlice


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One notice; `alarm` when something did not work. A link stands behind the text."""

    text: str
    alarm: bool = False
    link: str = ""
    link_text: str = ""


def of_folder(folder: MemoryFolder, newest: Iterable[object]) -> list[Notice]:
    """What is wrong with the folder that the person should know while talking."""
    notices = [damaged(found) for found in newest if isinstance(found, DamagedSlice)]
    if folder.exists():
        try:
            why = folder.repository.busy()
        except (FolderError, OSError) as error:
            notices.append(Notice(text=_("Nothing can be committed to your folder: %s") % error, alarm=True))
        else:
            if why:
                notices.append(Notice(text=wording.busy(why)))
    return notices


def damaged(found: DamagedSlice) -> Notice:
    """A slice cannot be read; it was left as it is."""
    return Notice(
        text=_("The slice %(id)s cannot be read. It was left as it is; what you say goes into another one.")
        % {"id": found.id},
        link=reverse("slice", args=[path_of(found.id)]),
        link_text=_("See what is wrong"),
    )


def elsewhere(slice_path: str, turn_id: str) -> Notice:
    """The conversation went on in another tab or on another device."""
    return Notice(
        text=_("Continued elsewhere."),
        link=reverse("reply", args=[slice_path, turn_id]),
        link_text=_("Reload to see all of it"),
    )


def delayed() -> Notice:
    """The message is safe, but nobody could be told to answer it."""
    return Notice(
        text=_("Your message is saved. Replies are delayed at the moment: yours comes once the worker is back.")
    )


def refused(text: str) -> Notice:
    """The message was not taken."""
    return Notice(text=text, alarm=True)
