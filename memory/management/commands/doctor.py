"""`manage.py doctor`: what is wrong, and what to do about it."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from kombu.exceptions import OperationalError

from memory import tasks
from memory.conversation.settle import settle
from memory.folder import checkup
from memory.folder.checkup import Finding
from memory.folder.clock import utc_now
from memory.folder.errors import FolderError
from memory.folder.search import SearchIndex
from memory.llm.errors import ModelError
from memory.management import people
from previously_site.celery import app


class Command(BaseCommand):
    help = (
        "Examine folders, database, broker and model; every complaint says what to do. Ends with 1 when something is"
        " wrong. --repair makes derived state anew and moves unreadable lines of closed slices to their appendix, each"
        " in a commit of its own; no other byte of anybody's memory changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        people.add_argument(parser)
        parser.add_argument("--repair", action="store_true", help="mend what can be mended")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for finding in _server():
            wrong += 1
            self._tell("server", finding)
        for user, folder in people.folders(options):
            found = list(checkup.examine(folder))
            for finding in found:
                self._tell(str(user.pk), finding)
            left = [finding for finding in found if not finding.mendable]
            if options["repair"]:
                try:
                    written = checkup.mend(folder, now=utc_now())
                    settle(folder, now=utc_now())
                    SearchIndex(folder.index_file).catch_up(folder)
                except (FolderError, OSError) as error:
                    self.stderr.write(f"{user.pk}: could not be mended: {error}")
                    left = found
                else:
                    self.stdout.write(f"{user.pk}: {len(written)} files mended." if written else f"{user.pk}: sound.")
            elif not found:
                self.stdout.write(f"{user.pk}: sound.")
            wrong += len(left) if options["repair"] else len(found)
        if wrong:
            raise CommandError(f"{wrong} things are wrong.", returncode=1)
        self.stdout.write("Everything is sound.")

    def _tell(self, where: str, finding: Finding) -> None:
        path = f" {finding.path}" if finding.path else ""
        self.stdout.write(f"{where}:{path}: {finding.what}. {finding.remedy}")


def _server() -> Iterator[Finding]:
    """What is wrong beside the folders."""
    configured = settings.PREVIOUSLY
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            yield Finding(path="database", what="it is older than the code", remedy="Start serve, or run migrate.")
    except DatabaseError as error:
        yield Finding(path="database", what=str(error).strip(), remedy="Check PREVIOUSLY_DATABASE_URL and the server.")
    if not configured.worker_inside:
        try:
            with app.connection_for_write() as broker:
                broker.ensure_connection(max_retries=0, timeout=2)
        except (OperationalError, OSError) as error:
            remedy = "Check PREVIOUSLY_BROKER_URL and the server; messages are kept and answered when it is back."
            yield Finding(path="broker", what=str(error), remedy=remedy)
    if configured.model:
        try:
            names = tasks.model_server(configured.model).ping()
        except ModelError as error:
            remedy = "Check PREVIOUSLY_MODEL_URL and PREVIOUSLY_MODEL_KEY; replies fail until it answers."
            yield Finding(path="model", what=str(error), remedy=remedy)
        else:
            if names and configured.model not in names:
                remedy = f"Set PREVIOUSLY_MODEL to one of: {', '.join(names[:10])}"
                yield Finding(path="model", what=f"the server does not list {configured.model}", remedy=remedy)
