"""Every URL there is, found by walking the URL configuration, as whoever has no business there.

What stands in a URL is Alice's: her slice, her turn, her commit, her id. None of the others may learn a word of hers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from memory import access
from memory.conversation.own_card import save_card, version_of
from memory.conversation.settle import settle
from memory.folder.clock import utc_now
from tests.web.pages import HTMX, keep

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

SECRET = "Zinnober"
MEMORY = "admin/memory/memory/"

#: Pages for people who are not signed in: allauth's, one-time links, the two switches. They know nobody's memory.
OPEN = ("accounts/", "first/", "invited/", "language/", "theme/")
SIGN_IN = ("/accounts/login/", "/admin/login/", "/admin/")
#: What Django's administration shows to any administrator: nothing but itself.
FOR_STAFF = ("index", "login", "logout", "password_change", "password_change_done", "jsi18n")


@dataclass(frozen=True)
class Page:
    """One URL: its path, its name, and the parameters that stand in it."""

    path: str
    name: str
    parameters: frozenset[str]

    @property
    def of_somebody(self) -> bool:
        """Whether the URL names something of a person's; a year or a month is nobody's."""
        return bool(self.parameters - {"year", "month"})


def walk(values: dict[str, object]) -> list[Page]:
    """Every URL of the configuration, filled in with these values. A parameter without a value is a KeyError."""
    return [
        Page("/" + _filled(route, values), name, frozenset(_parameters(route)))
        for route, name in _routes(get_resolver().url_patterns, "")
    ]


def _routes(patterns: list, before: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, before + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield before + str(pattern.pattern), pattern.name or ""


def _parameters(route: str) -> list[str]:
    return re.findall(r"<(?:\w+:)?(\w+)>", route)


def _filled(route: str, values: dict[str, object]) -> str:
    route = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", lambda found: str(values[found[1]]), route)
    route = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(values[found[1]]), route)
    return re.sub(r"[\^$\\]|/\?$", "", route)


@pytest.fixture
def pages(alice) -> list[Page]:
    """Every URL with Alice's own values in it."""
    made = keep(
        alice, datetime(2026, 3, 9, 22, 45, tzinfo=UTC), ("Ab12cQ", SECRET, SECRET), focus=SECRET, tags=(SECRET,)
    )
    folder, person = access.folder_of(alice), access.person_of(alice)
    save_card(folder, f"# {SECRET}\n", made_from=version_of(None), person=person, now=utc_now())
    settle(folder, now=utc_now())
    return walk(
        {
            "slice_path": made.path,
            "turn_id": "Ab12cQ",
            "commit_id": folder.repository.head(),
            "year": 2026,
            "month": 3,
            "person_id": alice.pk,
            "object_id": alice.pk,
            "id": alice.pk,
            "token": "x" * 43,
            "content_type_id": 1,
            "app_label": "memory",
            "url": "x",
            "key": "x",
            "uidb36": "x",
            "provider_id": "oidc",
        }
    )


def ask(client: Client, page: Page, **headers: str):
    """GET it, or POST it when it takes nothing else."""
    answer = client.get(page.path, **headers)
    return client.post(page.path, **headers) if answer.status_code == 405 else answer


def words_of(answer) -> str:
    if answer.streaming:
        return ""
    return answer.content.decode("utf-8", "replace")


def of_the_administration(page: Page) -> bool:
    return page.path.startswith("/admin/")


def is_open(page: Page) -> bool:
    return page.path[1:].startswith(OPEN)


def test_it_works(pages, alice, as_person):
    names = {page.name for page in pages}
    assert {"chat", "slice", "reply_stream", "settings", "memory_slice", "index", "account_login"} <= names
    assert len(pages) > 80
    for page in pages:
        assert not re.search(r"[<>()|?*]", page.path), page
    by_name = {page.name: page for page in pages}
    assert SECRET in words_of(as_person(alice).get(by_name["slice"].path))
    assert SECRET in words_of(as_person(alice).get(by_name["card_version"].path))


def test_nobody_signed_in_is_sent_to_sign_in(pages):
    client = Client()
    wrong = []
    for page in pages:
        answer = ask(client, page)
        assert SECRET not in words_of(answer), page
        if is_open(page):
            continue
        if page.name == "reply_stream":
            good = answer.status_code == 401
        else:
            good = answer.status_code == 302 and answer["Location"].startswith(SIGN_IN)
        if not good:
            wrong.append((page.path, answer.status_code))
    assert wrong == []


def test_a_script_that_is_not_signed_in_is_told_so(pages):
    client = Client()
    of_accounts = ("settings", "looked", "leave", "login")  # pages that no script of ours asks for
    wrong = [
        (page.path, status)
        for page in pages
        if not is_open(page) and page.name not in of_accounts
        if (status := ask(client, page, **HTMX).status_code) != 401
    ]
    assert wrong == []


def test_a_stranger_finds_nothing(pages, charlie, as_person):
    client = as_person(charlie)
    wrong = []
    for page in pages:
        if page.path == "/settings/leave/":
            continue  # his own, and a POST without his password changes nothing; see test_leaving
        answer = ask(client, page)
        assert SECRET not in words_of(answer), page
        if page.name == "login" or is_open(page):
            continue
        if of_the_administration(page) or page.of_somebody:
            if answer.status_code != 404:
                wrong.append((page.path, answer.status_code))
        elif answer.status_code not in (200, 204, 302, 404, 422):
            wrong.append((page.path, answer.status_code))
    assert wrong == []


def test_staff_without_the_permission_get_no_further(pages, charlie, as_person):
    charlie.is_staff = True
    charlie.save()
    client = as_person(charlie)
    wrong = []
    for page in pages:
        if page.path == "/settings/leave/" or page.name in ("account_logout", "logout"):
            continue
        answer = ask(client, page)
        assert SECRET not in words_of(answer), page
        if is_open(page):
            continue
        if page.path[1:].startswith(MEMORY):
            good = answer.status_code == 403
        elif of_the_administration(page):
            good = answer.status_code in (302, 403, 404) or page.name in FOR_STAFF
        else:
            good = answer.status_code == 404 if page.of_somebody else answer.status_code in (200, 204, 302, 404, 422)
        if not good:
            wrong.append((page.path, answer.status_code))
    assert wrong == []


def test_an_administrator_has_no_way_in_by_the_pages_of_the_person(pages, dana, as_person):
    client = as_person(dana)
    wrong = [
        (page.path, status)
        for page in pages
        if page.of_somebody and not of_the_administration(page) and not is_open(page)
        if (status := ask(client, page).status_code) != 404
    ]
    assert wrong == []
