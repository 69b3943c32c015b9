"""Every page as a person and as an administrator, in both languages and themes, on a phone and on a desk: axe finds
nothing, nothing is wider than the window, and no English is left on a Chinese page."""

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.test_recall import WIDER, connect, kitchen, talk
from tests.conversation.talk import Talk
from tests.served import Served

__all__ = ["connect", "talk"]

pytestmark = pytest.mark.browser

SIZES = {"phone": (360, 760), "desk": (1440, 900)}


def pages_of(talk: Talk) -> list[str]:
    """The addresses of a person's pages."""
    slice_ = f"slices/{kitchen(talk)}/"
    year, month = kitchen(talk).split("/")[:2]
    views = [f"{slice_}?view={view}" for view in ("thoughts", "card", "history", "raw")]
    return [
        "", slice_, *views, "timeline/", f"timeline/{year}/{month}/", "strands/", "strands/?name=kitchen",
        "strands/merges/", "search/?q=oak", "card/", "card/edit/", "card/versions/", "settings/", "settings/looked/",
        "settings/leave/", "nothing-here/",
    ]  # fmt: skip


def pages_of_administration(talk: Talk) -> list[str]:
    """The addresses of the administration, with one person's memory opened."""
    person = talk.folder.root.name
    read = f"admin/memory/memory/{person}"
    return [
        "admin/", "admin/accounts/user/", "admin/memory/memory/", "admin/memory/memory/health/",
        f"{read}/", f"{read}/timeline/", f"{read}/strands/", f"{read}/card/", f"{read}/slices/{kitchen(talk)}/",
    ]  # fmt: skip


def in_chinese(page: Page) -> None:
    """Switch the language, as the button in the bar does."""
    page.locator("form[action$='/language/'] button").first.click()
    page.wait_for_selector("html[lang^='zh']")


def look(page: Page, address: str) -> list[str]:
    """What is wrong with a page: what axe finds, and whatever is wider than the window."""
    answer = page.goto(address)
    assert answer is not None
    if answer.status != (404 if "nothing-here" in address else 200):
        return [f"{address}: status {answer.status}"]
    found = [f"{violation['id']}: {node['html']}" for violation in Axe().run(page).response["violations"]
             for node in violation["nodes"]]  # fmt: skip
    return [f"{address}: {one}" for one in (*found, *page.evaluate(WIDER))]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_it_works(ines: Page, served: Served, talk: Talk, language: str, theme: Any) -> None:
    ines.emulate_media(color_scheme=theme)
    if language != "en":
        in_chinese(ines)
    wrong = []
    for size in SIZES.values():
        ines.set_viewport_size({"width": size[0], "height": size[1]})
        for address in (*pages_of(talk), *pages_of_administration(talk)):
            wrong += look(ines, f"{served.url}{address}")
    assert wrong == []


def test_no_english_is_left_on_a_chinese_page(ines: Page, served: Served, talk: Talk) -> None:
    in_chinese(ines)
    left = {}
    # Pages on which the record itself does not speak.
    for address in ("strands/", "strands/merges/", "settings/", "settings/looked/", "settings/leave/", "search/"):
        ines.goto(f"{served.url}{address}")
        words = f"{ines.inner_text('header.bar')} {ines.inner_text('main')}"
        english = re.findall(r"\b(?:the|your|you|and|what|this|of|is)\b", words)
        if english:
            left[address] = words
    assert left == {}
