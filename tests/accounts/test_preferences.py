"""The settings page and the two switches."""

import pytest
from django.test import Client

from accounts import zones
from accounts.models import User
from memory.folder.clock import known_zone

pytestmark = pytest.mark.django_db

CHOICES = {
    "called": "Ali",
    "timezone": "Asia/Shanghai",
    "language": "zh-hans",
    "theme": "dark",
    "slice_minutes": "45",
    "slice_turns": "20",
}


def test_it_works(alice, as_person):
    client = as_person(alice)
    assert 'value="Europe/Berlin"' in client.get("/settings/").content.decode()
    answer = client.post("/settings/", CHOICES)
    assert (answer.status_code, answer["Location"]) == (302, "/settings/")
    alice.refresh_from_db()
    assert (alice.called, alice.timezone, alice.language, alice.theme) == ("Ali", "Asia/Shanghai", "zh-hans", "dark")
    assert (alice.slice_minutes, alice.slice_turns) == (45, 20)
    page = client.get("/settings/").content.decode()
    assert '<html lang="zh-hans" data-theme="dark">' in page


@pytest.mark.parametrize("zone", ["Mars/Phobos", "UTC+8", "../../etc/passwd", "x" * 300, "europe/berlin"])
def test_an_unknown_zone_is_refused_and_nothing_is_changed(alice, as_person, zone):
    answer = as_person(alice).post("/settings/", CHOICES | {"timezone": zone})
    assert answer.status_code == 422
    assert 'class="errorlist"' in answer.content.decode()
    alice.refresh_from_db()
    assert (alice.called, alice.timezone) == ("Alice", "Europe/Berlin")


def test_the_page_and_the_memory_know_the_same_zones():
    assert {name for name in zones.names() if known_zone(name) is None} == set()
    assert not {"localtime", "", "Mars/Phobos"} & zones.names()
    assert set(zones.offered()) < zones.names()


@pytest.mark.parametrize("zone", ["", "Asia/Calcutta", "UTC"])
def test_aliases_and_no_zone_are_fine(alice, as_person, zone):
    assert as_person(alice).post("/settings/", CHOICES | {"timezone": zone}).status_code == 302
    alice.refresh_from_db()
    assert alice.timezone == zone


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slice_minutes", "4"),
        ("slice_minutes", "121"),
        ("slice_minutes", "half an hour"),
        ("slice_turns", "4"),
        ("slice_turns", "101"),
        ("language", "de"),
        ("theme", "sepia"),
        ("called", "\u202e"),
    ],
)
def test_out_of_range_is_refused(alice, as_person, field, value):
    answer = as_person(alice).post("/settings/", CHOICES | {field: value})
    assert answer.status_code == 422
    before = User.objects.get(pk=alice.pk)
    assert (before.called, before.slice_minutes, before.slice_turns) == ("Alice", 30, 50)


@pytest.mark.parametrize("field", ["is_staff", "is_superuser", "email", "id"])
def test_nobody_promotes_themselves(alice, as_person, field):
    as_person(alice).post("/settings/", CHOICES | {field: "1"})
    after = User.objects.get(pk=alice.pk)
    assert (after.is_staff, after.is_superuser, after.email) == (False, False, "alice@example.org")


def test_settings_need_a_person(client):
    assert client.get("/settings/")["Location"] == "/accounts/login/?next=/settings/"


def test_language_comes_from_the_account_then_the_cookie_then_the_browser(alice, bob, as_person):
    chinese = {"accept-language": "zh-CN,zh;q=0.9,en;q=0.5"}
    assert '<html lang="en"' in as_person(alice).get("/settings/", headers=chinese).content.decode()
    assert '<html lang="zh-hans"' in as_person(bob).get("/settings/").content.decode()
    stranger = Client()
    assert '<html lang="zh-hans"' in stranger.get("/accounts/login/", headers=chinese).content.decode()
    stranger.post("/language/", {"language": "en", "next": "/accounts/login/"})
    assert '<html lang="en"' in stranger.get("/accounts/login/", headers=chinese).content.decode()


def test_the_switches_change_the_account(alice, as_person):
    client = as_person(alice)
    answer = client.post("/language/", {"language": "zh-hans", "next": "/settings/"})
    assert (answer.status_code, answer["Location"]) == (302, "/settings/")
    client.post("/theme/", {"theme": "dark"})
    alice.refresh_from_db()
    assert (alice.language, alice.theme) == ("zh-hans", "dark")


def test_the_theme_of_a_visitor_is_kept_in_a_cookie(client):
    answer = client.post("/theme/", {"theme": "light", "next": "/accounts/login/"})
    assert answer.cookies["theme"]["httponly"]
    assert answer.cookies["theme"]["samesite"] == "Lax"
    assert 'data-theme="light"' in client.get("/accounts/login/").content.decode()
    client.cookies["theme"] = '"><script>'
    assert 'data-theme="system"' in client.get("/accounts/login/").content.decode()


@pytest.mark.parametrize(
    "away", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "\\\\evil.example", ""]
)
def test_a_switch_leads_nowhere_else(client, away):
    assert client.post("/theme/", {"theme": "dark", "next": away})["Location"] == "/"


@pytest.mark.parametrize(("path", "choice"), [("/language/", {"language": "de"}), ("/theme/", {"theme": "sepia"})])
def test_a_choice_that_does_not_exist_changes_nothing(alice, as_person, path, choice):
    assert not as_person(alice).post(path, choice).cookies
    alice.refresh_from_db()
    assert (alice.language, alice.theme) == ("en", "system")


@pytest.mark.parametrize("path", ["/language/", "/theme/", "/settings/", "/accounts/login/", "/accounts/logout/"])
def test_every_form_needs_its_token(alice, path):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post(path, CHOICES).status_code == 403
