"""Who may make an account, and what a name can do."""

import pytest
from django.conf import settings as django_settings

from accounts.models import User
from accounts.names import clean_name

FORM = {"email": "Alice@Example.org", "called": "Alice", "password1": "a-long-walk-by-the-sea"}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_data(data_dir, _clean_cache):
    """Nothing here may reach another test's folder or attempts."""


def test_it_works(client, previously):
    previously(signup="open")
    assert client.get("/accounts/signup/").status_code == 200
    answer = client.post("/accounts/signup/", FORM, headers={"accept-language": "zh-CN"})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    alice = User.objects.get()
    assert (alice.email, alice.called, alice.language) == ("alice@example.org", "Alice", "zh-hans")
    assert not alice.is_staff
    assert not alice.is_superuser
    assert client.session["_auth_user_id"] == str(alice.pk)


@pytest.mark.parametrize("policy", ["closed", "invite"])
def test_closed_says_what_to_do_and_makes_nobody(client, previously, policy):
    previously(signup=policy)
    for page in (client.get("/accounts/signup/"), client.post("/accounts/signup/", FORM)):
        assert "New accounts on this server are made by its administrator" in page.content.decode()
    assert not User.objects.exists()


def test_one_address_is_one_account_however_it_is_written(client, previously, alice):
    previously(signup="open")
    answer = client.post("/accounts/signup/", FORM | {"email": "ALICE@EXAMPLE.ORG"})
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert User.objects.count() == 1


def test_the_first_to_sign_up_is_no_administrator(client, previously):
    previously(signup="open")
    client.post("/accounts/signup/", FORM)
    assert client.get("/admin/", follow=True).status_code == 404


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("..", ".."),
        ("../x", "../x"),
        (".git", ".git"),
        ("CON", "CON"),
        ("trailing.", "trailing."),
        ("--exec=touch pwned", "--exec=touch pwned"),
        ("a\u202eb", "ab"),
        ("Ａdmin", "Ａdmin"),
        ("two\r\nlines", "two lines"),
        ("  李  明 ", "李 明"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
    ],
)
def test_a_name_is_data_and_never_a_path(client, previously, data_dir, typed, kept):
    previously(signup="open")
    assert client.post("/accounts/signup/", FORM | {"called": typed}).status_code == 302
    person = User.objects.get()
    assert person.called == kept
    assert not [
        path
        for path in data_dir.rglob("*")
        if str(person.pk) not in str(path.relative_to(data_dir))
        and path.name not in ("folders", "run", "pending", "cache")
    ]
    assert "<img src=x" not in client.get("/settings/").content.decode()


def test_a_name_is_cut_and_stays_one_line():
    assert clean_name("x" * 300) == "x" * 80
    assert clean_name("a\u2028b\x00c\ud800") == "a b c"


@pytest.mark.parametrize("email", ["a@b\nBcc: c@example.org", "..@", "a b@example.org", "x" * 300 + "@example.org"])
def test_an_address_that_is_none_is_refused(client, previously, email):
    previously(signup="open")
    assert "errorlist" in client.post("/accounts/signup/", FORM | {"email": email}).content.decode()
    assert not User.objects.exists()


def test_sign_up_is_limited(client, previously):
    previously(signup="open")
    limit = 20
    statuses = [client.post("/accounts/signup/", {}).status_code for _ in range(limit + 1)]
    assert statuses[:limit] == [200] * limit
    assert statuses[limit] == 429


def test_without_a_mail_server_addresses_are_not_asked_to_be_proved():
    assert django_settings.ACCOUNT_EMAIL_VERIFICATION == "none"
