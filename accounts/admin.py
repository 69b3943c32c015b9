"""People in the administration: accounts are made, changed and closed here; preferences stay the person's own."""

from functools import partial
from typing import Any

from allauth.account.models import EmailAddress
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm, UserChangeForm
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts import approving, invites, leaving
from accounts.forms import CalledField
from accounts.models import Invite, Role, User, normal_email


class AddPersonForm(BaseUserCreationForm):
    called = CalledField()

    class Meta:
        model = User
        fields = ("email", "called")
        field_classes = {"email": forms.EmailField}

    def clean_email(self) -> str:
        email = normal_email(self.cleaned_data["email"])
        if User.objects.filter(email=email).exists():
            raise ValidationError(_("There is an account with this address: choose another."), code="taken")
        return email


class ChangePersonForm(UserChangeForm):
    called = CalledField()

    class Meta:
        model = User
        fields = "__all__"
        field_classes = {"email": forms.EmailField}


@admin.register(User)
class UserAdmin(DjangoUserAdmin):
    add_form = AddPersonForm
    form = ChangePersonForm
    ordering = ("email",)
    list_display = ("email", "called", "is_active", "awaits_approval", "is_staff", "date_joined", "last_login")
    list_filter = ("awaits_approval", "is_active", "is_staff", "is_superuser", "groups")
    actions = ("let_in", "close")
    search_fields = ("email", "called")
    filter_horizontal = ()  # the two-box picker is not usable with a screen reader
    readonly_fields = ("id", "date_joined", "last_login")
    add_fieldsets = ((None, {"fields": ("email", "called", "password1", "password2")}),)
    fieldsets = (
        (None, {"fields": ("id", "email", "called", "password")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        (_("Times"), {"fields": ("date_joined", "last_login")}),
    )

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change or "email" in form.changed_data:
            # Whoever administers the accounts vouches for the address: it is the one to sign in with from now on.
            EmailAddress.objects.filter(user=obj).exclude(email=obj.email).update(primary=False)
            EmailAddress.objects.update_or_create(
                user=obj, email=obj.email, defaults={"verified": True, "primary": True}
            )
        if change and "is_active" in form.changed_data:
            # Only then: signing out looks at what everybody else can see.
            then = self._let_in if obj.is_active else self._shut
            transaction.on_commit(partial(then, request, obj))

    @admin.action(description=_("Let the selected people in"), permissions=["change"])
    def let_in(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for person in queryset.filter(awaits_approval=True):
            transaction.on_commit(partial(self._let_in, request, person))

    @admin.action(description=_("Close the accounts of the selected people"), permissions=["change"])
    def close(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for person in queryset.filter(is_active=True).exclude(pk=request.user.pk):
            person.is_active = False
            person.save(update_fields=["is_active"])
            transaction.on_commit(partial(self._shut, request, person))

    def _let_in(self, request: HttpRequest, person: User) -> None:
        if not person.awaits_approval:
            return
        told = approving.approve(person, address=request.build_absolute_uri(reverse("account_login")))
        words = (
            gettext("Let in, and told so: %(email)s.")
            if told
            else gettext("Let in: %(email)s. No e-mail could be sent, so tell them yourself.")
        )
        self.message_user(request, words % {"email": person.email}, messages.SUCCESS if told else messages.WARNING)

    def _shut(self, request: HttpRequest, person: User) -> None:
        leaving.shut(person)
        words = gettext("Closed, and signed out everywhere: %(email)s. What they have said is kept.")
        self.message_user(request, words % {"email": person.email})

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        # Only then: this page's transaction must not hide from others that the account is gone.
        transaction.on_commit(partial(leaving.leave, obj))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for person in queryset:
            transaction.on_commit(partial(leaving.leave, person))


class InviteForm(forms.ModelForm):
    days = forms.IntegerField(
        label=_("Days"),
        min_value=1,
        max_value=invites.LONGEST_DAYS,
        initial=invites.LIFE_DAYS,
        help_text=_("So long the link works, and once."),
    )

    class Meta:
        model = Invite
        fields = ("email", "role")

    def clean_email(self) -> str:
        email = normal_email(self.cleaned_data["email"])
        if User.objects.filter(email=email).exists():
            raise ValidationError(_("There is an account with this address: choose another."), code="taken")
        return email


@admin.register(Invite)
class InviteAdmin(admin.ModelAdmin):
    """Invitations are made and withdrawn; the link is shown once, to whoever made it."""

    form = InviteForm
    list_display = ("email", "role", "by", "made_at", "expires_at")
    ordering = ("-made_at",)
    search_fields = ("email",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return invites.are_possible() and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "role" and not request.user.is_superuser:
            # Nobody hands out rights that they do not have.
            options["choices"] = [(Role.PERSON.value, Role.PERSON.label)]
        return super().formfield_for_choice_field(db_field, request, **options)

    def save_model(self, request: HttpRequest, obj: Invite, form: Any, change: bool) -> None:
        days = form.cleaned_data["days"]
        link = invites.issue(obj.email, role=obj.role, by=request.user, now=timezone.now(), days=days)
        obj.pk = Invite.objects.get(email=obj.email).pk
        address = request.build_absolute_uri(link)
        mailed = invites.mail(obj.email, address, days=days)
        words = (
            gettext("The link was mailed to %(email)s. You can also hand it over yourself; it is not shown again:")
            if mailed
            else gettext("No e-mail was sent. Hand this link over to %(email)s yourself; it is not shown again:")
        )
        self.message_user(request, f"{words % {'email': obj.email}} {address}")
