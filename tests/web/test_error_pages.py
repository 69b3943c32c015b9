"""The pages for what goes wrong: in our look, in words, and standing when little else does."""

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.views import defaults
from django.views.csrf import csrf_failure

from tests.web.pages import text_of

pytestmark = pytest.mark.usefixtures("data_dir")


@pytest.mark.django_db
def test_it_works(alice, as_person):
    answer = as_person(alice).get("/nowhere/")
    assert answer.status_code == 404
    assert "There is nothing here" in text_of(answer)
    assert 'class="bar"' in text_of(answer)


def test_the_page_for_an_error_of_ours_needs_nothing_but_itself():
    answer = defaults.server_error(RequestFactory().get("/"))
    assert answer.status_code == 500
    assert "Something went wrong" in text_of(answer)


@pytest.mark.parametrize("name", ["400.html", "403.html", "403_csrf.html", "404.html", "500.html"])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_error_page_can_be_shown_in_both_languages(name, language, settings):
    settings.LANGUAGE_CODE = language
    assert 'class="code-number"' in render_to_string(name)


@pytest.mark.django_db
def test_a_stale_form_says_what_to_do(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend=settings.AUTHENTICATION_BACKENDS[0])
    answer = client.post("/", {"text": "Hello."})
    assert answer.status_code == 403
    assert "This page is out of date" in text_of(answer)


def test_the_csrf_page_is_ours_for_any_request():
    assert "This page is out of date" in text_of(csrf_failure(RequestFactory().post("/")))
