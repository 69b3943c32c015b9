"""`manage.py serve`: everything that Previously needs, in one process."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections
from filelock import Timeout

from accounts import first
from memory.folder.clock import utc_now
from previously_site import serving
from previously_site.migrating import migrate


class Command(BaseCommand):
    help = "Runs the web server and the worker in one process, after making and migrating what they need."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument("--port", default=8000, type=int, help="port to listen on, 0 for any (default: 8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        try:
            listening = serving.listen(host, port)
        except serving.PortTaken as error:
            raise CommandError(
                f"Port {port} on {host} is taken: stop what runs there, or choose another with --port."
            ) from error
        except (serving.AddressUnusable, OverflowError) as error:
            raise CommandError(
                f"Cannot listen on {host}, port {port} ({error}): choose others with --host and --port."
            ) from error
        self._accept(host)
        try:
            migrate()
        except (DatabaseError, Timeout) as error:
            raise CommandError(
                f"The database cannot be used ({str(error).strip().splitlines()[0]}): check PREVIOUSLY_DATABASE_URL and"
                " its server; with SQLite, the file in the data folder and the rights to it, or restore a backup."
            ) from error
        address = serving.address(host, listening.getsockname()[1])
        self.stdout.write(f"Previously is at {address}")
        if not first.administrator_exists():
            link = first.issue(utc_now())
            self.stdout.write(
                "There is no administrator yet. This link makes one; it works once, within "
                f"{first.LIFE_HOURS} hours:\n{address.rstrip('/')}{link}"
            )
        if not settings.PREVIOUSLY.worker_inside:
            self.stdout.write("Replies are written by workers: celery -A previously_site worker")
        self.stdout.write("Press Ctrl+C to stop.")
        self.stdout.flush()
        # What was asked of the database so far is done; a connection kept here would be held for good.
        connections.close_all()
        serving.run(listening)

    def _accept(self, host: str) -> None:
        """Pages asked for by the very address given here are answered; other names are the operator's to allow."""
        if host in serving.EVERY_ADDRESS:
            if not any(name == "*" or name not in serving.LOCAL_NAMES for name in settings.ALLOWED_HOSTS):
                self.stderr.write(
                    "Other machines reach this server only by names in PREVIOUSLY_ALLOWED_HOSTS: set it to the names"
                    " or addresses that people type."
                )
        elif host not in settings.ALLOWED_HOSTS:
            settings.ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)
