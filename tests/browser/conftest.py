"""A real Chromium against a real `serve` that speaks to the scripted model server."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.conftest import CHROMIUM, PASSWORD
from tests.model_server.fixture import ModelServerProcess, model_server, model_server_process
from tests.served import Served

__all__ = ["model_server", "model_server_process"]

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file of tests, no longer: while it lives, this thread has an event loop in others' way."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def served(serve: Callable[..., Served], model_server: ModelServerProcess) -> Served:
    """A server of its own for the test, with the scripted model behind it."""
    return serve(PREVIOUSLY_MODEL_URL=model_server.url, PREVIOUSLY_MODEL="talker", PREVIOUSLY_MODEL_ANALYST="analyst")


@pytest.fixture
def new_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page in a browser of its own (no cookies shared); whatever the page complains of fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_page(**options: Any) -> Page:
        context = chromium.new_context(**({"locale": "en-US", "timezone_id": "Asia/Shanghai"} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if _is_complaint(said) else None)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _is_complaint(said: ConsoleMessage) -> bool:
    # A status of 4xx or 5xx is reported as well; whether it was due is for the test to say.
    expected = ("Failed to load resource", "Response Status Error Code")
    return said.type == "error" and not any(words in said.text for words in expected)


@pytest.fixture
def ines(served: Served, new_page: Callable[..., Page]) -> Page:
    """Ines, who took the one-time link and is on her chat page."""
    page = new_page()
    sign_up(page, served.link)
    return page


def sign_up(page: Page, link: str, called: str = "Ines") -> None:
    """Make the first account."""
    page.goto(link)
    page.get_by_label("E-mail address").fill(f"{called.lower()}@example.org")
    page.get_by_label("Name to be called").fill(called)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    page.wait_for_selector("#composer")
