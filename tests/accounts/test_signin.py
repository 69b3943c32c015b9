"""Signing in and out, its limits, and the way into the administration."""

import pytest
from django.test import Client

from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def sign_in(client: Client, email: str, password: str, **headers: str):
    return client.post("/accounts/login/", {"login": email, "password": password}, headers=headers)


def test_it_works(client, alice):
    answer = sign_in(client, "alice@example.org", PASSWORD)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/settings/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/settings/")["Location"] == "/accounts/login/?next=/settings/"


def test_the_address_may_be_written_in_capitals(client, alice):
    assert sign_in(client, " ALICE@example.org ", PASSWORD).status_code == 302


def test_a_wrong_password_and_an_unknown_address_look_the_same(client, alice):
    wrong = sign_in(client, "alice@example.org", "not this one").content.decode()
    unknown = sign_in(client, "nobody@example.org", "not this one").content.decode()
    error = 'class="errorlist nonfield'
    assert error in wrong
    line = [part for part in wrong.splitlines() if error in part]
    assert line == [part for part in unknown.splitlines() if error in part]


def test_guessing_is_limited(client, alice):
    for _ in range(5):
        sign_in(client, "alice@example.org", "not this one")
    refused = sign_in(client, "alice@example.org", PASSWORD)
    assert refused.status_code == 200
    assert "Too many failed login attempts" in refused.content.decode()
    assert client.get("/settings/").status_code == 302


def test_a_forged_address_does_not_lift_the_limit(client, alice):
    """Without a trusted proxy the header with the client's address is anybody's to write."""
    statuses = [
        sign_in(client, f"nobody{number}@example.org", "x", **{"x-forwarded-for": f"203.0.113.{number}"})
        for number in range(11)
    ]
    assert "Too many failed login attempts" not in statuses[9].content.decode()
    assert "Too many failed login attempts" in statuses[10].content.decode()


def test_behind_one_trusted_proxy_its_word_counts(client, alice, settings):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    answers = [
        sign_in(client, f"nobody{number}@example.org", "x", **{"x-forwarded-for": f"198.51.100.7, 203.0.113.{number}"})
        for number in range(12)
    ]
    assert "Too many failed login attempts" not in answers[-1].content.decode()


def test_the_administration_has_no_sign_in_of_its_own(client, alice, dana, as_person):
    assert client.get("/admin/login/")["Location"].startswith("/accounts/login/?next=")
    assert client.post("/admin/login/", {"username": "dana@example.org", "password": PASSWORD}).status_code == 302
    assert client.get("/admin/").status_code == 302
    assert as_person(alice).get("/admin/", follow=True).status_code == 404
    assert as_person(dana).get("/admin/").status_code == 200


def test_who_is_signed_out_by_an_administrator_is_out(alice, as_person):
    client = as_person(alice)
    alice.is_active = False
    alice.save()
    assert client.get("/settings/").status_code == 302


def test_without_a_mail_server_the_reset_page_says_so(client, alice):
    page = client.get("/accounts/password/reset/").content.decode()
    assert "This server sends no e-mail" in page
    assert '<input type="email"' not in page


def test_a_password_is_reset_by_mail(client, alice, previously, mailoutbox):
    previously(email_url="smtp://mail.example.org")
    assert '<input type="email"' in client.get("/accounts/password/reset/").content.decode()
    answer = client.post("/accounts/password/reset/", {"email": "alice@example.org"}, follow=True)
    assert "Look into your mailbox" in answer.content.decode()
    [message] = mailoutbox
    assert message.to == ["alice@example.org"]
    link = next(word for word in message.body.split() if "/password/reset/key/" in word)
    form = client.get(link.replace("http://testserver", ""), follow=True)
    client.post(
        form.request["PATH_INFO"], {"password1": "another-walk-by-the-lake", "password2": "another-walk-by-the-lake"}
    )
    assert sign_in(Client(), "alice@example.org", "another-walk-by-the-lake").status_code == 302


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/email/",
        "/accounts/password/change/",
        "/accounts/2fa/",
        "/accounts/logout/",
        "/accounts/reauthenticate/",
    ],
)
def test_every_account_page_is_in_our_frame(alice, as_person, path):
    page = as_person(alice).get(path, follow=True)
    assert page.status_code == 200
    assert 'class="bar"' in page.content.decode()
