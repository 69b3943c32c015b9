"""How many messages a person may send in a minute and in a day, when the operator has set a limit."""

import logging
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

MINUTE, DAY = 60, 86_400

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TooFast:
    """So many messages are taken in so many seconds, and this one is beyond them."""

    most: int
    seconds: int


def too_fast(user_id: UUID) -> TooFast | None:
    """Count one message and tell which limit it is over, if any (0: no limit). A span begins with its first message.

    When the counts cannot be reached every message is taken: words come before limits.
    """
    limits = settings.PREVIOUSLY
    spans = ((DAY, limits.turns_per_day), (MINUTE, limits.turns_per_minute))
    try:
        over = [TooFast(most, seconds) for seconds, most in spans if most and _count(user_id, seconds) > most]
    except (RedisError, OSError) as error:
        log.warning("messages of %s are not counted: %s", user_id, type(error).__name__)
        return None
    return next(iter(over), None)


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
