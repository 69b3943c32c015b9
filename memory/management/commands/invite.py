"""`manage.py invite EMAIL`: a link by which one person makes their account."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email

from accounts import invites
from accounts.models import Role, normal_email
from memory.folder.clock import utc_now


class Command(BaseCommand):
    help = (
        "Make a link by which one person makes their account, print it, and mail it when PREVIOUSLY_EMAIL_URL is set."
        " It works once; a second one for the same address takes the place of the first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address that the person will sign in with")
        parser.add_argument("--administrator", action="store_true", help="the account may administer this server")
        parser.add_argument("--days", type=int, default=invites.LIFE_DAYS, help="how long the link works (default: 7)")
        parser.add_argument("--address", default="", help="this server's address, such as https://chat.example.org")

    def handle(self, *args: Any, **options: Any) -> None:
        configured, email, days = settings.PREVIOUSLY, normal_email(options["email"]), options["days"]
        if not invites.are_possible():
            raise CommandError("Sign-up is closed, so no link would work: set PREVIOUSLY_SIGNUP to invite.")
        if not 1 <= days <= invites.LONGEST_DAYS:
            raise CommandError(f"--days {days} cannot be used: give a number from 1 to {invites.LONGEST_DAYS}.")
        try:
            validate_email(email)
            role = Role.ADMINISTRATOR if options["administrator"] else Role.PERSON
            link = invites.issue(email, role=role, by=None, now=utc_now(), days=days)
        except ValidationError as error:
            raise CommandError(f"{email!r} is no e-mail address.") from error
        except invites.HasAccount as error:
            raise CommandError(f"There is an account {email} already.") from error
        server = options["address"] or next(iter(configured.trusted_origins), "http://localhost:8000")
        address = server.rstrip("/") + link
        mailed = invites.mail(email, address, days=days)
        self.stdout.write(f"{'Mailed' if mailed else 'Hand this over'} to {email}; it works once, for {days} days:")
        self.stdout.write(address)
