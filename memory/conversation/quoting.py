"""Text from the record, made safe to quote to a model.

What a person or a model once wrote goes to the model inside a fence, `<record …>` to `</record>`, and can neither end
the fence, nor pass for a line of ours, nor hide anything from a human reader of the request.
"""

import re
from collections.abc import Iterable

from memory.folder.card import Card
from memory.folder.marks import cut

from .window import tokens

ENTRY_CHARS = 400

# Besides the controls: line and paragraph separators, which some readers take for a new line; marks that reorder what
# is displayed; and characters that display as nothing at all. Joiners stay: emoji and many scripts are built with them.
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_FENCE = re.compile(r"<(?=\s*/?\s*record)", re.IGNORECASE)


def quoted_line(text: str, limit: int) -> str:
    """`text` as one line of at most `limit` characters: runs of white space become a space, unseen characters go."""
    line = _FENCE.sub("‹", " ".join(_UNSEEN.sub(" ", text).split()))
    return cut(line, limit)


def quoted_lines(text: str) -> str:
    """`text` with its lines kept, each marked `> `, so that no line of it can be taken for one of ours."""
    lines = _FENCE.sub("‹", _UNSEEN.sub("", text)).split("\n")
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def fenced(source: str, lines: Iterable[str]) -> str:
    """Lines made by the functions above inside a fence that names their `source`, a word of ours."""
    return "\n".join((f'<record of="{source}">', *lines, "</record>"))


def card_lines(card: Card, limit: int) -> tuple[list[str], bool]:
    """The card's entries under their sections, receipts as written, and whether that is all within `limit` tokens.

    Sections without entries are left out; an empty card has no lines.
    """
    lines: list[str] = []
    for section in card.sections:
        heading = [f"{quoted_line(section.name, 80)}:"] if section.name else []
        for entry in section.entries:
            receipts = "".join(f" {receipt}" for receipt in entry.receipts)
            text = f"- {quoted_line(entry.text, ENTRY_CHARS)}" + (f" —{receipts}" if receipts else "")
            new, heading = [*heading, text], []
            limit -= sum(map(tokens, new))
            if limit < 0:
                return lines, False
            lines += new
    return lines, True
