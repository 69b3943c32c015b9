"""The database brought up to date at the start, by one process at a time."""

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from filelock import FileLock

SECONDS_TO_WAIT = 300


def migrate() -> None:
    """Apply what is due and make the cache table, under a lock, so that two servers may start at once.

    Raises filelock.Timeout when another process migrates for longer than five minutes.
    """
    with FileLock(settings.DATA_DIR / "migrate.lock", timeout=SECONDS_TO_WAIT):
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", interactive=False, verbosity=0)
        call_command("createcachetable", verbosity=0)
