"""`manage.py rebuild`: derived state made anew from the slices."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.conversation.settle import settle
from memory.folder import derived
from memory.folder.clock import utc_now
from memory.folder.errors import FolderError
from memory.folder.search import SearchIndex
from memory.management import people

OWNER = "rebuild strands and timeline"


class Command(BaseCommand):
    help = "Make strands, timeline and search index anew from the slices; nothing else is touched."

    def add_arguments(self, parser: CommandParser) -> None:
        people.add_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        failed = 0
        for user, folder in people.folders(options):
            try:
                made = derived.rebuild(folder)
                with folder.files_lock(timeout=30.0):
                    derived.put(folder, made, owner=OWNER, now=utc_now())
                waits = settle(folder, now=utc_now())
                folder.index_file.unlink(missing_ok=True)
                SearchIndex(folder.index_file).catch_up(folder)
            except (FolderError, OSError) as error:
                failed += 1
                self.stderr.write(f"{user.pk}: not rebuilt: {error}. Run `manage.py doctor {user.pk}`.")
            else:
                told = f", but its commit waits ({waits})" if waits else ""
                self.stdout.write(f"{user.pk}: {len(made.strands)} strands, {len(made.months)} months changed{told}.")
        if failed:
            raise CommandError(f"{failed} folders were not rebuilt.")
