"""`manage.py restore SOURCE`: a backup brought back into an empty data folder."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from previously_site.backing_up import Refused
from previously_site.restoring import restore

REFUSED = 2


class Command(BaseCommand):
    help = (
        "Bring a backup back into an empty data folder, whole or not at all. Ends with 2 when nothing was done, and"
        " says why. Search indexes are made again by the first search; what was owed is found by the first sweep."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, help="the directory that `manage.py backup` made")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            restore(options["source"].absolute(), tell=self.stdout.write)
        except Refused as error:
            raise CommandError(str(error), returncode=REFUSED) from error
        except OSError as error:
            remedy = "see to the disk and its rights, then restore again"
            raise CommandError(
                f"The backup could not be brought back ({error}): {remedy}.", returncode=REFUSED
            ) from error
