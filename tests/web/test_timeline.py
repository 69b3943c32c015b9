"""The timeline: a year at a glance, its months line by line, and what is limited to a strand or a tone."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation

from memory import access
from memory.folder import days, derived
from memory.folder.clock import utc_now
from memory.folder.paths import MERGES, core_file, month_file
from memory.folder.strands import Merge, render_merges
from memory.views.timeline import SHOWN
from tests.web.pages import HTMX, keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

NIGHT = datetime(2026, 3, 9, 22, 45, tzinfo=UTC)
HOSTILE = ('"><script>alert(1)</script>', "abc\u202edef", "../../etc/passwd", "x" * 300)


def catalogued(user):
    """Write the user's strands and timeline as a close pass does."""
    folder = access.folder_of(user)
    made = derived.rebuild(folder)
    with folder.files_lock():
        derived.put(folder, made, owner="close 2026-03-09-2245", now=utc_now())
    return folder


def focuses(page):
    return [html.unescape(focus) for focus in re.findall(r'class="focus"><a href="[^"]*"><bdi>(.*?)</bdi>', page)]


def cells(page):
    """The days of the drawing that are not empty: their step and their title."""
    return re.findall(r'<rect class="s([1-5])"[^>]*><title>([^<]*)</title>', page)


def test_it_works(alice, as_person):
    keep(
        alice,
        NIGHT,
        ("t1", "Oak?", "Oak."),
        ("t2", "Sure?", "Yes."),
        focus="Plan: worktop",
        summary="Oak, under 900.",
        tags=("Kitchen",),
        emotional_tone="mixed",
    )
    catalogued(alice)
    page = text_of(as_person(alice).get("/timeline/"))
    assert "<h1>2026</h1>" in page
    assert cells(page) == [("5", "9 March: 2 turns, mixed")]
    assert "<td>2 turns, mixed</td>" in page
    assert focuses(page) == ["Plan: worktop"]
    for words in (
        "<h3>Monday, 9 March</h3>",
        ">23:45</time>",
        "Oak, under 900.",
        '<span class="dot mixed" aria-hidden="true"></span><bdi>mixed</bdi>',
        "<span>2 turns</span>",
        '<a class="tag" href="/strands/?name=kitchen"><bdi>kitchen</bdi></a>',
        'href="/slices/2026/03/09/2245/"',
        'href="/timeline/2026/3/"',
    ):
        assert words in page


def test_nothing_is_styled_in_the_page_itself(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First")
    page = text_of(as_person(alice).get("/timeline/"))
    assert " style=" not in page
    assert "<style" not in page


def test_a_new_account_is_told_what_will_stand_here(charlie, as_person):
    page = text_of(as_person(charlie).get("/timeline/"))
    assert "Nothing has been said yet." in page
    assert not access.folder_of(charlie).exists()


def test_a_slice_belongs_to_the_local_day_and_year_of_its_own_zone(alice, as_person):
    keep(
        alice,
        datetime(2026, 1, 1, 7, 59, tzinfo=UTC),
        ("t1", "a", "b"),
        focus="Old year",
        timezone="America/Los_Angeles",
    )
    keep(alice, datetime(2025, 12, 31, 20, 0, tzinfo=UTC), ("t2", "a", "b"), focus="New year", timezone="Asia/Shanghai")
    catalogued(alice)
    client = as_person(alice)
    assert focuses(text_of(client.get("/timeline/2025/"))) == ["Old year"]
    assert focuses(text_of(client.get("/timeline/2025/12/"))) == ["Old year"]
    assert "31 December: 1 turn" in text_of(client.get("/timeline/2025/"))
    assert focuses(text_of(client.get("/timeline/2026/1/"))) == ["New year"]


def test_days_are_deeper_the_more_was_said(alice, as_person):
    for day in range(10):
        keep(alice, NIGHT + timedelta(days=day), *((f"t{n}", "a", "b") for n in range(1 + day)), focus=f"Day {day}")
    catalogued(alice)
    assert [step for step, _title in cells(text_of(as_person(alice).get("/timeline/")))] == list("1122334455")


def test_a_line_that_the_month_file_lacks_is_read_from_its_slice(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="Catalogued", tags=("kitchen",))
    folder = catalogued(alice)
    (folder.root / MERGES).write_text(render_merges({"cooking": (Merge(to="kitchen", at=NIGHT, by="model"),)}))
    keep(alice, NIGHT + timedelta(hours=2), ("t2", "Still here?", "b"), active=True, tags=("Cooking",))
    page = text_of(as_person(alice).get("/timeline/2026/3/"))
    assert focuses(page) == ["Still here? (Cooking)", "Catalogued"]
    assert "still open" in page
    assert page.count('href="/strands/?name=kitchen"') == 2


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"slices": [1]}', b'{"slices": [{"id": 3}]}', b"\xff"])
def test_a_damaged_month_file_hides_no_slice(alice, as_person, content):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", tags=("kitchen",))
    folder = catalogued(alice)
    (folder.root / month_file("2026-03")).write_bytes(content)
    client = as_person(alice)
    assert focuses(text_of(client.get("/timeline/"))) == ["First"]
    assert focuses(text_of(client.get("/timeline/2026/?strand=kitchen"))) == ["First"]


