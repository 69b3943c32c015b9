"""The editor of the card: Markdown, a preview, and what to do when the card has changed meanwhile."""

import logging
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from memory import access, wording
from memory.conversation.due import Settle
from memory.conversation.own_card import (
    CARD_CHARACTERS,
    Misshapen,
    Overtaken,
    Problem,
    TooLong,
    Unchanged,
    Written,
    blank,
    check,
    editable,
    save_card,
    version_of,
)
from memory.folder.card import ENTRY_CHARACTERS, SECTIONS
from memory.folder.clock import utc_now
from memory.folder.errors import FolderError

from .card_shown import ShownCard, UnreadableCard, section_name, shown
from .cards import read_card, why_not_written, written
from .history import between
from .links import OwnLinks
from .signed_in import signed_in
from .work import hand_over

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Meanwhile:
    """The card as somebody else left it while it was edited here, and what saving would make of it."""

    text: str
    difference: SafeString


@dataclass(frozen=True, kw_only=True)
class Editor:
    """What the form holds: the text as typed, and which card it was made from."""

    text: str
    made_from: str
    told: tuple[str, ...] = ()
    preview: ShownCard | UnreadableCard | None = None
    meanwhile: Meanwhile | None = None


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def card_edit(request: HttpRequest) -> HttpResponse:
    """The editor, its preview, and saving."""
    if request.method != "POST":
        return _show(request, _begun(request))
    typed, made_from = request.POST.get("text", ""), request.POST.get("made_from", "")
    if request.POST.get("do") == "preview":
        told = _said(check(typed)) if len(typed) <= CARD_CHARACTERS else (_too_long(len(typed) - CARD_CHARACTERS),)
        # The form sends LF as CRLF; what is previewed is what would be written.
        preview = shown(typed.replace("\r\n", "\n").encode("utf-8", "replace"), OwnLinks())
        return _show(request, Editor(text=typed, made_from=made_from, told=told, preview=preview))
    return _save(request, typed, made_from)


def _save(request: HttpRequest, typed: str, made_from: str) -> HttpResponse:
    folder, person = access.folder_of(request.user), access.person_of(request.user)
    read_card(folder)
    try:
        outcome = save_card(folder, typed, made_from=made_from, person=person, now=utc_now())
    except (FolderError, OSError) as error:
        log.exception("the card of %s was not written", request.user.pk)
        told = (why_not_written(error),)
        return _show(request, Editor(text=typed, made_from=made_from, told=told), status=503)
    match outcome:
        case Written():
            messages.success(request, written(hand_over(request.user, [Settle()]), _("Your card is saved.")))
            return redirect("card")
        case Unchanged():
            messages.info(request, _("The card says so already; nothing was changed."))
            return redirect("card")
        case Misshapen(problems=problems):
            return _show(request, Editor(text=typed, made_from=made_from, told=_said(problems)), status=422)
        case TooLong(over=over):
            return _show(request, Editor(text=typed, made_from=made_from, told=(_too_long(over),)), status=422)
        case Overtaken(current=current):
            return _show(request, _overtaken(typed, current), status=409)


def _begun(request: HttpRequest) -> Editor:
    data = read_card(access.folder_of(request.user))
    if data is None:
        return Editor(text=blank(access.person_of(request.user)), made_from="")
    text = data.decode("utf-8", "replace")
    told = _said(check(editable(text))) if len(text) <= 4 * CARD_CHARACTERS else ()
    return Editor(text=editable(text), made_from=version_of(data), told=told)


def _overtaken(typed: str, current: bytes | None) -> Editor:
    """The editor after somebody else wrote the card: saving once more is to know what one saves over."""
    now = editable((current or b"").decode("utf-8", "replace"))
    mine = typed.replace("\r\n", "\n")
    difference = between(now, mine) if len(now) <= 2 * CARD_CHARACTERS else SafeString()
    return Editor(text=typed, made_from=version_of(current), meanwhile=Meanwhile(text=now, difference=difference))


def _show(request: HttpRequest, editor: Editor, *, status: int = 200) -> HttpResponse:
    context = {
        "editor": editor,
        "zone": access.person_of(request.user).timezone,
        "limits": [(name, section_name(name), most) for name, most in SECTIONS.items()],
        "entry_characters": ENTRY_CHARACTERS,
        "most": CARD_CHARACTERS,
        "links": OwnLinks(),
    }
    return render(request, "memory/card_edit.html", context, status=status)


def _said(problems: tuple[Problem, ...]) -> tuple[str, ...]:
    return tuple(wording.card_problem(problem.code, problem.line, problem.words) for problem in problems)


def _too_long(over: int) -> str:
    return ngettext(
        "The card is %(over)d character too long (of %(limit)d). Shorten it.",
        "The card is %(over)d characters too long (of %(limit)d). Shorten it.",
        over,
    ) % {"over": over, "limit": CARD_CHARACTERS}
