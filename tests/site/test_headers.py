"""Headers on the wire: the content security policy on everything, no copies of a signed-in person's pages."""

import pytest
from django.conf import settings as django_settings

from previously_site.middleware import content_security_policy

POLICY = (
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'"
)
STATIC = "/static/django_htmx/htmx-2.min.js"

pytestmark = pytest.mark.django_db


def test_it_works(alice, as_person):
    page = as_person(alice).get("/settings/")
    assert page["Content-Security-Policy"] == POLICY
    assert page["Cache-Control"] == "no-store"
    assert page["X-Content-Type-Options"] == "nosniff"
    assert page["X-Frame-Options"] == "DENY"
    assert page["Referrer-Policy"] == "same-origin"
    assert "Content-Language" in page


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/settings/",
        "/admin/",
        "/accounts/login/",
        "/accounts/signup/",
        "/first/x/",
        "/nowhere/",
        "/healthz",
        STATIC,
    ],
)
def test_every_answer_carries_the_policy(client, dana, as_person, path):
    assert client.get(path)["Content-Security-Policy"] == POLICY
    assert as_person(dana).get(path)["Content-Security-Policy"] == POLICY


@pytest.mark.parametrize("path", ["/settings/", "/admin/", "/nowhere/", "/accounts/password/change/"])
def test_no_page_of_a_signed_in_person_is_kept(dana, as_person, path):
    assert "no-store" in as_person(dana).get(path)["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["/settings/", "/accounts/login/", "/accounts/2fa/", "/admin/", "/admin/accounts/user/"]
)
def test_no_page_needs_what_the_policy_forbids(client, dana, as_person, path):
    for visitor in (client, as_person(dana)):
        page = visitor.get(path, follow=True).content.decode()
        assert " style=" not in page
        assert " hx-on" not in page
        assert "<script>" not in page


def test_static_files_are_served_without_collecting_them(client):
    answer = client.get(STATIC)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/javascript")
    assert "no-store" not in answer["Cache-Control"]


def test_the_policy_lets_a_form_lead_to_the_single_sign_on_server():
    policy = content_security_policy("https://id.example.org")
    assert "form-action 'self' https://id.example.org; frame-ancestors 'none'" in policy


def test_healthz_takes_any_host_and_asks_no_database(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz", headers={"host": "10.0.0.7:8000"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert client.get("/", headers={"host": "10.0.0.7:8000"}).status_code == 400


def test_a_page_for_nobody_may_depend_on_language_and_cookie(client):
    assert {"Accept-Language", "Cookie"} <= {name.strip() for name in client.get("/accounts/login/")["Vary"].split(",")}


def test_cookies_are_out_of_reach_of_scripts(client, alice):
    client.get("/accounts/login/")
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.cookies["csrftoken"]["httponly"]
    assert django_settings.SESSION_COOKIE_HTTPONLY
