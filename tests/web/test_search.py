"""The search page: words in any language, quoted and marked where they were said; the index made and kept up."""

import html
import re
import shutil
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.cache import cache

from memory import access, tasks
from memory.conversation import indexing
from memory.folder.clock import utc_now
from memory.folder.paths import STRANDS, core_file
from memory.folder.slices import render
from memory.folder.strands import render_strands
from tests.web.pages import HTMX, folder_of, keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

NIGHT = datetime(2025, 3, 9, 22, 45, tzinfo=UTC)


@pytest.fixture
def asked_worker(monkeypatch):
    """Whose index the worker was asked to make; nothing is published."""
    asked = []
    monkeypatch.setattr(tasks, "enqueue_index", asked.append)
    return asked


def search(client, words, **more):
    """The fragment that is shown for these words."""
    headers = HTMX if more.pop("htmx", True) else {}
    return text_of(client.get("/search/", {"q": words, **more}, **headers))


def marked(page):
    return [html.unescape(words) for words in re.findall(r"<mark>(.*?)</mark>", page)]


def links(page):
    """Where the quoted turns are."""
    return re.findall(r'<a class="quote" href="([^"]*)"', page)


def test_it_works(alice, as_person):
    keep(
        alice,
        NIGHT,
        ("t1", "Good evening", "Good evening."),
        ("t2", "Oak for the worktop, if the quote stays under 900.", "Noted: oak."),
        focus="The kitchen <b>",
        tags=("kitchen",),
    )
    keep(alice, NIGHT + timedelta(days=2), ("t3", "A run along the river", "How far?"), focus="Running")
    page = search(as_person(alice), "oak worktop", htmx=False)
    assert "<!doctype html>" in page
    assert 'value="oak worktop"' in page
    assert marked(page) == ["Oak", "worktop", "oak"]
    assert links(page) == ["/slices/2025/03/09/2245/#t2"] * 2
    assert "1 slice, the closest first" in page
    # In the slice's own zone, and when it was, not when it was looked for.
    assert ">Sunday, 9 March 2025, 23:45</time>" in page
    assert "The kitchen &lt;b&gt;" in page
    assert "Running" not in page
    assert '<div id="found" data-address="/search/?q=oak+worktop">' in search(as_person(alice), "oak worktop")


@pytest.mark.parametrize(
    ("said", "asked", "found"),
    [
        ("今天玩成语接龙游戏", "成语接龙", ["成语接龙"]),
        ("今天玩成语接龙游戏", "接龙", ["接龙"]),
        ("今天玩成语接龙游戏", "龙", ["龙"]),
        ("昨日しりとりをした", "しりとり", ["しりとり"]),
        ("어제 끝말잇기를 했어요", "끝말잇기", ["끝말잇기"]),
        ("Завтра поход в горы", "поход", ["поход"]),
        ("เขาพูดว่าสวัสดีครับทุกคน", "สวัสดี", ["สวัสดี"]),
        ("Ένα ταξίδι στη θάλασσα", "ΤΑΞΊΔΙ", ["ταξίδι"]),
        ("हम पहाड़ों पर गए", "पहाड़ों", ["पहाड़ों"]),
        ("Un cafe\u0301 crème", "caf\u00e9", ["cafe\u0301"]),
        ("ＡＰＥＸ again", "apex", ["ＡＰＥＸ"]),
    ],
)
def test_words_of_any_script_are_found_and_marked(alice, as_person, said, asked, found):
    keep(alice, NIGHT, ("t1", said, "…"))
    keep(alice, NIGHT + timedelta(days=1), ("t2", "Something else, 别的事情", "…"))
    page = search(as_person(alice), asked)
    assert marked(page) == found
    assert links(page) == ["/slices/2025/03/09/2245/#t1"]


def test_the_last_words_of_a_long_message_are_found(alice, as_person):
    keep(alice, NIGHT, ("t1", "many words " * 4000 + "zanzibar", "…"))
    assert marked(search(as_person(alice), "zanzibar")) == ["zanzibar"]


