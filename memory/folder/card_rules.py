"""What an entry has to be before it may stand in the card: a plain line, about the person, and said by them.

A model proposes entries from a conversation in which anything may have been pasted, so what code can check it checks:
the words a receipt rests on were said by the person and were not quoted by them; no name comes from the agent alone;
nothing speaks to the agent's rules; wishes about its manner stand only where they belong. What no rule can see, such
as pasted text without a mark, or a fact that does not follow from the words quoted for it, is left to the prompt.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memory.folder.card import ENTRY_CHARACTERS, Card, CardEntry, Receipt, names_receipt
from memory.folder.card_operations import Proof
from memory.folder.marks import plain_line
from memory.folder.quotes import occurs, own_words, says_enough
from memory.folder.slices import Slice

MANNER = "How to be with them"
"""The one section whose entries may speak to the agent."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the checks need to know. `slice_at` gives the slice of a slice path, None when there is none."""

    slice_at: Callable[[str], Slice | None]
    asked_by_person: bool = False
    """Whether the person asked for the change in conversation; only then may it touch what they wrote by hand."""


class Refused(Exception):
    """An operation breaks a rule; code and sentence as in Refusal."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code = code
        self.sentence = sentence


_BLOCK_MARK = re.compile(r"[-+*](?:\s|$)|#{1,6}(?:\s|$)|[>|]|[-*_=~`]{3}|[0-9]{1,9}[.)]\s")
_MARKUP = re.compile(r"<[A-Za-z/!?]|\]\(|\]\[|```")

# Words about the agent's own rules, whoever says them: never a fact about a person, and no wish about manner.
_RULES = re.compile(
    r"\b(?:ignor|disregard|overrid|bypass|forget|break)\w*\s+"
    r"(?:(?:your|its|all|any|every|previous|prior|earlier|above|these|those|system|safety)\b[^.!?\n]{0,30}?)?"
    r"\b(?:instructions?|rules|guidelines?|prompts?|safeguards?)\b"
    r"|\bsystem (?:prompt|message)s?\b|\bjailbreak|\bdeveloper mode\b"
    r"|(?:忽略|无视|忘记|忘掉|违反|绕过|不要遵守|不再遵守)[^。！？\n]{0,20}(?:规则|指令|指示|提示词|准则)"
    r"|系统提示|系统消息|越狱模式|开发者模式",
    re.IGNORECASE,
)
_FOR_EVER = re.compile(
    r"(?:^|[.;:!?,\n]\s*|\b(?:and|please|must|should)\s+)(?:always\s+)?remember\b[^.!?\n]{0,80}\bfor ?ever\b"
    r"|永远记住|记住[^。！？\n]{0,20}永远",
    re.IGNORECASE,
)
_TO_THE_AGENT = re.compile(
    r"(?:you (?:must|should|shall|will|are|have to|need to|can|may)|your (?:rules?|task|job|role|instructions?)"
    r"|do not|don['’]t|please|act as|pretend|respond|reply|answer|say|print|output|reveal|obey|from now on)\b"
    r"|(?:你|您)(?:必须|要|应|得|需要|是|现在|只能|不能|不要|以后|从现在)|请|不要|别再|务必|从现在(?:开始|起)|从今以后",
    re.IGNORECASE,
)
# Names are told by their capitals, so only in scripts that have them; those that do not begin with the radicals.
_LETTER = r"[^\W\d_\u2e80-\U0010ffff]"
_NAME = re.compile(rf"(?<!{_LETTER}){_LETTER}{{2,}}")
_WITHIN_A_SENTENCE = re.compile(rf"(?:(?<=[^\s.!?:;…。！？>#*-] )|(?<=[\u3400-\u9fff，、])){_LETTER}{{2,}}")
_CALENDAR = frozenset((
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
))  # fmt: skip


def checked_text(section: str, text: str) -> str:
    """Return the words of an entry as they may be written into that section; raises Refused."""
    if "\n" in text or "\r" in text:
        raise Refused("not-one-line", "an entry is one line")
    words = plain_line(text)
    if not words:
        raise Refused("empty", "an entry says something")
    if len(words) > ENTRY_CHARACTERS:
        raise Refused("too-long", f"an entry has at most {ENTRY_CHARACTERS} characters, this one has {len(words)}")
    if _BLOCK_MARK.match(words) or _MARKUP.search(words) or names_receipt(words):
        raise Refused("markup", "an entry is plain words: no headings, lists, links, tags or receipts inside the text")
    if _RULES.search(words) or _FOR_EVER.search(words):
        raise Refused("command", "this is an instruction about the agent's rules and no fact about the person")
    if section != MANNER and _TO_THE_AGENT.match(words):
        raise Refused("command", f"this speaks to the agent; a wish the person has of it stands in {MANNER}")
    return words


def checked_receipts(
    proofs: Iterable[Proof], words: str, *, card: Card, kept: CardEntry | None, rules: Rules
) -> tuple[Receipt, ...]:
    """Return the receipts for new words in the card, each once; raises Refused.

    At least one has to quote what the person themself said in that turn. Receipts that the entry `kept` has already
    may stand beside it without a quotation: they were checked when they came.
    """
    receipts: dict[Receipt, Slice] = {}
    proven = False
    for proof in proofs:
        found, said = _turn(proof.receipt, rules)
        if proof.quote or kept is None or proof.receipt not in kept.receipts:
            _check_quote(proof, said, rules)
            proven = True
        receipts[proof.receipt] = found
    if not proven:
        raise Refused("no-receipt", "at least one receipt with a quote of the person's own words is needed")
    _check_names(words, card, receipts.values())
    return tuple(receipts)


def check_owner(entry: CardEntry, rules: Rules) -> None:
    """Raise Refused for an entry that the person wrote by hand, unless they asked for the change themself.

    An entry without receipts was written by hand, or in Identity at the person's own word.
    """
    if not entry.receipts and not rules.asked_by_person:
        raise Refused("owners", "the person wrote this entry themself; it changes only when they ask for it")


def _turn(receipt: Receipt, rules: Rules) -> tuple[Slice, str]:
    """The slice of a receipt and what the person said in the turn."""
    found = rules.slice_at(receipt.path)
    said = found.entry(receipt.turn_id, "user") if found else None
    if found is None or said is None:
        raise Refused("no-such-turn", f"{receipt} names no message of the person")
    return found, said.content


def _check_quote(proof: Proof, said: str, rules: Rules) -> None:
    quote, receipt = proof.quote, proof.receipt
    if not quote:
        raise Refused("no-quote", f"{receipt} needs a quote of the person's own words")
    if not occurs(quote, said):
        raise Refused("not-said", f"the words given for {receipt} are not in what the person said in that turn")
    if not occurs(quote, own_words(said)):
        raise Refused("quoted", f"the words given for {receipt} are quoted by the person, not said by them")
    if not says_enough(quote, said):
        raise Refused("too-little", f"the words given for {receipt} are too few to prove anything: quote more of them")
    if _RULES.search(quote) or (_FOR_EVER.search(quote) and not rules.asked_by_person):
        raise Refused("command", "an instruction about the agent's rules proves no fact about the person")


def _check_names(words: str, card: Card, slices: Iterable[Slice]) -> None:
    """Raise Refused for a name that only the agent has said: what it invents becomes no fact."""
    by_agent, heard = set(), [card.title, *(entry.text for section in card.sections for entry in section.entries)]
    for found in slices:
        for entry in found.entries:
            if entry.role == "agent":
                by_agent |= {name.casefold() for name in _WITHIN_A_SENTENCE.findall(entry.content) if name[0].isupper()}
            else:
                heard.append(entry.content)
    known = {name.casefold() for name in _NAME.findall(unicodedata.normalize("NFC", "\n".join(heard)))}
    for name in _NAME.findall(words):
        if name[0].isupper() and name.casefold() in by_agent - known - _CALENDAR:
            raise Refused("agents-word", f"{name} was only ever said by the agent")
