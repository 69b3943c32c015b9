"""The one-time link that makes the first administrator."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from accounts import first
from accounts.models import FirstLink, User
from memory.folder.clock import utc_now

FORM = {"email": "Dana@Example.org", "called": "Dana", "password": "a-long-walk-by-the-sea"}


@pytest.mark.django_db
def test_it_works(client):
    link = first.issue(utc_now())
    page = client.get(link)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    answer = client.post(link, FORM)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    dana = User.objects.get()
    assert (dana.email, dana.called, dana.language) == ("dana@example.org", "Dana", "en")
    assert dana.is_staff
    assert dana.is_superuser
    assert client.session["_auth_user_id"] == str(dana.pk)


@pytest.mark.django_db
def test_the_page_gives_the_account_its_language(client):
    client.post(first.issue(utc_now()), FORM, headers={"accept-language": "zh-CN,zh;q=0.9"})
    assert User.objects.get().language == "zh-hans"


@pytest.mark.django_db
def test_it_works_once():
    link = first.issue(utc_now())
    assert Client().post(link, FORM).status_code == 302
    for visit in (Client().get(link), Client().post(link, FORM | {"email": "charlie@example.org"})):
        assert visit.status_code == 404
        assert "This link works no more" in visit.content.decode()
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_it_expires():
    now = utc_now()
    token = first.issue(now - timedelta(hours=first.LIFE_HOURS, milliseconds=1)).split("/")[2]
    assert not first.is_good(token, now)
    with pytest.raises(first.LinkSpent):
        first.make_administrator(token, **FORM, language="en", now=now)
    assert not User.objects.exists()


@pytest.mark.django_db
def test_a_new_link_takes_the_place_of_the_old_one(client):
    old, new = first.issue(utc_now()), first.issue(utc_now())
    assert client.get(old).status_code == 404
    assert client.get(new).status_code == 200


@pytest.mark.django_db
def test_only_a_hash_is_kept():
    token = first.issue(utc_now()).split("/")[2]
    kept = FirstLink.objects.get().token_hash
    assert len(kept) == 64
    assert token not in kept


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["x", "..", "%2e%2e", "a" * 5000, "é"])
def test_a_guess_is_not_found(client, token):
    first.issue(utc_now())
    assert client.get(f"/first/{token}/").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value"),
    [("email", "dana"), ("email", ""), ("called", "\u202e \x00"), ("password", "short"), ("password", "")],
)
def test_a_form_that_is_refused_does_not_use_the_link_up(client, field, value):
    link = first.issue(utc_now())
    refused = client.post(link, FORM | {field: value})
    assert refused.status_code == 422
    assert 'class="errorlist"' in refused.content.decode()
    assert client.post(link, FORM).status_code == 302


@pytest.mark.django_db
def test_an_address_in_use_is_refused_and_the_link_stays_good(client, make_person):
    make_person("Alice")
    link = first.issue(utc_now())
    assert client.post(link, FORM | {"email": "ALICE@example.org"}).status_code == 422
    assert client.post(link, FORM).status_code == 302


@pytest.mark.django_db
def test_with_an_administrator_there_every_link_is_worthless(client, dana):
    assert client.get(first.issue(utc_now())).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_two_visitors_at_once_make_one_administrator():
    link = first.issue(utc_now())
    line = threading.Barrier(4)
    statuses: list[int] = []

    def visit(number: int) -> None:
        try:
            line.wait()
            statuses.append(Client().post(link, FORM | {"email": f"visitor{number}@example.org"}).status_code)
        finally:
            connection.close()

    visitors = [threading.Thread(target=visit, args=[number]) for number in range(4)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert sorted(statuses) == [302, 404, 404, 404]
    assert User.objects.filter(is_superuser=True).count() == User.objects.count() == 1
