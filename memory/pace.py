"""How many messages a person may send in a minute and in a day, when the operator has set a limit."""

from uuid import UUID

from django.conf import settings
from django.core.cache import cache

MINUTE, DAY = 60, 86_400


def too_fast(user_id: UUID) -> bool:
    """Count one message and tell whether it is over a limit (0: none). A span begins with its first message."""
    limits = settings.PREVIOUSLY
    spans = ((MINUTE, limits.turns_per_minute), (DAY, limits.turns_per_day))
    over = [_count(user_id, seconds) > most for seconds, most in spans if most]
    return any(over)


def forget(user_id: str) -> None:
    """Count nothing of this person any longer."""
    cache.delete_many([_key(user_id, seconds) for seconds in (MINUTE, DAY)])


def _count(user_id: UUID, seconds: int) -> int:
    key = _key(user_id, seconds)
    cache.add(key, 0, timeout=seconds)
    try:
        return cache.incr(key)
    except ValueError:  # the span ended between the two
        cache.set(key, 1, timeout=seconds)
        return 1


def _key(user_id: UUID | str, seconds: int) -> str:
    return f"turns-{seconds}-{user_id}"
