"""The main job in a real browser: sign up, talk, come back, and find every word in a folder."""

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from memory.folder.slices import Slice, parse
from tests.model_server.answers import Answer
from tests.model_server.fixture import ModelServerProcess
from tests.served import Served

pytestmark = pytest.mark.browser

COMPOSER = "#composer textarea"


def say(page: Page, text: str) -> None:
    page.locator(COMPOSER).fill(text)
    page.locator(COMPOSER).press("Enter")


def folder_of(served: Served) -> Path:
    """The one folder there is."""
    (folder,) = (served.data_dir / "folders").iterdir()
    return folder


def slices_of(served: Served) -> list[Slice]:
    """Its slices, oldest first."""
    found = sorted((folder_of(served) / "memory/episodic/slices").rglob("core.md"))
    return [parse(path.read_bytes(), slice_id="-".join(path.parts[-6:-2])) for path in found]


def test_it_works(ines: Page, served: Served, model_server: ModelServerProcess) -> None:
    expect(ines.get_by_role("heading", level=1)).to_contain_text("Ines")
    model_server.script(Answer(chunks=["A reply that ", "**grows** ", "and ends."], hang_after=1))
    say(ines, "What did I decide about the #worktop?")
    reply = ines.locator(".entry.agent").last
    expect(reply).to_contain_text("A reply that")
    expect(ines.locator(COMPOSER)).to_have_value("")
    model_server.release()
    expect(reply).to_contain_text("A reply that grows and ends.")
    expect(reply.locator("strong")).to_have_text("grows")
    expect(ines.get_by_role("status")).to_have_text("Reply ready")
    expect(ines.locator(COMPOSER)).to_be_focused()

    ines.reload()
    expect(ines.locator(".entry")).to_have_count(0)
    expect(ines.locator("main")).to_contain_text("worktop")
    model_server.script(Answer(text="Good to see you again."))
    say(ines, "And now something else")
    expect(ines.locator(".entry.agent").last).to_contain_text("Good to see you again.")
    expect(ines.locator(".edge")).to_contain_text("worktop")

    first, second = slices_of(served)
    assert (first.status, first.closed_by, second.status) == ("closed", "context_lost", "active")
    assert first.focus
    assert first.summary
    assert first.emotional_tone == "neutral"
    assert first.end == first.entries[-1].at
    assert first.timezone == "Asia/Shanghai"
    assert [entry.content for entry in second.entries] == ["And now something else", "Good to see you again."]

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=folder_of(served), check=True, capture_output=True, text=True
        ).stdout

    ines.wait_for_timeout(1500)  # the close pass and its commit follow the reply
    assert len(git("log", "--format=%s").splitlines()) == 3
    assert git("status", "--porcelain") == ""
    git("fsck", "--strict")


def test_a_reload_takes_a_reply_in_flight_up_again(ines: Page, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(chunks=["first part, ", "second part"], hang_after=1))
    say(ines, "Hello")
    expect(ines.locator(".entry.agent")).to_contain_text("first part")
    for _ in range(3):
        ines.reload()
        expect(ines.locator(".entry.agent")).to_contain_text("first part")
    model_server.release()
    expect(ines.locator(".entry.agent")).to_contain_text("first part, second part")
    expect(ines.locator(".entry.agent")).to_have_count(1)
    expect(ines.locator(".entry.person")).to_have_count(1)


def test_an_enter_of_an_input_method_sends_nothing(
    ines: Page, served: Served, model_server: ModelServerProcess
) -> None:
    ines.locator(COMPOSER).fill("你好")
    ines.evaluate(
        """() => {
            const box = document.querySelector('#composer textarea');
            const press = options => box.dispatchEvent(
                new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true, ...options}));
            box.dispatchEvent(new CompositionEvent('compositionstart', {bubbles: true}));
            press({isComposing: true});
            press({keyCode: 229});
            box.dispatchEvent(new CompositionEvent('compositionend', {bubbles: true}));
        }"""
    )
    ines.wait_for_timeout(300)
    assert not (served.data_dir / "folders").exists() or not list((served.data_dir / "folders").iterdir())
    model_server.script(Answer(text="你好！"))
    ines.locator(COMPOSER).press("Enter")
    expect(ines.locator(".entry.agent")).to_contain_text("你好！")
    (found,) = slices_of(served)
    assert [entry.content for entry in found.entries] == ["你好", "你好！"]


