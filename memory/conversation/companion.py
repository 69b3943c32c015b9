"""Whom the person talks to: the model behind the companion, and how patient a turn is with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from memory.llm.client import ModelServer


def _never() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Companion:
    """One companion serves every turn of a worker."""

    model: ModelServer | None
    """None when no model is configured: the companion is a journal then."""
    pauses: tuple[float, ...] = (1.0, 4.0, 15.0)
    """Seconds before each further attempt after a passing failure; when they are used up the turn has failed."""
    stopping: Callable[[], bool] = field(default=_never)
    """Whether this process is about to end; a reply that is cut by that stays owed."""
