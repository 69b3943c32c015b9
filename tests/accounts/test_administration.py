"""Administrators make, rename and close accounts; they do not touch what is a person's own to choose."""

import pytest
from allauth.account.models import EmailAddress
from django.test import Client

from accounts.models import User
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db

NEW = {"email": "Alice@Example.org", "called": "Alice", "password1": PASSWORD, "password2": PASSWORD}


def test_it_works(dana, as_person):
    answer = as_person(dana).post("/admin/accounts/user/add/", NEW)
    assert answer.status_code == 302
    alice = User.objects.get(email="alice@example.org")
    assert (alice.called, alice.is_staff) == ("Alice", False)
    address = EmailAddress.objects.get(user=alice)
    assert (address.email, address.verified, address.primary) == ("alice@example.org", True, True)
    signed_in = Client().post("/accounts/login/", {"login": "alice@example.org", "password": PASSWORD})
    assert signed_in.status_code == 302


def test_one_address_is_one_account(dana, alice, as_person):
    answer = as_person(dana).post("/admin/accounts/user/add/", NEW)
    assert answer.status_code == 200
    assert "There is an account with this address" in answer.content.decode()


def test_a_changed_address_is_the_one_to_sign_in_with(dana, alice, as_person):
    page = f"/admin/accounts/user/{alice.pk}/change/"
    answer = as_person(dana).post(page, {"email": "ALICE@sea.example.org", "called": "Alice", "is_active": "on"})
    assert answer.status_code == 302
    assert EmailAddress.objects.get(user=alice, primary=True).email == "alice@sea.example.org"
    signed_in = Client().post("/accounts/login/", {"login": "alice@sea.example.org", "password": PASSWORD})
    assert signed_in.status_code == 302


def test_preferences_are_not_in_the_form(dana, alice, as_person):
    client = as_person(dana)
    page = client.get(f"/admin/accounts/user/{alice.pk}/change/").content.decode()
    assert 'name="called"' in page
    assert not [field for field in ("timezone", "language", "theme", "slice_minutes") if f'name="{field}"' in page]


def test_nobody_else_gets_in(alice, charlie, client, as_person):
    page = f"/admin/accounts/user/{alice.pk}/change/"
    assert client.get(page).status_code == 302
    assert as_person(charlie).get(page).status_code == 404
