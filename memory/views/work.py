"""Work that a page leaves to the worker."""

from collections.abc import Iterable
from typing import Any

from memory import tasks
from memory.conversation.due import Job


def hand_over(user: Any, jobs: Iterable[Job]) -> bool:
    """Hand jobs to the broker in order; False at the first that it does not take: all of them are due on disk."""
    return all(tasks.enqueue(str(user.pk), job) for job in jobs)
