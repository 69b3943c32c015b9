"""Letting people in, and closing an account: nobody reads a word for it."""

import pytest
from django.core import mail
from django.test import Client

from accounts.models import User
from memory import access, tasks
from memory.conversation.due import Answer
from tests.conftest import PASSWORD
from tests.web.pages import keep, newest

FORM = {"email": "Alice@Example.org", "called": "Alice", "password1": PASSWORD}
SIGN_IN = {"login": "alice@example.org", "password": PASSWORD}

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("data_dir", "_clean_cache")]


@pytest.fixture
def waiting(client, previously) -> User:
    previously(signup="approve", email_url="console://")
    client.post("/accounts/signup/", FORM)
    return User.objects.get(email="alice@example.org")


def act(dana, as_person, action: str, person: User) -> str:
    data = {"action": action, "_selected_action": [str(person.pk)]}
    return as_person(dana).post("/admin/accounts/user/", data, follow=True).content.decode()


def test_it_works(client, dana, as_person, waiting):
    assert (waiting.is_active, waiting.awaits_approval) == (False, True)
    assert "Your account is not open" in client.post("/accounts/login/", SIGN_IN, follow=True).content.decode()
    assert client.get("/").status_code == 302
    mail.outbox.clear()

    assert "Let in, and told so: alice@example.org." in act(dana, as_person, "let_in", waiting)

    [message] = mail.outbox
    assert message.to == ["alice@example.org"]
    assert "http://testserver/accounts/login/" in message.body
    waiting.refresh_from_db()
    assert (waiting.is_active, waiting.awaits_approval) == (True, False)
    assert client.post("/accounts/login/", SIGN_IN).status_code == 302


def test_ticking_the_box_lets_in_too_and_says_when_nobody_was_told(dana, as_person, waiting, previously):
    previously(signup="approve", email_url="")
    page = f"/admin/accounts/user/{waiting.pk}/change/"
    answer = as_person(dana).post(page, {"email": waiting.email, "called": "Alice", "is_active": "on"}, follow=True)
    assert "tell them yourself" in answer.content.decode()
    waiting.refresh_from_db()
    assert (waiting.is_active, waiting.awaits_approval) == (True, False)


def test_a_closed_account_is_not_let_in_by_the_same_action(dana, as_person, alice, previously):
    previously(signup="approve")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    act(dana, as_person, "let_in", alice)
    alice.refresh_from_db()
    assert not alice.is_active


def test_closing_ends_sessions_for_good(dana, as_person, alice):
    client = as_person(alice)
    assert client.get("/").status_code == 200
    assert "signed out everywhere: alice@example.org" in act(dana, as_person, "close", alice)
    assert client.get("/").status_code == 302
    User.objects.filter(pk=alice.pk).update(is_active=True)
    assert client.get("/").status_code == 302


def test_closing_in_the_form_ends_sessions_too(dana, as_person, alice):
    client = as_person(alice)
    page = f"/admin/accounts/user/{alice.pk}/change/"
    as_person(dana).post(page, {"email": alice.email, "called": "Alice"})
    User.objects.filter(pk=alice.pk).update(is_active=True)
    assert client.get("/").status_code == 302


def test_an_administrator_does_not_close_their_own(dana, as_person):
    act(dana, as_person, "close", dana)
    dana.refresh_from_db()
    assert dana.is_active


def test_nobody_is_answered_in_a_closed_account_until_it_is_open_again(alice):
    found = keep(alice, None, ("aaaaaa", "Hello?", None), active=True, minutes_ago=1)
    access.folder_of(alice).state.mark_pending()
    User.objects.filter(pk=alice.pk).update(is_active=False)
    tasks.answer(str(alice.pk), found.slice_id, "aaaaaa")
    tasks.work_off(progress=lambda job: None)
    assert newest(alice).entry("aaaaaa", "agent") is None
    assert access.folder_of(alice).state.pending.exists()
    User.objects.filter(pk=alice.pk).update(is_active=True)
    done: list[object] = []
    tasks.work_off(progress=done.append)
    assert Answer(found.slice_id, "aaaaaa") in done
    assert newest(alice).entry("aaaaaa", "agent")


def test_a_reply_that_is_being_written_is_asked_to_end(dana, as_person, alice):
    found = keep(alice, None, ("aaaaaa", "Hello?", None), active=True, minutes_ago=1)
    replies = access.folder_of(alice).state.make() / "replies"
    replies.mkdir()
    (replies / f"{found.slice_id}-aaaaaa.events").touch()
    act(dana, as_person, "close", alice)
    assert (replies / f"{found.slice_id}-aaaaaa.stop").exists()


def test_two_factor_sign_in_can_be_reached_and_set_up(alice, as_person):
    client = Client()
    client.post("/accounts/login/", SIGN_IN)
    assert "/accounts/2fa/" in client.get("/settings/").content.decode()
    to = client.get("/accounts/2fa/totp/activate/")["Location"]
    page = client.post(to, {"password": PASSWORD}, follow=True)  # the password once more
    assert page.status_code == 200
    assert 'name="code"' in page.content.decode()


def test_a_task_without_a_person_fails_loudly():
    with pytest.raises(TypeError):
        tasks.answer(slice_id="2026-08-10-2130", turn_id="aaaaaa")  # type: ignore[call-arg]
