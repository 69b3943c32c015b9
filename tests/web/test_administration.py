"""People's memory as administrators see it: numbers without opening it, and read-only pages that leave a trail."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.urls import get_resolver, reverse

from accounts import opened
from accounts.models import MemoryOpened, Page
from memory import access, facts, tasks
from memory.folder.clock import utc_now
from memory.folder.paths import CARD, core_file
from memory.folder.strands import render_strands
from memory.models import FolderFacts, Memory, WorkerSeen
from tests.web.pages import HTMX, keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

NIGHT = datetime(2026, 3, 9, 22, 45, tzinfo=UTC)
PEOPLE = "/admin/memory/memory/"


def below(person, more=""):
    return f"{PEOPLE}{person.pk}/{more}"


def hash_of(root: Path) -> str:
    """Everything below a directory: names, times of change and bytes."""
    sums = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        sums.update(f"{path.relative_to(root)} {path.lstat().st_mtime_ns}".encode())
        if path.is_file():
            sums.update(path.read_bytes())
    return sums.hexdigest()


@pytest.fixture
def past(alice):
    """A slice of Alice's with a strand, and her card."""
    made = keep(
        alice,
        NIGHT,
        ("Ab12cQ", "Oak or <b>stone</b>?", "**Oak.**"),
        focus="Worktop",
        summary="Oak.",
        tags=("kitchen",),
        emotional_tone="mixed",
    )
    root = access.folder_of(alice).root
    (root / "memory/episodic/strands.json").write_text(render_strands({"kitchen": (made.path,)}))
    (root / CARD).write_text("# Previously on Alice\n\n## Identity\n- Name: Alice\n")
    return made


def content_pages(person, made):
    return [
        below(person, more)
        for more in (
            "timeline/",
            "timeline/2026/",
            "timeline/2026/3/",
            f"slices/{made.path}/",
            f"slices/{made.path}/?view=raw",
            f"slices/{made.path}/?view=history",
            f"slices/{made.path}/?view=card",
            f"slices/{made.path}/?view=thoughts",
            f"slices/{made.path}/raw/",
            "strands/",
            "strands/?name=kitchen",
            "strands/merges/",
            "card/",
            "card/versions/",
        )
    ]


def test_it_works(alice, dana, past, as_person):
    tasks.sweep_now()
    client = as_person(dana)
    people = text_of(client.get(PEOPLE))
    assert below(alice) in people
    assert not MemoryOpened.objects.exists()

    page = text_of(client.get(below(alice)))
    assert "Open this memory" in page
    assert "Worktop" not in page
    action = re.search(r'<form method="get" action="([^"]+)"', page)[1]

    timeline = text_of(client.get(action, {"reason": "She asked me to."}))
    assert "Worktop" in timeline
    slice_page = text_of(client.get(below(alice, f"slices/{past.path}/")))
    assert "Oak or &lt;b&gt;stone&lt;/b&gt;?" in slice_page
    assert "<strong>Oak.</strong>" in slice_page
    assert "Name: Alice" in text_of(client.get(below(alice, "card/")))
    assert "kitchen" in text_of(client.get(below(alice, "strands/")))

    hers = text_of(as_person(alice).get("/settings/looked/"))
    assert hers.count("<bdi>Dana</bdi>") == 4
    assert hers.count("She asked me to.") == 4
    assert f"Slice {past.path}" in hers


def test_the_list_counts_without_opening(alice, bob, dana, past, as_person, django_assert_num_queries):
    keep(alice, NIGHT + timedelta(days=1), ("t2", "a", None))
    path = access.folder_of(alice).root / core_file(past.slice_id)
    path.write_bytes(b"---\nslice_id: [\n---\n")
    tasks.sweep_now()
    row = FolderFacts.objects.get(person=alice)
    assert (row.slices, row.dry, row.damaged, row.strands, row.trouble) == (2, 1, 1, 1, "")
    assert row.size > 0
    assert row.last_activity == NIGHT + timedelta(days=1)
    assert FolderFacts.objects.get(person=bob).slices == 0
    client = as_person(dana)
    with django_assert_num_queries(5):
        page = text_of(client.get(PEOPLE))
    for column in ("slices", "strands", "last_activity", "dry", "damaged", "unfinished", "size", "health"):
        assert f'class="field-{column}' in page
    assert "alice@example.org" in page
    for number in range(1, 11):
        for order in (number, -number):
            assert client.get(PEOPLE, {"o": order}).status_code == 200
    assert "alice@example.org" not in text_of(client.get(PEOPLE, {"healthy": "no"}))
    assert "alice@example.org" in text_of(client.get(PEOPLE, {"healthy": "yes"}))
    assert "bob@example.org" not in text_of(client.get(PEOPLE, {"q": "alice"}))


