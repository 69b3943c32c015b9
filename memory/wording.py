"""The short codes of the record and of a reply, said so that a person understands what happened and what to do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from memory.folder.marks import cut

_CLOSED_BY = {
    "time_cap": gettext_lazy("its time was up"),
    "context_lost": gettext_lazy("you went on from a fresh page"),
    "capacity": gettext_lazy("it was full"),
    "user_explicit": gettext_lazy("you ended it"),
    "time_silence": gettext_lazy("it had been silent for long"),
}

_TONES = {
    "positive": pgettext_lazy("tone", "positive"),
    "neutral": pgettext_lazy("tone", "neutral"),
    "negative": pgettext_lazy("tone", "negative"),
    "mixed": pgettext_lazy("tone", "mixed"),
}

_FAILURES = {
    "unreachable": gettext_lazy("The model server cannot be reached. Your message is kept; try again in a while."),
    "timed_out": gettext_lazy("The model took too long to answer. Your message is kept; try again."),
    "rate_limited": gettext_lazy("The model server is asked too much at the moment. Try again in a minute."),
    "server_failed": gettext_lazy("The model server had an error of its own. Try again in a while."),
    "refused": gettext_lazy("The model server refused the request. The log of this site says why."),
    "bad_key": gettext_lazy(
        "The model server does not accept the key of this site. The person who runs it has to set another."
    ),
    "out_of_quota": gettext_lazy(
        "The account of this site at the model server is used up. The person who runs the site has to see to it."
    ),
    "no_such_model": gettext_lazy(
        "The model server does not have the model that is set. The person who runs this site has to choose another."
    ),
    "context_overflow": gettext_lazy(
        "The conversation is longer than the model can read. Send a shorter message, or end this slice on its own page."
    ),
    "cut_off": gettext_lazy("The reply broke off half-way. Try again."),
    "empty_answer": gettext_lazy("The model answered with nothing. Try again."),
    "filtered": gettext_lazy("The model server's filter withheld the answer. Put your message differently."),
    "not_a_model_server": gettext_lazy(
        "The address set for the model does not answer like a model server. The person who runs this site has to"
        " correct it."
    ),
    "too_old": gettext_lazy("Nobody answered within a day. Try again if it still matters."),
    "not_recorded": gettext_lazy("The reply was made but is not in the record. Try again."),
    "disk": gettext_lazy("The reply could not be written to the disk. The person who runs this site has to make room."),
}

_WAITING = {
    "remembering": gettext_lazy("Remembering the last conversation…"),
    "retrying": gettext_lazy("The model did not answer; asking again…"),
    "delayed": gettext_lazy("The worker has gone silent. The reply goes on as soon as one is back…"),
}

_STEPS = {
    "read_slice": gettext_lazy("Read a slice"),
    "read_card": gettext_lazy("Read your card"),
    "current_time": gettext_lazy("Looked at the clock"),
    "recall": gettext_lazy("Recalled"),
    "think_deep": gettext_lazy("Thought deeply"),
}

_STEPS_RUNNING = {
    "read_slice": gettext_lazy("Reading a slice"),
    "read_card": gettext_lazy("Reading your card"),
    "current_time": gettext_lazy("Looking at the clock"),
    "recall": gettext_lazy("Recalling"),
    "think_deep": gettext_lazy("Thinking deeply"),
}

_BUSY = {
    "detached": gettext_lazy("a commit is checked out instead of a branch"),
    "merge": gettext_lazy("a merge is under way"),
    "rebase": gettext_lazy("a rebase is under way"),
    "cherry-pick": gettext_lazy("a cherry-pick is under way"),
    "revert": gettext_lazy("a revert is under way"),
    "bisect": gettext_lazy("a bisect is under way"),
}

_CARD_PROBLEMS = {
    "no-front-matter": gettext_lazy(
        "the part between the two --- lines at the top is not closed. Close it, or delete it: it is made anew"
    ),
    "bad-front-matter": gettext_lazy(
        "the part between the two --- lines at the top cannot be read. Mend it, or delete it: it is made anew"
    ),
    "bad-updated": gettext_lazy("“updated” at the top is no instant"),
    "bad-slice": gettext_lazy("“slice” at the top names no slice. Delete that line"),
    "no-title": gettext_lazy("there is no title. A card begins with a line such as “# Previously on Alice”"),
    "unknown-section": gettext_lazy("a card has no such section. Its entries have to stand in one of the five"),
    "section-twice": gettext_lazy("this section stands here twice. Put its entries together"),
    "outside-section": gettext_lazy("this stands outside of the sections. Move it below a heading"),
    "not-an-entry": gettext_lazy("this is no entry. An entry is one line that begins with “- ”"),
    "empty-entry": gettext_lazy("this entry is empty. Write something, or delete the line"),
    "entry-too-long": gettext_lazy("this entry is longer than 300 characters. Shorten it, or make two of it"),
    "too-many-entries": gettext_lazy("from here on the section holds more entries than it may. Take some out"),
    "bad-receipt": gettext_lazy(
        "the receipt names no slice and turn. Copy it from the page of the slice, or delete it"
    ),
}

_REORDERING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

LINE_SHOWN = 60
"""How much of a line is quoted to say which one is meant."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a folder, and what to do about it."""

    what: str
    remedy: str


