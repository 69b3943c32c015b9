"""`manage.py sweep`: have done whatever is due for anybody."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory import tasks


class Command(BaseCommand):
    help = (
        "Look for owed replies, close work and commits that wait. With a broker they are handed to the workers; with"
        " memory:// this command does the work itself."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PREVIOUSLY.worker_inside:
            done = tasks.work_off(progress=lambda job: self.stdout.write(f"done: {job}"))
            self.stdout.write(f"{done} jobs done." if done else "Nothing was due.")
        else:
            jobs = tasks.sweep_now()
            self.stdout.write(f"{jobs} jobs handed to the workers." if jobs else "Nothing was due.")
