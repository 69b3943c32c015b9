"""Names of fields as models vary them."""

import re

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BETWEEN = re.compile(r"[\s_-]+")


def plain_name(name: str) -> str:
    """`open_loops` for `Open loops`, `open-loops` and `openLoops`."""
    return _BETWEEN.sub("_", _HUMP.sub("_", name.strip())).lower()
