"""What people fill in about themselves."""

from typing import Any

from allauth.account import forms as allauth_forms
from django import forms
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts import zones
from accounts.models import User, normal_email
from accounts.names import LONGEST, clean_name


class CalledField(forms.CharField):
    """The name to be called, cleaned to one line."""

    def __init__(self, **options: Any) -> None:
        options = {"label": _("Name to be called"), "max_length": LONGEST} | options
        super().__init__(**options)
        self.widget.attrs["autocomplete"] = "nickname"

    def clean(self, value: Any) -> str:
        name = clean_name(super().clean(value))
        if not name:
            raise ValidationError(_("Give a name with at least one visible character."), code="empty")
        return name


class SignupForm(allauth_forms.SignupForm):
    called = CalledField()
    field_order = ("email", "called", "password1")


class InvitedForm(forms.Form):
    """What an invited person adds to the address that the invitation names."""

    called = CalledField()
    password = forms.CharField(
        label=_("Password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def __init__(self, *args: Any, email: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._email = email

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        _check_password(self, found, self._email)
        return found


class FirstForm(forms.Form):
    """The first administrator's account."""

    email = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        help_text=_("You sign in with it."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    called = CalledField()
    password = forms.CharField(
        label=_("Password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def clean_email(self) -> str:
        email = normal_email(self.cleaned_data["email"])
        if User.objects.filter(email=email).exists():
            raise ValidationError(_("There is an account with this address: choose another."), code="taken")
        return email

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        _check_password(self, found, found.get("email", ""))
        return found


def _check_password(form: forms.Form, found: dict[str, Any], email: str) -> None:
    if password := found.get("password"):
        try:
            validate_password(password, User(email=email, called=found.get("called", "")))
        except ValidationError as error:
            form.add_error("password", error)


class PreferencesForm(forms.ModelForm):
    """Everything a person may choose for themselves; a change takes effect with the next message."""

    called = CalledField()
    timezone = forms.CharField(
        label=_("Time zone"),
        required=False,
        max_length=64,
        help_text=_("Such as Europe/Berlin or Asia/Shanghai. Left empty, it is taken from your browser."),
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off", "spellcheck": "false"}),
    )

    model = forms.ChoiceField(label=_("Model"), required=False)

    class Meta:
        model = User
        fields = ("called", "timezone", "language", "theme", "slice_minutes", "slice_turns", "model", "effort")
        labels = {
            "slice_minutes": _("Minutes in a slice"),
            "slice_turns": _("Turns in a slice"),
            "language": _("Language"),
            "theme": _("Theme"),
            "effort": _("Effort"),
        }
        help_texts = {
            "slice_minutes": _(
                "From 5 to 120. A conversation is remembered in slices. The first message you send when so many minutes"
                " have passed since a slice began closes it and opens the next; nothing happens while you are silent."
            ),
            "slice_turns": _(
                "From 5 to 100. A turn is a message of yours and its reply. A slice that holds so many is full, and"
                " your next message opens another."
            ),
            "effort": _("How much the model thinks before it replies, if it can. More takes longer."),
        }
        widgets = {
            "slice_minutes": forms.NumberInput(attrs={"min": 5, "max": 120}),
            "slice_turns": forms.NumberInput(attrs={"min": 5, "max": 100}),
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        configured = settings.PREVIOUSLY
        usual = _("The one of this server (%(model)s)") % {"model": configured.model}
        others = [name for name in configured.models_allowed if name != configured.model]
        self.fields["model"].choices = [("", usual), *((name, name) for name in others)]  # type: ignore[attr-defined]
        if self.instance.model not in others:
            self.initial["model"] = ""  # no longer allowed, or the server's own by now
        if not others:
            del self.fields["model"]
        if not configured.model:
            del self.fields["effort"]

    def clean_timezone(self) -> str:
        zone: str = self.cleaned_data["timezone"]
        if zone and zone not in zones.names():
            raise ValidationError(
                _("This is no time zone that we know: choose one of the list, or leave it empty."), code="zone"
            )
        return zone

    @property
    def zones(self) -> tuple[str, ...]:
        """The names offered while typing; aliases are accepted too."""
        return zones.offered()


class LanguageForm(forms.Form):
    language = forms.ChoiceField(choices=settings.LANGUAGES)


class ThemeForm(forms.Form):
    theme = forms.ChoiceField(choices=User._meta.get_field("theme").choices)
