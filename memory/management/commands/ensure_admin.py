"""`manage.py ensure_admin`: the administrator that the environment names is there."""

from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email

from accounts.models import User, normal_email


class Command(BaseCommand):
    help = (
        "Make the administrator named by PREVIOUSLY_ADMIN_EMAIL, with PREVIOUSLY_ADMIN_PASSWORD (or its _FILE). Of an"
        " account that exists only the rights are set: its password stays."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        configured = settings.PREVIOUSLY
        email = normal_email(configured.admin_email)
        if not email:
            raise CommandError("Set PREVIOUSLY_ADMIN_EMAIL to the administrator's e-mail address.")
        try:
            validate_email(email)
        except ValidationError as error:
            raise CommandError(f"PREVIOUSLY_ADMIN_EMAIL is {email!r}, which is no e-mail address.") from error
        user = User.objects.filter(email=email).first()
        if user is None:
            if not configured.admin_password:
                raise CommandError("There is no such account yet: set PREVIOUSLY_ADMIN_PASSWORD or its _FILE, too.")
            called = email.partition("@")[0]
            user = User.objects.create_superuser(email, configured.admin_password, called=called)
            # The operator vouches for the address: there may be no mail server to prove it by.
            EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
            self.stdout.write(f"Made the administrator {email}.")
        elif user.is_staff and user.is_superuser and user.is_active:
            self.stdout.write(f"{email} is an administrator already.")
        else:
            user.is_staff = user.is_superuser = user.is_active = True
            user.awaits_approval = False
            user.save(update_fields=["is_staff", "is_superuser", "is_active", "awaits_approval"])
            self.stdout.write(f"Made {email} an administrator.")
