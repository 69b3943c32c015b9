"""People in the administration: accounts are made, changed and closed here; preferences stay the person's own."""

from functools import partial
from typing import Any

from allauth.account.models import EmailAddress
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm, UserChangeForm
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts import leaving
from accounts.forms import CalledField
from accounts.models import User, normal_email


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
    list_display = ("email", "called", "is_active", "is_staff", "date_joined", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("email", "called")
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

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        # Only then: this page's transaction must not hide from others that the account is gone.
        transaction.on_commit(partial(leaving.leave, obj))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for person in queryset:
            transaction.on_commit(partial(leaving.leave, person))