def test_a_damaged_slice_is_listed_with_its_path(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="Broken")
    path = access.folder_of(alice).root / core_file(made.slice_id)
    path.write_bytes(b"---\nslice_id: [\n---\n")
    page = text_of(as_person(alice).get("/timeline/"))
    assert focuses(page) == ["Damaged"]
    assert f"<code>{core_file(made.slice_id)}</code>" in page
    assert cells(page) == [("5", "9 March: 0 turns, one cannot be read")]
    assert focuses(text_of(as_person(alice).get("/timeline/?tone=mixed"))) == []


def test_a_strand_and_a_tone_limit_the_year(alice, as_person):
    for hour, (tag, tone) in enumerate([("kitchen", "mixed"), ("kitchen", "neutral"), ("running", "mixed")]):
        start = NIGHT + timedelta(hours=hour)
        keep(alice, start, ("t1", "a", "b"), focus=f"{tag} {tone}", tags=(tag,), emotional_tone=tone)
    folder = catalogued(alice)
    (folder.root / MERGES).write_text(render_merges({"worktop": (Merge(to="kitchen", at=NIGHT, by="model"),)}))
    client = as_person(alice)

    def shown(query):
        return sorted(focuses(text_of(client.get(f"/timeline/2026/?{query}"))))

    assert shown("strand=Kitchen") == shown("strand=worktop") == ["kitchen mixed", "kitchen neutral"]
    assert shown("tone=mixed") == ["kitchen mixed", "running mixed"]
    assert shown("tone=mixed&strand=kitchen") == ["kitchen mixed"]
    assert shown("tone=<b>") == ["kitchen mixed", "kitchen neutral", "running mixed"]
    assert shown("strand=nothing") == []
    page = text_of(client.get("/timeline/2026/?tone=mixed&strand=kitchen"))
    assert 'href="/timeline/2026/3/?strand=kitchen&amp;tone=mixed"' in page
    assert '<option value="mixed" selected>' in page