def test_a_folder_in_trouble_says_why_and_what_to_do(alice, dana, past, as_person):
    (access.folder_of(alice).root / ".git" / "MERGE_HEAD").write_text("0" * 40)
    facts.count(str(alice.pk), access.folder_of(alice), utc_now())
    client = as_person(dana)
    assert "a merge, a rebase or the like is under way" in text_of(client.get(PEOPLE, {"healthy": "no"}))
    assert "Whoever began it in the folder finishes it" in text_of(client.get(below(alice)))


def test_what_is_unfinished_is_counted_by_each_sweep(alice, dana, as_person, monkeypatch):
    keep(alice, None, ("t1", "still waiting", None), active=True)
    folder = access.folder_of(alice)
    tasks.sweep_now()
    assert FolderFacts.objects.get(person=alice).owed == 1
    folder.state.mark_pending()
    monkeypatch.setattr(tasks, "enqueue", lambda *job: True)
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)  # the test has one connection for all
    tasks.sweep_now()
    assert FolderFacts.objects.get(person=alice).unfinished == 1
    folder.state.pending.unlink()
    tasks.sweep_now()
    assert FolderFacts.objects.get(person=alice).unfinished == 0


def test_nothing_on_a_page_changes_anything(alice, dana, past, as_person):
    keep(alice, None, ("t9", "still open", None), active=True)
    client = as_person(dana)
    for url in [*content_pages(alice, past), below(alice, "strands/?name=nothing")]:
        page = text_of(client.get(url))
        if not url.endswith("raw/"):
            assert "<form" not in page, url
            assert "<button" not in page.replace('class="copy"', ""), url
            assert 'method="post"' not in page
            # Every link leads to what this administrator may read, or away from the memory.
            for link in re.findall(r'href="([^"#]+)', page):
                assert link.startswith(("/admin/", "/static/", "?", "/accounts/")), (url, link)


def test_every_opening_is_written_down_and_no_word_of_the_content(alice, dana, past, as_person):
    client = as_person(dana)
    pages = content_pages(alice, past)
    for url in pages:
        assert client.get(url).status_code == 200, url
    rows = list(MemoryOpened.objects.order_by("pk"))
    assert len(rows) == len(pages)
    assert {(row.who_id, row.whose_id) for row in rows} == {(dana.pk, alice.pk)}
    assert {(row.page, row.place) for row in rows} == {
        ("timeline", ""),
        ("timeline", "2026"),
        ("timeline", "2026/03"),
        ("slice", past.path),
        ("strands", ""),
        ("strand", ""),
        ("merges", ""),
        ("card", ""),
    }
    client.get(below(alice, "timeline/2026/3/"), **HTMX)
    assert MemoryOpened.objects.count() == len(pages) + 1


def test_a_reason_goes_on_for_an_hour(alice, dana):
    now = utc_now()
    opened.note(who=dana, whose=alice, page=Page.CARD, reason="A\nreason\x00 " + "x" * 500, now=now)
    opened.note(who=dana, whose=alice, page=Page.CARD, now=now + timedelta(minutes=59))
    opened.note(who=dana, whose=alice, page=Page.CARD, reason="", now=now + timedelta(minutes=60))
    opened.note(who=dana, whose=alice, page=Page.CARD, now=now + timedelta(minutes=61))
    reasons = list(MemoryOpened.objects.order_by("at").values_list("reason", flat=True))
    assert reasons == [("A reason " + "x" * 500)[:300]] * 2 + ["", ""]


def test_the_trail_outlives_the_administrator(alice, dana, past, as_person):
    as_person(dana).get(below(alice, "card/"))
    dana.delete()
    page = text_of(as_person(alice).get("/settings/looked/"))
    assert "<bdi>Dana</bdi>" in page
    assert "No reason was given." in page


def test_the_trail_is_inert_and_paged(alice, bob, dana, as_person, django_assert_num_queries):
    dana.called = "<img src=x onerror=alert(1)>"
    dana.save()
    for number in range(60):
        at = NIGHT + timedelta(minutes=number)
        opened.note(who=dana, whose=alice, page=Page.CARD, reason=f"<script>{number}</script>", now=at)
    client = as_person(alice)
    with django_assert_num_queries(4):
        page = text_of(client.get("/settings/looked/"))
    assert page.count('<p class="reason">') == 50
    assert "&lt;script&gt;59&lt;/script&gt;" in page
    assert "<script>59" not in page
    assert "<img" not in page
    assert "10 March, 00:44" in page
    assert text_of(client.get("/settings/looked/?page=2")).count('<p class="reason">') == 10
    assert '<ol class="looked">' not in text_of(as_person(bob).get("/settings/looked/"))


