"""Whose folders a command is about."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.models import User
from memory import access
from memory.folder.store import MemoryFolder


def add_argument(parser: CommandParser) -> None:
    """Let the command be about one person instead of everybody."""
    parser.add_argument("person", nargs="?", help="an e-mail address or an account's id; without it, everybody")


def folders(options: dict[str, Any]) -> Iterator[tuple[User, MemoryFolder]]:
    """The people asked for who have a folder, with it. Raises CommandError for somebody who is not known."""
    yield from ((user, folder) for user, folder in asked_for(options) if folder.exists())


def asked_for(options: dict[str, Any]) -> Iterator[tuple[User, MemoryFolder]]:
    """The people asked for, with their folder, which may not be there. Raises CommandError as `folders` does."""
    wanted = options["person"]
    people = User.objects.order_by("date_joined")
    if wanted:
        try:
            people = people.filter(email__iexact=wanted) if "@" in wanted else people.filter(pk=wanted)
        except ValidationError:
            people = people.none()
        if not people.exists():
            raise CommandError(f"There is no account {wanted}. Give an e-mail address or the id in its folder's name.")
    for user in people.iterator():
        yield user, access.folder_of(user)
