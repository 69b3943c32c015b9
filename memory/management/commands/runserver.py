"""Django's development server, which has no worker and says so."""

from typing import Any

from django.conf import settings
from django.contrib.staticfiles.management.commands.runserver import Command as RunserverCommand


class Command(RunserverCommand):
    def inner_run(self, *args: Any, **options: Any) -> None:
        if settings.PREVIOUSLY.worker_inside:
            self.stderr.write(
                "runserver has no worker: messages are saved, but replies need `manage.py serve`, or a worker with"
                " PREVIOUSLY_BROKER_URL set to Redis or Valkey."
            )
        super().inner_run(*args, **options)
