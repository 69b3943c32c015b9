"""`manage.py backup TARGET`: accounts, secret key and every folder with its history, while people talk."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from previously_site.backing_up import Refused, backup

INCOMPLETE, REFUSED = 1, 2


class Command(BaseCommand):
    help = (
        "Make a backup as a new directory. It may run while people talk: every message taken before it began is in it."
        " Ends with 0 when it is whole, 1 when something is missing in it (each is named), 2 when nothing was done."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", type=Path, help="a directory that is not there yet")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            missing = backup(options["target"].absolute(), tell=self.stdout.write)
        except Refused as error:
            raise CommandError(str(error), returncode=REFUSED) from error
        except OSError as error:
            remedy = "free some space or name another place; nothing was left behind"
            raise CommandError(f"The backup could not be written ({error}): {remedy}.", returncode=REFUSED) from error
        for sentence in missing:
            self.stderr.write(sentence)
        if missing:
            raise CommandError("The backup was made, but is not whole.", returncode=INCOMPLETE)
