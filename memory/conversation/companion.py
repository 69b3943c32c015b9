"""Whom the person talks to: the model behind the companion, and how patient a turn is with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from memory.llm.client import ModelServer
from memory.llm.structured import Called, nobody


def _never() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Companion:
    """One companion serves every turn of a worker."""

    model: ModelServer | None
    """None when no model is configured: the companion is a journal then."""
    effort: str = ""
    """How much the model is to think before it replies: low, medium, high; '' leaves it to the model."""
    pauses: tuple[float, ...] = (1.0, 4.0, 15.0)
    """Seconds before each further attempt after a passing failure; when they are used up the turn has failed."""
    card_wait: float = 6.0
    """Seconds the first answer of a slice waits for the marks and the card of the slice before it; 0: not at all."""
    stopping: Callable[[], bool] = field(default=_never)
    """Whether this process is about to end; a reply that is cut by that stays owed."""
    called: Callable[[Called], object] = field(default=nobody)
    """Hears of every structured call, for counting; nothing that was said is in it."""
