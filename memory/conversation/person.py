"""The person a conversation is with, as far as the conversation needs to know them."""

from dataclasses import dataclass

from memory.folder.closing import Limits


@dataclass(frozen=True, kw_only=True)
class Person:
    """Preferences as they stand when a message arrives or a reply is made."""

    name: str
    language: str
    """`en` or `zh-hans`."""
    timezone: str
    """An IANA zone, `UTC` when unknown."""
    limits: Limits
