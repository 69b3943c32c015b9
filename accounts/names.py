"""What a person may be called: any name in any script, on one line, without characters that turn text around."""

import re
import unicodedata

LONGEST = 80

# Embeddings, overrides and isolates: they would reorder whatever stands beside the name.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def clean_name(text: str) -> str:
    """The name on one line, with control and direction characters taken out, at most LONGEST characters."""
    text = _TURNING.sub("", unicodedata.normalize("NFC", text))
    kept = "".join(" " if unicodedata.category(character) in ("Cc", "Zl", "Zp") else character for character in text)
    kept = "".join(character for character in kept if unicodedata.category(character) != "Cs")
    return " ".join(kept.split())[:LONGEST].rstrip()