def test_stopping_keeps_what_came(ines: Page, served: Served, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(chunks=["some words, ", "never said"], hang_after=1))
    say(ines, "Hello")
    expect(ines.locator(".entry.agent")).to_contain_text("some words")
    ines.locator(COMPOSER).press("Escape")
    expect(ines.get_by_role("status")).to_have_text("Stopped")
    assert slices_of(served)[0].entries[-1].content == "some words, "


def test_a_failed_reply_can_be_tried_again(ines: Page, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(status=401, body={"error": {"message": "no such key"}}))
    say(ines, "Hello")
    again = ines.get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    model_server.script(Answer(text="Here I am."))
    again.click()
    expect(ines.locator(".entry.agent")).to_contain_text("Here I am.")
    expect(ines.locator(".entry.agent")).to_have_count(1)


def test_a_second_message_waits_its_turn(ines: Page, served: Served, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(chunks=["one ", "reply"], hang_after=1), Answer(text="the other reply"))
    say(ines, "first")
    expect(ines.locator(".entry.agent").first).to_contain_text("one")
    say(ines, "second")
    expect(ines.locator(".entry.person")).to_have_count(2)
    model_server.release()
    expect(ines.locator(".entry.agent").first).to_contain_text("one reply")
    expect(ines.locator(".entry.agent").last).to_contain_text("the other reply")
    assert slices_of(served)[0].turn_count == 2


def test_the_draft_survives_a_reload_and_goes_with_the_message(ines: Page, model_server: ModelServerProcess) -> None:
    ines.locator(COMPOSER).fill("half a thought")
    ines.wait_for_timeout(600)
    ines.reload()
    expect(ines.locator(COMPOSER)).to_have_value("half a thought")
    model_server.script(Answer(text="Yes."))
    ines.locator(COMPOSER).press("Enter")
    expect(ines.locator(".entry.agent")).to_contain_text("Yes.")
    ines.reload()
    expect(ines.locator(COMPOSER)).to_have_value("")


def test_without_javascript_nothing_is_lost(
    ines: Page, served: Served, model_server: ModelServerProcess, new_page: object
) -> None:
    cookies = ines.context.cookies()
    page = new_page(java_script_enabled=False)  # type: ignore[operator]
    page.context.add_cookies(cookies)
    page.goto(served.url)
    model_server.script(Answer(text="first reply"), Answer(text="second reply"))
    for text in ("one", "two"):
        page.locator(COMPOSER).fill(text)
        page.get_by_role("button", name="Send").click()
    page.wait_for_timeout(1500)
    page.get_by_role("link", name="reply").last.click()
    expect(page.locator("main")).to_contain_text("second reply")
    (found,) = slices_of(served)
    assert found.turn_count == 2


def test_an_expired_session_loses_no_words(ines: Page, model_server: ModelServerProcess) -> None:
    model_server.script(Answer(text="Hi."))
    say(ines, "Hello")
    expect(ines.locator(".entry.agent")).to_contain_text("Hi.")
    ines.context.clear_cookies(name="sessionid")
    ines.locator(COMPOSER).fill("typed after the session was gone")
    with ines.expect_response("**/"):
        ines.locator(COMPOSER).press("Enter")
    ines.wait_for_timeout(300)
    expect(ines.locator(COMPOSER)).to_have_value("typed after the session was gone")
    expect(ines.get_by_role("alert").get_by_role("link")).to_be_visible()
