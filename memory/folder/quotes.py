"""Whether words were said: a quotation looked up in what somebody wrote.

A model that quotes changes little things: white space, the shape of quotation marks, full-width signs, capitals, a
full stop at the end. None of these makes a quotation false; any other difference does.
"""

import re
import unicodedata

_MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′＇`´", "'"),
        **dict.fromkeys("“”„‟″＂«»「」『』", '"'),
        "—": "-",
        "–": "-",
        "‐": "-",
        "‑": "-",
    }
)
_EDGES = " \"'.,;:!?…。、"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")

LEAST_LETTERS = 4
"""How much a quotation says at least, a CJK character counting for two letters; `yes` alone would prove anything."""


def fold(text: str) -> str:
    """Return the text as it is compared: NFKC, one kind of quotation mark and dash, no unseen characters, small."""
    plain = unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS)
    seen = "".join(character for character in plain if unicodedata.category(character) not in ("Cf", "Cs"))
    return " ".join(seen.casefold().split())


def occurs(quote: str, text: str) -> bool:
    """Whether the quotation stands in the text; a blank one stands nowhere."""
    wanted = fold(quote).strip(_EDGES)
    return bool(wanted) and wanted in fold(text)


def says_enough(quote: str, text: str) -> bool:
    """Whether the quotation is long enough to prove something: LEAST_LETTERS, or all that was said."""
    wanted = fold(quote).strip(_EDGES)
    letters = sum(2 if _CJK.match(character) else character.isalnum() for character in wanted)
    return letters >= LEAST_LETTERS or wanted == fold(text).strip(_EDGES)


def own_words(text: str) -> str:
    """Return a message without what is marked in it as somebody else's: `> ` lines and fenced blocks."""
    kept = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip("`~ \t\r"):
                fence = ""
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith((">", "＞")):
            kept.append(line)
    return "\n".join(kept)