def test_content_can_be_closed_to_administrators(alice, dana, past, as_person, previously):
    previously(admin_sees_content=False)
    client = as_person(dana)
    assert client.get(PEOPLE).status_code == 200
    page = text_of(client.get(below(alice)))
    assert '<form method="get"' not in page
    for url in content_pages(alice, past):
        answer = client.get(url)
        assert answer.status_code == 403, url
        assert "PREVIOUSLY_ADMIN_SEES_CONTENT" in text_of(answer)
        assert "Worktop" not in text_of(answer)
    assert not MemoryOpened.objects.exists()


def memory_urls(alice, made):
    """Every URL below the memory of the administration, from the URL configuration."""
    values = {"person_id": alice.pk, "slice_path": made.path, "year": 2026, "month": 3, "commit_id": "0" * 40}
    known = get_resolver().namespace_dict["admin"][1].reverse_dict
    found = set()
    for name in known:
        if isinstance(name, str) and name.startswith("memory_"):
            for possibilities, *_ in known.getlist(name):
                for _template, parameters in possibilities:
                    found.add(reverse(f"admin:{name}", kwargs={one: values[one] for one in parameters}))
    return sorted(found)


def test_no_method_changes_a_byte(alice, dana, past, as_person, data_dir):
    urls = memory_urls(alice, past)
    assert len(urls) >= 13
    client = as_person(dana)
    for url in urls:
        client.get(url)  # reading makes what reading makes, such as the directory of the runtime files
    before = hash_of(data_dir)
    for url in urls:
        for method in (client.post, client.put, client.patch, client.delete):
            answer = method(url, {"text": "x"}, content_type="application/json")
            assert answer.status_code in (403, 405), (url, answer.status_code)
    assert hash_of(data_dir) == before


def test_reading_changes_no_byte_of_the_folder(alice, dana, past, as_person):
    root = access.folder_of(alice).root
    before = hash_of(root)
    client = as_person(dana)
    for url in content_pages(alice, past):
        client.get(url)
    assert hash_of(root) == before


def test_staff_need_the_permission(alice, charlie, past, as_person):
    charlie.is_staff = True
    charlie.save()
    client = as_person(charlie)
    assert [url for url in memory_urls(alice, past) if client.get(url).status_code != 403] == []
    charlie.user_permissions.add(Permission.objects.get(content_type__app_label="memory", codename="view_memory"))
    assert client.get(PEOPLE).status_code == 200
    assert client.get(below(alice, "card/")).status_code == 200
    assert client.get("/admin/accounts/user/").status_code == 403


def test_nothing_else_of_a_memory_is_in_the_administration(alice, dana, past, as_person):
    client = as_person(dana)
    for more in ("add/", f"{alice.pk}/change/", f"{alice.pk}/delete/", f"{alice.pk}/history/"):
        assert client.get(PEOPLE + more).status_code == 404
    assert set(Permission.objects.filter(content_type__model="memory").values_list("codename", flat=True)) == {
        "view_memory"
    }
    assert client.get(f"{PEOPLE}{'0' * 8}-0000-4000-8000-{'0' * 12}/card/").status_code == 404


def test_the_health_page_finds_what_is_wrong(alice, dana, as_person, previously):
    client = as_person(dana)
    page = text_of(client.get(f"{PEOPLE}health/"))
    assert "none has ever been seen" in page
    assert "Nobody replies and nobody remembers until a worker runs." in page
    assert "nothing is waiting" in page
    assert "none is set" in page
    WorkerSeen.objects.create(name="here", at=utc_now())
    access.folder_of(alice).state.mark_pending()
    previously(model="talker", model_url="http://127.0.0.1:9/v1")
    page = text_of(client.get(f"{PEOPLE}health/"))
    assert "work is due for 1 person" in page
    assert "talker: 0 requests in a day" in page
    tasks.model_server.cache_clear()
    page = text_of(client.get(f"{PEOPLE}health/?model=ask"))
    assert "cannot be asked" in page
    assert "See whether the server at PREVIOUSLY_MODEL_URL runs" in page


def test_memory_is_listed_by_its_proxy(alice):
    assert Memory.objects.get(pk=alice.pk).called == "Alice"
