"""Invitations: one link, one address, one account, for a while."""

import threading
from datetime import timedelta

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts import invites
from accounts.models import Invite, Role, User
from tests.conftest import PASSWORD

FORM = {"called": "Alice", "password": PASSWORD}

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir", "_clean_cache")]


@pytest.fixture(autouse=True)
def _by_invitation(previously):
    previously(signup="invite")


def issue(email: str = "Alice@Example.org", *, role: str = Role.PERSON, **ago: float) -> str:
    return invites.issue(email, role=role, by=None, now=timezone.now() - timedelta(**ago))


def test_it_works(client):
    link = issue()
    assert "alice@example.org" in client.get(link).content.decode()
    answer = client.post(link, FORM)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    alice = User.objects.get()
    assert (alice.email, alice.called, alice.is_staff, alice.is_superuser) == (
        "alice@example.org",
        "Alice",
        False,
        False,
    )
    assert client.session["_auth_user_id"] == str(alice.pk)
    assert alice.emailaddress_set.get().verified


def test_a_link_works_once(client):
    link = issue()
    client.post(link, FORM)
    for answer in (client.get(link), client.post(link, FORM)):
        assert answer.status_code == 404
        assert "ask whoever invited you" in answer.content.decode()
    assert User.objects.count() == 1


@pytest.mark.parametrize("policy", ["closed"])
def test_a_closed_server_takes_nobody(client, previously, policy):
    link = issue()
    previously(signup=policy)
    assert client.post(link, FORM).status_code == 404
    assert not User.objects.exists()


def test_links_that_are_none(client):
    old, replaced, good = issue(days=7, minutes=1), issue("bob@example.org"), issue("bob@example.org")
    for link in (old, replaced, "/invited/x/", "/invited/" + "a" * 300 + "/"):
        assert client.get(link).status_code == 404
    assert client.get(good).status_code == 200


def test_the_token_is_not_kept(client):
    link = issue()
    token = link.split("/")[2]
    assert token not in str(Invite.objects.values().get())


def test_an_administrator_s_invitation_makes_one(client):
    client.post(issue(role=Role.ADMINISTRATOR), FORM)
    alice = User.objects.get()
    assert alice.is_superuser
    assert alice.is_staff


def test_the_form_cannot_ask_for_more(client):
    client.post(issue(), FORM | {"email": "mallory@example.org", "role": "administrator", "is_superuser": "on"})
    alice = User.objects.get()
    assert (alice.email, alice.is_superuser) == ("alice@example.org", False)


@pytest.mark.parametrize("change", [{"password": "short"}, {"password": ""}, {"called": "\u202e"}])
def test_a_form_filled_in_wrongly_does_not_use_the_link(client, change):
    link = issue()
    assert client.post(link, FORM | change).status_code == 422
    assert client.get(link).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_gets_the_account():
    token = issue().split("/")[2]
    made: list[object] = []
    begin = threading.Barrier(4)

    def accept() -> None:
        begin.wait()
        try:
            made.append(invites.accept(token, called="Alice", password=PASSWORD, language="en", now=timezone.now()))
        except invites.Spent as spent:
            made.append(spent)
        finally:
            connection.close()

    threads = [threading.Thread(target=accept) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, User) for one in made) == 1
    assert sum(isinstance(one, invites.Spent) for one in made) == 3


def test_the_command_prints_the_link_and_mails_it(client, previously, capsys):
    previously(signup="invite", email_url="console://", trusted_origins=("https://chat.example.org",))
    call_command("invite", "Alice@Example.org", "--administrator", "--days", "2")
    said = capsys.readouterr().out
    assert said.startswith("Mailed to alice@example.org; it works once, for 2 days:\nhttps://chat.example.org/invited/")
    [message] = mail.outbox
    assert message.to == ["alice@example.org"]
    assert said.splitlines()[1] in message.body
    assert "It works for 2 days." in message.body
    assert Invite.objects.get().role == Role.ADMINISTRATOR
    assert client.get(said.splitlines()[1].removeprefix("https://chat.example.org")).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["nobody"], "no e-mail address"), (["a@example.org", "--days", "0"], "give a number from 1 to 90")],
)
def test_the_command_says_what_cannot_be(arguments, why):
    with pytest.raises(CommandError, match=why):
        call_command("invite", *arguments)


def test_the_command_refuses_who_is_here_and_a_closed_server(alice, previously):
    with pytest.raises(CommandError, match="There is an account"):
        call_command("invite", "ALICE@example.org")
    previously(signup="closed")
    with pytest.raises(CommandError, match="set PREVIOUSLY_SIGNUP to invite"):
        call_command("invite", "bob@example.org")


def test_the_administration_makes_and_withdraws(client, dana, as_person):
    there = as_person(dana)
    answer = there.post(
        "/admin/accounts/invite/add/", {"email": "Alice@Example.org", "role": "person", "days": 3}, follow=True
    )
    page = answer.content.decode()
    assert "Hand this link over to alice@example.org yourself" in page
    link = page.partition("http://testserver")[2].partition("/invited/")[2].partition("/")[0]
    invite = Invite.objects.get()
    assert (invite.by, invite.email) == (dana, "alice@example.org")
    assert client.get(f"/invited/{link}/").status_code == 200
    there.post(f"/admin/accounts/invite/{invite.pk}/delete/", {"post": "yes"})
    assert client.get(f"/invited/{link}/").status_code == 404


def test_nobody_hands_out_rights_they_lack(bob, as_person):
    from django.contrib.auth.models import Permission

    bob.is_staff = True
    bob.save()
    bob.user_permissions.add(*Permission.objects.filter(content_type__model="invite"))
    there = as_person(bob)
    there.post("/admin/accounts/invite/add/", {"email": "x@example.org", "role": "administrator", "days": 3})
    assert not Invite.objects.exists()
    there.post("/admin/accounts/invite/add/", {"email": "x@example.org", "role": "person", "days": 3})
    assert Invite.objects.get().role == Role.PERSON