def test_htmx_gets_the_year_alone_and_its_address(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", emotional_tone="mixed")
    catalogued(alice)
    part = text_of(as_person(alice).get("/timeline/2026/?tone=mixed", **HTMX))
    assert "<!doctype html>" not in part
    assert 'data-address="/timeline/2026/?tone=mixed"' in part


def test_only_the_newest_month_is_on_the_page_and_the_others_follow(alice, as_person):
    for month in (1, 3):
        keep(alice, NIGHT.replace(month=month), ("t1", "a", "b"), focus=f"Month {month}")
    catalogued(alice)
    client = as_person(alice)
    found, on_page = [], text_of(client.get("/timeline/"))
    while True:
        found.append(focuses(on_page))
        more = re.search(r'class="go-on" hx-get="([^"]*)"', on_page)
        if more is None:
            break
        on_page = text_of(client.get(html.unescape(more[1]), **HTMX))
    assert found == [["Month 3"], [], ["Month 1"]]
    assert "<h1>January 2026</h1>" in text_of(client.get("/timeline/2026/1/?on=1"))


def test_a_full_month_comes_in_stretches_without_a_gap(alice, as_person):
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    made = [keep(alice, start + timedelta(hours=n), ("t1", "a", "b"), focus=f"Slice {n}") for n in range(SHOWN + 5)]
    catalogued(alice)
    client = as_person(alice)
    first = text_of(client.get("/timeline/2026/3/"))
    more = html.unescape(re.search(r'class="go-on" hx-get="([^"]*)"', first)[1])
    assert more == f"/timeline/2026/3/?before={made[5].slice_id}"
    rest = text_of(client.get(more, **HTMX))
    assert focuses(first) + focuses(rest) == [f"Slice {n}" for n in reversed(range(SHOWN + 5))]
    assert "go-on" not in rest


def test_years_and_months_lead_to_their_neighbours(alice, as_person):
    for year in (2023, 2024, 2026):
        keep(alice, NIGHT.replace(year=year), ("t1", "a", "b"), focus=f"In {year}")
    client = as_person(alice)
    page = text_of(client.get("/timeline/2024/"))
    assert re.findall(r'<a href="([^"]*)" rel="(prev|next)"', page) == [
        ("/timeline/2023/", "prev"),
        ("/timeline/2026/", "next"),
    ]
    assert "Nothing was said in this year." in text_of(client.get("/timeline/2025/"))
    month = text_of(client.get("/timeline/2023/3/"))
    assert re.findall(r'<a href="([^"]*)" rel="(prev|next)"', month) == [("/timeline/2023/4/", "next")]


@pytest.mark.parametrize(
    "path",
    [
        "0/",
        "1/",
        "9999/",
        "10000000000000000000000/",
        "2026/0/",
        "2026/13/",
        "1/1/",
        "9999/12/",
        "x/",
        "2026/3/?before=../x",
    ],
)
def test_only_a_real_year_or_month_is_a_page(alice, as_person, path):
    assert as_person(alice).get(f"/timeline/{path}").status_code == 404


@pytest.mark.parametrize("name", HOSTILE)
def test_what_others_wrote_is_inert(alice, as_person, name):
    keep(alice, NIGHT, ("t1", "a", "b"), focus=name, summary=name[:100], tags=(name,), emotional_tone=name)
    catalogued(alice)
    client = as_person(alice)
    for page in (text_of(client.get("/timeline/")), text_of(client.get("/timeline/2026/3/", {"strand": name}))):
        assert "<script>alert" not in page
        assert focuses(page) == [name]
        url = html.unescape(re.search(r'class="tag" href="([^"]*)"', page)[1])
        assert url.startswith("/strands/?name=")
        assert client.get(url).status_code == 200
    assert client.get("/timeline/", {"strand": "\0" + name, "tone": name}).status_code == 200


@pytest.mark.parametrize("path", ["", "2026/", "2026/3/", "2026/3/?on=1"])
def test_nobody_else_sees_it(alice, charlie, dana, client, as_person, path):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="Hers")
    for other in (charlie, dana):
        assert "Hers" not in text_of(as_person(other).get(f"/timeline/{path}"))
    assert client.get(f"/timeline/{path}")["Location"].startswith("/accounts/login/")
    assert client.get(f"/timeline/{path}", **HTMX).status_code == 401


def test_a_page_costs_the_same_queries_and_no_git_however_much_there_is(
    alice, as_person, django_assert_num_queries, monkeypatch
):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="One")
    client = as_person(alice)
    monkeypatch.setattr("subprocess.Popen", None)
    for count in (1, 40):
        for number in range(count):
            keep(alice, NIGHT - timedelta(days=number + count), ("t1", "a", "b"), focus="Another")
        for path in ("", "2026/3/"):
            with django_assert_num_queries(2):
                client.get(f"/timeline/{path}")


def test_the_year_is_read_again_when_its_file_changes(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", emotional_tone="mixed")
    folder = catalogued(alice)
    client = as_person(alice)
    assert cells(text_of(client.get("/timeline/"))) == [("5", "9 March: 1 turn, mixed")]
    file = folder.root / month_file("2026-03")
    file.write_text(file.read_text().replace('"mixed"', '"neutral"'))
    assert cells(text_of(client.get("/timeline/"))) == [("5", "9 March: 1 turn, neutral")]
    assert not any("First" in str(glance) for glance in days._listed(folder.root, "2026-03").values())


def test_in_chinese(bob, as_person):
    keep(bob, NIGHT, ("t1", "a", "b"), focus="厨房", emotional_tone="mixed", timezone="Asia/Shanghai")
    catalogued(bob)
    with translation.override("en"):  # a request leaves its language behind
        page = text_of(as_person(bob).get("/timeline/"))
    assert '<html lang="zh-hans"' in page
    assert focuses(page) == ["厨房"]
