"""Recall and search in a real browser: something said three weeks ago is found, shown, and linked to its place."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from memory.conversation.companion import Companion
from memory.folder.clock import utc_now
from memory.folder.store import MemoryFolder, Places
from memory.llm.client import ModelServer
from tests.browser.test_walk import say
from tests.conversation.filled import filled, form
from tests.conversation.talk import Talk
from tests.llm.conftest import connect
from tests.model_server.answers import Answer, Rule
from tests.model_server.book import ANALYST
from tests.model_server.fixture import ModelServerProcess
from tests.served import Served

__all__ = ["connect"]

pytestmark = pytest.mark.browser

COLLEAGUE = "You look things up for a companion"
WORDS = "Oak, if the quote stays under 900."
WIDER = """() => document.documentElement.scrollWidth <= window.innerWidth ? [] : [...document.querySelectorAll("*")]
    .filter(one => one.getBoundingClientRect().right > window.innerWidth).map(one => one.outerHTML.slice(0, 200))"""
SAID = {
    "Dragon": "今天玩成语接龙游戏，很开心",
    "Shirit": "昨日しりとりをした",
    "Kkeut1": "어제 끝말잇기를 했어요",
    "Pohod1": "Завтра поход в горы",
    "Sawatd": "เขาพูดว่าสวัสดีครับทุกคน",
}


@pytest.fixture
def talk(ines: Page, served: Served, model_server: ModelServerProcess, connect: Callable[..., ModelServer]) -> Talk:
    """Ines, who spoke of her kitchen three weeks ago, and of games and walks since."""
    person = str(ines.locator("body").get_attribute("data-person"))
    talk = Talk(served.data_dir, Companion(model=connect(analyst=ANALYST), pauses=(), card_wait=0))
    talk.folder = MemoryFolder(
        Places(
            root=served.data_dir / "folders" / person,
            run=served.data_dir / "run" / person,
            pending=served.data_dir / "pending" / person,
            index=served.data_dir / "cache" / f"{person}.sqlite3",
        )
    )
    talk.clock = utc_now() - timedelta(days=21)
    about = {"tags": ["kitchen"], "focus": "The worktop", "summary": "Oak, if it is not too dear."}
    model_server.rules(
        filled("turn", form("turn", create=["kitchen"], worth_remembering=True), user="kitchen"),
        filled("close", form("close", **about), user="kitchen"),
    )
    for turn_id, words in (("Worktp", f"About the kitchen: {WORDS}"), ("Lights", "And lamps for the kitchen")):
        model_server.script(Answer(text="Noted."))
        talk.say(words, turn_id=turn_id)
        talk.end()
        talk.later(hours=2)
    for turn_id, words in SAID.items():
        talk.later(days=3)
        model_server.script(Answer(text="…"))
        talk.say(words, turn_id=turn_id)
        talk.end()
    ines.reload()
    return talk


def kitchen(talk: Talk) -> str:
    """The slice path of what was said of the kitchen."""
    return talk.folder.strands()["kitchen"][0]


def no_complaints(page: Page) -> None:
    """Axe finds nothing."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


def shots(page: Page, place: Path, name: str) -> None:
    """Pictures in both themes at three widths, for people to look at; a page wider than its window fails."""
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        for width in (360, 768, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=place / f"{name}-{theme}-{width}.png")
            assert page.evaluate(WIDER) == []
        no_complaints(page)


def test_it_works(ines: Page, talk: Talk, model_server: ModelServerProcess, tmp_path: Path) -> None:
    path = kitchen(talk)
    true = {"slice": path, "turnId": "Worktp", "quote": WORDS, "note": "what she wants"}
    report = {
        "answer": f"She wants oak: “{WORDS}”",
        "references": [true, true | {"quote": "Oak at any price!"}, true | {"slice": "2001/01/01/0000"}],
        "searched": ["kitchen"],
        "confidence": 0.9,
    }
    model_server.rules(
        Rule(
            system=COLLEAGUE,
            answers=[
                Answer(tool_calls=[{"name": "read_strand", "arguments": {"name": "Kitchen"}}]),
                Answer(tool_calls=[{"name": "read_slice", "arguments": {"slice_id": path}}]),
                Answer(tool_calls=[{"name": "report", "arguments": report}], hang_after=-1),
            ],
        ),
        Rule(
            user="counter",
            model="talker",
            answers=[
                Answer(tool_calls=[{"name": "recall", "arguments": {"question": "What about the kitchen counter?"}}]),
                Answer(text=f"Three weeks ago you said: “{WORDS}”"),
            ],
        ),
    )
    say(ines, "What did I want for the counter?")
    running = ines.locator(".step.recall.running")
    expect(running).to_have_text(re.compile(r"Recalling: What about the kitchen counter\?…"))
    model_server.release()
    expect(ines.locator(".entry.agent")).to_contain_text(f"Three weeks ago you said: “{WORDS}”")

    card = ines.locator(".step.recall")
    expect(card).to_contain_text("Recalled one moment about “What about the kitchen counter?”")
    hit = card.locator(".hit")
    expect(hit).to_have_count(1)
    expect(hit).to_have_attribute("href", f"/slices/{path}/#Worktp")
    expect(hit.locator("b")).to_have_text(talk.slice("-".join(path.split("/"))).focus)
    expect(hit.locator("q")).to_have_text(WORDS)
    expect(hit.locator("time")).to_be_visible()
    told = model_server.requests("talker")[-1]["messages"][-1]["content"]
    assert "21 days ago" in told
    assert WORDS in told
    assert "at any price" not in told
    assert "2001" not in told
    shots(ines, tmp_path, "recall")

    ines.reload()
    ines.goto(ines.url)
    newest = talk.folder.newest(1)[0]
    ines.goto(f"{ines.url}slices/{newest.path}/")  # type: ignore[union-attr]
    recalled = ines.locator(".thoughts.recall")
    recalled.locator("summary").click()
    expect(recalled.locator(".hit q")).to_have_text(WORDS)
    expect(recalled.locator(".hit b")).to_be_visible()
    no_complaints(ines)
    recalled.locator(".hit").click()
    expect(ines.locator("#Worktp")).to_contain_text(WORDS)


