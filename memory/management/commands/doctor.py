"""`manage.py doctor`: what is wrong, and what to do about it."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from accounts.models import User
from memory import tasks
from memory.conversation.settle import settle
from memory.folder import checkup
from memory.folder.checkup import Finding
from memory.folder.clock import utc_now
from memory.folder.errors import FolderError
from memory.folder.search import SearchIndex
from memory.folder.store import MemoryFolder
from memory.llm.errors import ModelError
from memory.management import people
from previously_site import health

DATABASE = "database"


class Command(BaseCommand):
    help = (
        "Examine folders, database, broker and model; every complaint says what to do. Ends with 1 when something is"
        " wrong. --repair makes derived state anew and moves unreadable lines of closed slices to their appendix, in a"
        " commit of its own; no other byte of anybody's memory changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        people.add_argument(parser)
        parser.add_argument("--repair", action="store_true", help="mend what can be mended")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for finding in _server():
            wrong += 1
            self._tell("server", finding)
            if finding.path == DATABASE:
                raise CommandError("Nobody's folder can be found without the database.", returncode=1)
        for user, folder in people.asked_for(options):
            wrong += self._repair(user, folder) if options["repair"] else self._examine(user, folder)
        if wrong:
            raise CommandError(f"{wrong} things are wrong.", returncode=1)
        self.stdout.write("Everything is sound.")

    def _examine(self, user: User, folder: MemoryFolder) -> int:
        """Tell what is wrong with a folder; how many things."""
        found = 0
        for finding in _of_folder(folder):
            found += 1
            self._tell(str(user.pk), finding)
        if not found and folder.exists():
            self.stdout.write(f"{user.pk}: sound.")
        return found

    def _repair(self, user: User, folder: MemoryFolder) -> int:
        """Tell what is wrong and mend what can be; how many things are left."""
        found = list(_of_folder(folder))
        for finding in found:
            self._tell(str(user.pk), finding)
        if not folder.exists():
            return len(found)
        try:
            folder.state.mark_pending()  # what is written here and not committed is found by the sweep
            written = checkup.mend(folder, now=utc_now())
            waits = settle(folder, now=utc_now())
            if SearchIndex(folder.index_file).unsound():
                folder.index_file.unlink()
            SearchIndex(folder.index_file).catch_up(folder)
        except (FolderError, OSError) as error:
            self.stderr.write(f"{user.pk}: could not be mended: {error}")
            return max(1, len(found))
        told = f", but their commit waits ({waits})" if waits else ""
        self.stdout.write(
            f"{user.pk}: {len(written)} files mended{told}." if written else f"{user.pk}: nothing to mend."
        )
        return sum(not finding.mendable for finding in found)

    def _tell(self, where: str, finding: Finding) -> None:
        path = f" {finding.path}:" if finding.path else ""
        self.stdout.write(f"{where}:{path} {finding.what}. {finding.remedy}")


def _of_folder(folder: MemoryFolder) -> Iterator[Finding]:
    yield from checkup.examine(folder)
    if why := SearchIndex(folder.index_file).unsound():
        remedy = "--repair makes it anew; it is only a cache."
        yield Finding(
            path=folder.index_file.name, what=f"the search index is damaged ({why})", remedy=remedy, mendable=True
        )


def _server() -> Iterator[Finding]:
    """What is wrong beside people's folders."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            yield Finding(path=DATABASE, what="it is older than the code", remedy="Start serve, or run migrate.")
    except DatabaseError as error:
        yield Finding(path=DATABASE, what=str(error).strip(), remedy="Check PREVIOUSLY_DATABASE_URL and the server.")
    for need in health.needs():
        if need.missing and need.name not in (DATABASE, "worker"):  # a server that is stopped may be examined, too
            yield Finding(path=need.name, what=need.missing, remedy=need.remedy)
    yield from _of_nobody()
    yield from _model()


def _of_nobody() -> Iterator[Finding]:
    """Folders without an account: left by a database that is older than the folders, or put there by hand."""
    folders = settings.DATA_DIR / "folders"
    people_here = {str(pk) for pk in User.objects.values_list("pk", flat=True)}
    for path in sorted(folders.iterdir()) if folders.is_dir() else ():
        if not path.name.startswith(".") and path.name not in people_here:
            remedy = "Bring back the database that knows it, or move the folder away."
            yield Finding(path=f"folders/{path.name}", what="no account has this folder", remedy=remedy)


def _model() -> Iterator[Finding]:
    configured = settings.PREVIOUSLY
    if not configured.model:
        return
    try:
        names = tasks.model_server(configured.model).ping()
    except ModelError as error:
        remedy = "Check PREVIOUSLY_MODEL_URL and PREVIOUSLY_MODEL_KEY; replies fail until it answers."
        yield Finding(path="model", what=str(error), remedy=remedy)
    else:
        if names and configured.model not in names:
            remedy = f"Set PREVIOUSLY_MODEL to one of: {', '.join(names[:10])}"
            yield Finding(path="model", what=f"the server does not list {configured.model}", remedy=remedy)
