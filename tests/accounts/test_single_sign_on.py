"""Signing in by a single sign-on server: the sign-up policy holds there too."""

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from accounts import invites
from accounts.models import Invite, User
from tests.accounts import issuer as issuers
from tests.accounts.issuer import Issuer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir", "_clean_cache")]


@pytest.fixture
def issuer(settings) -> Iterator[Issuer]:
    with issuers.running() as running:
        running.person = {"sub": "42", "email": "Alice@Example.org", "email_verified": True, "name": "Alice"}
        app = {
            "provider_id": "oidc",
            "name": "Single sign-on",
            "client_id": "previously",
            "secret": "a-secret",
            "settings": {"server_url": running.url},
        }
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
        settings.SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
        settings.SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
        yield running


def sign_in(client: Client):
    """What the browser sees in the end."""
    to = client.post("/accounts/oidc/oidc/login/")
    assert to.status_code == 302, to.content
    state = parse_qs(urlsplit(to["Location"]).query)["state"][0]
    return client.get("/accounts/oidc/oidc/login/callback/", {"code": "a-code", "state": state}, follow=True)


def test_it_works(client, issuer, previously):
    previously(signup="open")
    assert "Single sign-on" in client.get("/accounts/login/").content.decode()
    sign_in(client)
    alice = User.objects.get()
    assert (alice.email, alice.called, alice.is_staff) == ("alice@example.org", "Alice", False)
    assert client.session["_auth_user_id"] == str(alice.pk)


@pytest.mark.parametrize("policy", ["closed", "invite"])
def test_strangers_are_not_let_in(client, issuer, previously, policy):
    previously(signup=policy)
    assert "Sign-up is closed" in sign_in(client).content.decode()
    assert not User.objects.exists()


def test_who_has_an_account_comes_in_under_any_policy(client, issuer, previously, alice):
    previously(signup="closed")
    sign_in(client)
    assert client.session["_auth_user_id"] == str(alice.pk)
    assert User.objects.count() == 1


def test_an_invited_person_comes_in_once_and_with_their_role(client, issuer, previously):
    previously(signup="invite")
    invites.issue("alice@example.org", role="administrator", by=None, now=timezone.now())
    sign_in(client)
    alice = User.objects.get()
    assert alice.is_superuser
    assert client.session["_auth_user_id"] == str(alice.pk)
    assert not Invite.objects.exists()


def test_an_address_that_is_not_proved_is_not_invited(client, issuer, previously):
    previously(signup="invite")
    issuer.person["email_verified"] = False
    invites.issue("alice@example.org", role="person", by=None, now=timezone.now())
    assert "Sign-up is closed" in sign_in(client).content.decode()
    assert not User.objects.exists()
    assert Invite.objects.exists()


def test_an_old_invitation_is_none(client, issuer, previously):
    previously(signup="invite")
    invites.issue("alice@example.org", role="person", by=None, now=timezone.now() - timedelta(days=8))
    sign_in(client)
    assert not User.objects.exists()


def test_who_has_to_be_approved_waits(client, issuer, previously):
    previously(signup="approve")
    assert "Your account is not open" in sign_in(client).content.decode()
    alice = User.objects.get()
    assert (alice.is_active, alice.awaits_approval) == (False, True)
    assert "_auth_user_id" not in client.session