def test_what_was_never_talked_about_is_said_to_be_so(
    ines: Page, talk: Talk, model_server: ModelServerProcess
) -> None:
    nothing = {"answer": "We have not talked about this.", "references": [], "searched": ["sailing"], "confidence": 1}
    model_server.rules(
        Rule(system=COLLEAGUE, answers=[Answer(tool_calls=[{"name": "report", "arguments": nothing}])]),
        Rule(
            user="sailing",
            model="talker",
            answers=[
                Answer(tool_calls=[{"name": "recall", "arguments": {"question": "sailing"}}]),
                Answer(text="We have not talked about sailing."),
            ],
        ),
    )
    say(ines, "What did I say about sailing?")
    expect(ines.locator(".entry.agent .words")).to_have_text("We have not talked about sailing.")
    expect(ines.locator(".step.recall")).to_contain_text("Recalled 0 moments about “sailing”")
    expect(ines.locator(".step.recall .none")).to_have_text("We have not talked about this.")


def test_a_deep_thought_is_a_card(ines: Page, model_server: ModelServerProcess) -> None:
    thinking = {"question": "Oak or stone, with all facts?", "effort": "high"}
    model_server.rules(
        Rule(user="Oak or stone, with all facts?", answers=[Answer(text="Oak, on balance.", hang_after=-1)]),
        Rule(
            user="Think hard",
            model="talker",
            answers=[Answer(tool_calls=[{"name": "think_deep", "arguments": thinking}]), Answer(text="Take oak.")],
        ),
    )
    say(ines, "Think hard about it")
    expect(ines.locator(".step.deep.running")).to_have_text(
        re.compile(r"Thinking deeply: Oak or stone, with all facts\?…")
    )
    model_server.release()
    expect(ines.locator(".entry.agent .words")).to_have_text("Take oak.")
    card = ines.locator("details.step.deep")
    card.locator("summary").click()
    expect(card.locator(".thought")).to_have_text("Oak, on balance.")
    no_complaints(ines)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_search_page_finds_words_of_any_script_as_one_types(
    ines: Page, talk: Talk, served: Served, tmp_path: Path, language: str
) -> None:
    if language == "zh-hans":
        ines.get_by_role("button", name="中文").click()
    ines.goto(f"{served.url}search/")
    box = ines.locator("#q")
    expect(box).to_be_focused()
    no_complaints(ines)
    for words, turn_id, marks in (
        ("成语接龙", "Dragon", ["成语接龙"]),
        ("接龙", "Dragon", ["接龙"]),
        ("龙", "Dragon", ["龙"]),
        ("しりとり", "Shirit", ["しりとり"]),
        ("끝말잇기", "Kkeut1", ["끝말잇기"]),
        ("поход", "Pohod1", ["поход"]),
        ("สวัสดี", "Sawatd", ["สวัสดี"]),
    ):
        box.fill(words)
        quote = ines.locator(f".quote[href$='#{turn_id}']")
        expect(quote.locator("mark")).to_have_text(marks)
        expect(ines.locator(".result")).to_have_count(1)
        expect(ines).to_have_url(re.compile(r"/search/\?q=%"))
    box.fill("oak quote")
    quote = ines.locator(".quote[href$='#Worktp']").first
    expect(quote.locator("mark")).to_have_text(["Oak", "quote"])
    shots(ines, tmp_path, f"search-{language}")
    ines.reload()
    expect(box).to_have_value("oak quote")
    expect(quote.locator("mark")).to_have_text(["Oak", "quote"])
    quote.click()
    expect(ines.locator("#Worktp")).to_contain_text(WORDS)


def test_the_search_page_works_without_scripts(
    ines: Page, talk: Talk, served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(java_script_enabled=False)
    page.context.add_cookies(ines.context.cookies())
    page.goto(f"{served.url}search/")
    page.locator("#q").fill("oak")
    page.locator("#until").fill(talk.clock.date().isoformat())
    page.get_by_role("search").get_by_role("button", name="Search").click()
    expect(page.locator(".quote[href$='#Worktp'] mark").first).to_have_text("Oak")
    page.locator("#since").fill(talk.clock.date().isoformat())
    page.get_by_role("search").get_by_role("button", name="Search").click()
    expect(page.locator("#found")).to_contain_text("Nothing was found.")
