"""What the composer sends."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.folder.clock import known_zone
from memory.folder.errors import BadId
from memory.folder.paths import parse_turn_id
from memory.folder.turns import clean


class TextField(forms.Field):
    """A message, kept as typed: neither trimmed nor refused for a character in it. Line breaks count as one."""

    def to_python(self, value: Any) -> str:
        return clean(str(value or ""))


class SeenField(forms.Field):
    """The turns that the page shows; what is no turn id is left out, for a page can send anything."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> frozenset[str]:
        return frozenset(turn_id for turn_id in value or () if _is_turn_id(turn_id))


class MessageForm(forms.Form):
    """One message: its text, the turn id its composer carried, the turns the page shows, the browser's time zone."""

    text = TextField(required=False)
    turn = TextField(required=False)
    seen = SeenField(required=False)
    zone = TextField(required=False)

    def __init__(self, data: Mapping[str, Any], *, limit: int) -> None:
        """`limit` is how many characters (code points) a message may have."""
        super().__init__(data)
        self._limit = limit

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if not text.strip():
            raise forms.ValidationError(_("There is nothing to send yet: the message is empty."), code="empty")
        if (over := len(text) - self._limit) > 0:
            raise forms.ValidationError(
                ngettext(
                    "The message is %(over)d character too long (of %(limit)d). Shorten it, or send it in parts.",
                    "The message is %(over)d characters too long (of %(limit)d). Shorten it, or send it in parts.",
                    over,
                ),
                code="too_long",
                params={"over": over, "limit": self._limit},
            )
        return text

    def clean_zone(self) -> str:
        """The zone when it is a real one, else ''."""
        return known_zone(self.cleaned_data["zone"]) or ""


def _is_turn_id(text: str) -> bool:
    try:
        parse_turn_id(text)
    except BadId:
        return False
    return True