HOSTILE = ['<script>alert("x")</script>', "a' OR 1=1 --", 'NEAR("a" b)', "*", "body:oak", "a AND", "\0", "x" * 5000]


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_that_is_asked_or_found_is_markup_or_a_query(alice, as_person, words):
    said = f"oak {words}".replace("\0", "")
    keep(alice, NIGHT, ("t1", said, "<img src=x onerror=alert(1)>"), focus=said[:60])
    for htmx in (True, False):
        page = search(as_person(alice), f"oak {words}", htmx=htmx)
        assert "Oak" in marked(page) or "oak" in marked(page)
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_days_are_the_slices_own_and_both_included(alice, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"), timezone="Asia/Shanghai")  # 10 March there
    keep(alice, NIGHT + timedelta(days=5), ("t2", "oak two", "…"), timezone="Asia/Shanghai")
    client = as_person(alice)
    first, second = "/slices/2025/03/09/2245/#t1", "/slices/2025/03/14/2245/#t2"
    assert sorted(links(search(client, "oak"))) == [first, second]
    assert links(search(client, "oak", since="2025-03-10", until="2025-03-10")) == [first]
    assert links(search(client, "oak", until="2025-03-09")) == []
    assert links(search(client, "oak", since="2025-03-11")) == [second]


def test_a_strand_limits_what_is_found_under_any_of_its_names(alice, as_person):
    first = keep(alice, NIGHT, ("t1", "oak one", "…"))
    keep(alice, NIGHT + timedelta(days=5), ("t2", "oak two", "…"))
    path = folder_of(alice).root / STRANDS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_strands({"kitchen": (first.path,)}))
    client = as_person(alice)
    assert links(search(client, "oak", strand="  Kitchen ")) == ["/slices/2025/03/09/2245/#t1"]
    assert '<option value="kitchen">' in search(client, "oak", htmx=False)
    page = search(client, "oak", strand="gardens")
    assert "There is no strand named “gardens”." in page
    assert links(page) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"since": "yesterday"}, "“yesterday” is no day."),
        ({"since": "2025-02-30"}, "“2025-02-30” is no day."),
        ({"since": "2025-03-10", "until": "2025-03-09"}, "The last day lies before the first one."),
    ],
)
def test_days_that_cannot_be_are_said_to_be_wrong(alice, as_person, more, words):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    page = search(as_person(alice), "oak", **more)
    assert words in page
    assert links(page) == []