_TROUBLES = {
    "newer_format": Trouble(
        gettext_lazy("written by a newer version"), gettext_lazy("Upgrade this server to the version that wrote it.")
    ),
    "foreign_owner": Trouble(
        gettext_lazy("belongs to another system user"),
        gettext_lazy("Give the folder back to the user that runs the server: chown -R."),
    ),
    "foreign_lock": Trouble(
        gettext_lazy("a lock of another git is in the way"),
        gettext_lazy("See whether a git still runs in the folder; if none does, delete the lock file below .git."),
    ),
    "busy": Trouble(
        gettext_lazy("a merge, a rebase or the like is under way"),
        gettext_lazy("Whoever began it in the folder finishes it or gives it up; commits wait until then."),
    ),
    "git": Trouble(
        gettext_lazy("git cannot use the repository"),
        gettext_lazy("Run “manage.py doctor”, and restore the folder from a backup if it cannot be mended."),
    ),
    "strands": Trouble(
        gettext_lazy("the index of strands cannot be read"),
        gettext_lazy("It is made anew when the next slice closes; “manage.py rebuild” makes it at once."),
    ),
    "merges": Trouble(
        gettext_lazy("the list of merged strands cannot be read"),
        gettext_lazy("Mend memory/episodic/strand-merges.json with an editor, or take it from the history."),
    ),
    "disk": Trouble(
        gettext_lazy("its files cannot be read"), gettext_lazy("Look at the disk and at the rights of the folder.")
    ),
}


def trouble(code: str) -> Trouble:
    """What is wrong with a folder, by the code that was counted."""
    return _TROUBLES[code]


def closed_by(code: str, minutes: int | None = None) -> str:
    """Why a slice closed, as the end of "Slice closed · …"; `minutes` is the limit when it has just been reached.

    A word that is not ours (an older program's, a hand's) is shown as it is written.
    """
    if code == "time_cap" and minutes:
        return ngettext("%(minutes)d minute is up", "%(minutes)d minutes are up", minutes) % {"minutes": minutes}
    return str(_CLOSED_BY.get(code, code))


def tone(value: str | tuple[str, ...]) -> str:
    """The emotional tone in words; what others wrote is shown as written."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(_TONES.get(value, value))


def tone_class(value: str | tuple[str, ...]) -> str:
    """The tone as a class of the style sheet: one of the four we write, else none."""
    return value if isinstance(value, str) and value in _TONES else ""


def failure(code: str) -> str:
    """Why a reply failed, and what to do."""
    if code in _FAILURES:
        return str(_FAILURES[code])
    return _("Something went wrong on this server. Your message is kept; try again.")


def waiting(code: str) -> str:
    """What a reply waits for before its first words."""
    return str(_WAITING.get(code, _("One moment…")))


def step(name: str, *, running: bool = False) -> str:
    """What a tool has done, or is doing, in words; an unknown tool is shown by its name."""
    return str((_STEPS_RUNNING if running else _STEPS).get(name, name))


def reply_notice(code: str, values: Mapping[str, Any]) -> str:
    """Something told beside a reply; '' for a code that has no words for people."""
    match code:
        case "left_out":
            count = int(values.get("count", 0))
            return ngettext(
                "The conversation is longer than the model can read: its oldest turn was left out.",
                "The conversation is longer than the model can read: its oldest %(count)d turns were left out.",
                count,
            ) % {"count": count}
        case "shortened":
            return _("Your message is longer than the model can read: it was given its beginning and its end.")
        case "cut_by_length":
            return _("The reply reached the longest that the model writes at once, and ends there.")
        case _:
            return ""


def busy(code: str) -> str:
    """What keeps commits waiting in the person's own folder, and what to do."""
    why = _BUSY.get(code, code)
    return _("In your folder %(why)s. Everything you say is written, but commits wait until that is finished.") % {
        "why": why
    }


def card_problem(code: str, line: int, words: str) -> str:
    """What is wrong with a line of a card, and what to do; `words` are what stands in the line."""
    # The sentence around them must not be turned about.
    words = _REORDERING.sub("", words)
    values = {"line": line, "words": cut(words, LINE_SHOWN), "what": _CARD_PROBLEMS.get(code, code)}
    if words:
        return _("Line %(line)d, “%(words)s”: %(what)s.") % values
    return _("Line %(line)d: %(what)s.") % values
