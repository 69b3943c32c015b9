"""Where the model is and how long we wait for it."""

from dataclasses import dataclass, field
from typing import Literal

_KEYLESS = "none"  # the client insists on a key; servers without keys ignore it


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """`url` with or without a final slash; `context` in tokens; `connect`, `first`, `between`, `whole` in seconds.

    first: to the first thing the model produces. between: from one chunk to the next. whole: the answer in all.
    """

    url: str
    key: str = field(default="", repr=False)
    model: str
    analyst: str = ""
    tools: Literal["auto", "on", "off"] = "auto"
    context: int = 32768
    connect: float = 10.0
    first: float = 180.0
    between: float = 60.0
    whole: float = 900.0

    def __post_init__(self) -> None:
        address = self.url.strip().rstrip("/").removesuffix("/chat/completions").rstrip("/")
        object.__setattr__(self, "url", address)
        object.__setattr__(self, "key", self.key.strip())

    @property
    def sent_key(self) -> str:
        return self.key or _KEYLESS