def test_nothing_asked_nothing_found_nothing_said(alice, charlie, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    assert "Every word you said and every reply is searched" in search(as_person(alice), " ", htmx=False)
    assert "Nothing was found." in search(as_person(alice), "beech")
    assert "Nothing was found." in search(as_person(alice), "the")
    assert "Nothing has been said yet." in search(as_person(charlie), "oak")
    assert not access.folder_of(charlie).exists()


def test_a_slice_that_only_its_marks_tell_of_is_shown_with_its_summary(alice, as_person):
    keep(alice, NIGHT, ("t1", "Hello", "…"), focus="Beech or oak", summary="Beech it is.")
    page = search(as_person(alice), "beech")
    assert "Beech it is." in page
    assert links(page) == []


def test_what_is_said_after_the_index_was_made_is_found(alice, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    client = as_person(alice)
    assert "Nothing was found." in search(client, "beech")
    later = keep(alice, None, ("t2", "beech then", None), active=True)
    assert links(search(client, "beech")) == [f"/slices/{later.path}/#t2"]


@pytest.mark.django_db(transaction=True)
def test_a_large_folder_without_index_is_indexed_in_the_background(alice, as_person, asked_worker, monkeypatch):
    cache.clear()
    monkeypatch.setattr(indexing, "FEW", 1)
    for day in range(3):
        keep(alice, NIGHT + timedelta(days=day), (f"t{day}", "oak", "…"))
    client = as_person(alice)
    for _ in range(3):
        page = search(client, "oak")
        assert "The search index of this server is being made." in page
        assert 'hx-get="/search/?q=oak" hx-trigger="load delay:1s"' in page
    assert asked_worker == [str(alice.pk)]  # once, however often the page looks

    folder = access.folder_of(alice)
    folder.index_file.parent.mkdir(parents=True, exist_ok=True)
    note = folder.index_file.with_name(f"{folder.index_file.name}.progress")
    note.write_text("2 3")
    page = search(client, "oak")
    assert "2 of 3 slices" in page
    assert 'value="66"' in page

    tasks.index(str(alice.pk))
    assert not note.exists()
    page = search(client, "oak")
    assert len(links(page)) == 3
    assert "being made" not in page


@pytest.mark.django_db(transaction=True)
def test_an_index_far_behind_answers_as_it_stands_and_says_so(alice, as_person, asked_worker, monkeypatch):
    cache.clear()
    keep(alice, NIGHT, ("t0", "oak", "…"))
    client = as_person(alice)
    assert len(links(search(client, "oak"))) == 1
    monkeypatch.setattr(indexing, "FEW", 1)
    for day in range(1, 4):
        keep(alice, NIGHT + timedelta(days=day), (f"t{day}", "oak", "…"))
    page = search(client, "oak")
    assert len(links(page)) == 1
    assert "the newest slices may be missing" in page
    assert asked_worker == [str(alice.pk)]
    tasks.index(str(alice.pk))
    monkeypatch.undo()
    assert len(links(search(client, "oak"))) == 4


def test_a_damaged_index_heals_while_one_waits(alice, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    client = as_person(alice)
    search(client, "oak")
    access.folder_of(alice).index_file.write_bytes(b"no database" * 1000)
    assert links(search(client, "oak")) == ["/slices/2025/03/09/2245/#t1"]


def test_a_damaged_slice_leaves_the_others_to_be_found(alice, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    broken = keep(alice, NIGHT + timedelta(days=1), ("t2", "oak two", "…"))
    client = as_person(alice)
    assert len(links(search(client, "oak"))) == 2
    (folder_of(alice).root / core_file(broken.slice_id)).write_text("---\nfocus: 'x\n---\n")
    page = search(client, "oak")
    assert "/slices/2025/03/09/2245/#t1" in links(page)
    assert page.count('<article class="result">') in (1, 2)


def test_a_stranger_finds_their_own_and_who_is_nobody_signs_in(alice, charlie, dana, client, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    keep(charlie, NIGHT, ("t9", "oak of my own", "…"))
    search(as_person(alice), "oak")
    assert links(search(as_person(charlie), "oak")) == ["/slices/2025/03/09/2245/#t9"]
    assert links(search(as_person(dana), "oak")) == []
    assert client.get("/search/?q=oak")["Location"] == "/accounts/login/?next=/search/%3Fq%3Doak"
    assert client.get("/search/?q=oak", **HTMX).status_code == 401
    assert as_person(alice).post("/search/?q=oak").status_code == 405


def test_a_search_costs_the_same_queries_however_much_there_is(alice, as_person, django_assert_num_queries):
    client = as_person(alice)
    for number in range(2):
        for day in range(20):
            keep(alice, NIGHT + timedelta(days=20 * number + day), ("t1", "oak one", "…"))
        with django_assert_num_queries(2):
            search(client, "oak")


def test_nothing_is_styled_in_the_page_itself(alice, as_person):
    page = search(as_person(alice), "oak", htmx=False)
    assert " style=" not in page
    assert "<style" not in page


@pytest.mark.django_db(transaction=True)
def test_the_sweep_deletes_the_indexes_of_folders_that_are_gone(alice, as_person):
    keep(alice, NIGHT, ("t1", "oak one", "…"))
    search(as_person(alice), "oak")
    cache_dir, gone = settings.PREVIOUSLY.cache_dir, uuid4()
    left = [cache_dir / f"{gone}.sqlite3{more}" for more in ("", ".lock", ".progress", "-journal")]
    others = [cache_dir / "notes.sqlite3", cache_dir / f"{gone}.txt"]
    for file in (*left, *others):
        file.write_bytes(b"x")
    tasks.sweep_now()
    assert not any(file.exists() for file in left)
    assert all(file.exists() for file in others)
    index = access.folder_of(alice).index_file
    assert index.exists()
    shutil.rmtree(access.folder_of(alice).root)
    tasks.sweep_now()
    assert not index.exists()


@pytest.mark.django_db(transaction=True)
def test_a_task_for_somebody_who_is_gone_ends(alice):
    tasks.index(str(uuid4()))
    tasks.index(str(alice.pk))
    assert not access.folder_of(alice).exists()
    assert list(settings.PREVIOUSLY.cache_dir.glob("*")) == []


def test_a_slice_that_changes_by_hand_and_is_new_enough_is_found(alice, as_person):
    made = keep(alice, utc_now() - timedelta(hours=1), ("t1", "oak one", "…"))
    client = as_person(alice)
    search(client, "oak")
    path = folder_of(alice).root / core_file(made.slice_id)
    path.write_text(render(made).replace("oak one", "elm one"), "utf-8")
    assert links(search(client, "elm")) == [f"/slices/{made.path}/#t1"]
