"""The strands: all of them, one with its whole history, the merges, and taking a merge back."""

import html
import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest

from memory import access, tasks
from memory.conversation.due import Settle, due
from memory.conversation.settle import clear_marker, renew_strands, settle
from memory.conversation.unmerge import NotStanding, Undone, undo_owner, unmerge
from memory.folder import derived
from memory.folder.clock import utc_now
from memory.folder.locks import held
from memory.folder.paths import MERGES, STRANDS, core_file
from memory.folder.strands import Merge, render_merges
from memory.views.strands import A_PAGE, ROWS
from tests.web.pages import HTMX, folder_of, keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

NIGHT = datetime(2026, 3, 9, 22, 45, tzinfo=UTC)
HOSTILE = ('"><script>alert(1)</script>', "abc\u202edef", "../../etc/passwd", "x" * 300)


@pytest.fixture
def handed(monkeypatch):
    """The jobs given to the broker, which keeps them."""
    jobs = []
    monkeypatch.setattr(tasks, "enqueue", lambda user_id, job: jobs.append(job) or True)
    return jobs


def catalogued(user, *, owner="close 2026-03-09-2245"):
    """Write the user's strands and timeline as a close pass does."""
    folder = folder_of(user)
    made = derived.rebuild(folder)
    with folder.files_lock():
        derived.put(folder, made, owner=owner, now=utc_now())
    return folder


def merged(user, *, settled=True):
    """A folder in which `jogging` was merged into `running`; with its commits made."""
    for hours, tags in enumerate([("running",), ("jogging",), ("jogging", "kitchen")]):
        keep(user, NIGHT + timedelta(hours=hours), ("t1", "a", "b"), focus=f"Slice {hours}", tags=tags)
    folder = folder_of(user)
    records = {"jogging": (Merge(to="running", at=NIGHT, by="model"),)}
    (folder.root / MERGES).write_text(render_merges(records))
    catalogued(user)
    if settled:
        settle(folder, now=utc_now())
    return folder


def names(page):
    return [html.unescape(name) for name in re.findall(r"<b><bdi>(.*?)</bdi></b>", page)]


def focuses(page):
    return [html.unescape(focus) for focus in re.findall(r'class="focus"><a href="[^"]*"><bdi>(.*?)</bdi>', page)]


def told(page):
    return [html.unescape(words) for words in re.findall(r'<div class="notice[^"]*"><p>([^<]*)', page)]


def undo(client, from_key="jogging", to="running"):
    return client.post("/strands/merges/undo/", {"from": from_key, "to": to}, follow=True)


def test_it_works(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", tags=("kitchen",))
    keep(alice, NIGHT + timedelta(days=40), ("t2", "a", "b"), focus="Second", tags=("Kitchen", "oak"))
    catalogued(alice)
    client = as_person(alice)
    page = text_of(client.get("/strands/"))
    assert names(page) == ["kitchen", "oak"]
    assert re.findall(r'class="count">([^<]*)<', page) == ["2 slices", "1 slice"]
    assert ">9 Mar</time> – <time" in page
    assert page.count('<svg class="activity"') == 2

    page = text_of(client.get("/strands/?name=kitchen"))
    assert "<h1><bdi>kitchen</bdi></h1>" in page
    assert focuses(page) == ["First", "Second"]
    assert "together in 1 slice" in page
    assert focuses(text_of(client.get("/strands/?name=kitchen&order=newest"))) == ["Second", "First"]


def test_the_last_spoken_of_stands_first(alice, as_person):
    for days, tag in enumerate(["old", "middle", "new"]):
        keep(alice, NIGHT + timedelta(days=days), ("t1", "a", "b"), focus=tag, tags=(tag,))
    catalogued(alice)
    assert names(text_of(as_person(alice).get("/strands/"))) == ["new", "middle", "old"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [("kit", ["kitchen"]), ("KITCHEN", ["kitchen"]), ("厨", ["厨房"]), ("ｋｉｔ", ["kitchen"]), ("zzz", [])],
)
def test_the_list_is_filtered_by_letters(alice, as_person, asked, found):
    keep(alice, NIGHT, ("t1", "a", "b"), tags=("kitchen", "厨房", "oak"), focus="All")
    catalogued(alice)
    client = as_person(alice)
    assert names(text_of(client.get("/strands/", {"q": asked}))) == found
    part = text_of(client.get("/strands/", {"q": asked}, **HTMX))
    assert names(part) == found
    assert "<!doctype html>" not in part


def test_many_strands_come_page_by_page(alice, as_person):
    tags = [f"strand {number:03}" for number in range(A_PAGE + 10)]
    for number in range(0, len(tags), 20):
        start = NIGHT + timedelta(hours=number)
        keep(alice, start, ("t1", "a", "b"), focus="Many", tags=tuple(tags[number : number + 20]))
    catalogued(alice)
    client = as_person(alice)
    page = text_of(client.get("/strands/"))
    more = html.unescape(re.search(r'class="go-on" hx-get="([^"]*)"', page)[1])
    assert more == "/strands/?page=2"
    rest = text_of(client.get(more, **HTMX))
    assert sorted(names(page) + names(rest)) == tags
    assert "<ul" not in rest
    assert names(text_of(client.get(more))) == names(rest)
    assert client.get("/strands/?page=0").status_code == client.get("/strands/?page=x").status_code == 404


def test_a_long_history_comes_in_stretches_without_a_gap(alice, as_person):
    for day in range(ROWS + 3):
        keep(alice, NIGHT + timedelta(days=day), ("t1", "a", "b"), focus=f"Day {day}", tags=("running",))
    catalogued(alice)
    client = as_person(alice)
    expected = [f"Day {day}" for day in range(ROWS + 3)]
    for query, wanted in (("", expected), ("&order=newest", expected[::-1])):
        page = text_of(client.get(f"/strands/?name=running{query}"))
        more = html.unescape(re.search(r'class="go-on" hx-get="([^"]*)"', page)[1])
        rest = text_of(client.get(more, **HTMX))
        assert focuses(page) + focuses(rest) == wanted
        assert "go-on" not in rest
    assert client.get("/strands/?name=running&after=../x").status_code == 404


def test_first_and_last_are_seen_in_the_persons_zone(alice, as_person):
    alice.timezone = "Asia/Shanghai"
    alice.save()
    keep(alice, NIGHT, ("t1", "a", "b"), focus="Late", tags=("running",))
    catalogued(alice)
    assert ">10 Mar</time></span>" in text_of(as_person(alice).get("/strands/"))


def test_a_merged_name_leads_to_its_strand_and_an_unknown_one_nowhere(alice, as_person):
    merged(alice)
    client = as_person(alice)
    assert client.get("/strands/?name=Jogging")["Location"] == "/strands/?name=running"
    page = text_of(client.get("/strands/?name=running"))
    assert focuses(page) == ["Slice 0", "Slice 1", "Slice 2"]
    assert "Merged into this strand" in page
    missing = client.get("/strands/?name=swimming")
    assert missing.status_code == 404
    assert "No such strand" in text_of(missing)


def test_a_damaged_slice_of_a_strand_is_listed_with_its_path(alice, as_person):
    made = keep(alice, NIGHT, ("t1", "a", "b"), focus="Broken", tags=("running",))
    folder = catalogued(alice)
    (folder.root / core_file(made.slice_id)).write_bytes(b"---\nslice_id: [\n---\n")
    page = text_of(as_person(alice).get("/strands/?name=running"))
    assert focuses(page) == ["Damaged"]
    assert core_file(made.slice_id) in page


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a": ["../x"]}', b"\xff"])
def test_a_corrupt_index_is_told_and_replaced_by_the_timeline(alice, as_person, content):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", tags=("running",))
    folder = catalogued(alice)
    (folder.root / STRANDS).write_bytes(content)
    client = as_person(alice)
    page = text_of(client.get("/strands/"))
    assert names(page) == ["running"]
    assert "The index of strands cannot be read" in told(page)[0]
    assert STRANDS in told(page)[0]
    assert focuses(text_of(client.get("/strands/?name=running"))) == ["First"]
    assert (folder.root / STRANDS).read_bytes() == content


def test_paths_of_no_real_minute_break_no_page(alice, as_person):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="First", tags=("running",))
    folder = catalogued(alice)
    paths = ["0000/00/00/0000", "2026/03/09/2245", "9999/99/99/9999"]
    (folder.root / STRANDS).write_text(json.dumps({"running": paths, "gone": ["2020/13/01/0000"]}))
    client = as_person(alice)
    assert names(text_of(client.get("/strands/"))) == ["running", "gone"]
    assert focuses(text_of(client.get("/strands/?name=running"))) == ["First"]
    assert client.get("/strands/?name=gone").status_code == 200


def test_corrupt_merges_are_told_and_left_alone(alice, as_person):
    folder = merged(alice)
    (folder.root / MERGES).write_text("{")
    client = as_person(alice)
    for path in ("/strands/", "/strands/merges/", "/strands/?name=running"):
        assert "The list of merges cannot be read" in told(text_of(client.get(path)))[0]
    assert "stands as it was" in told(text_of(undo(client)))[0]
    assert (folder.root / MERGES).read_text() == "{"


def test_merges_are_listed_with_who_and_when(alice, as_person):
    folder = folder_of(alice)
    records = {
        "jogging": (Merge(to="running", at=NIGHT, by="model"),),
        "wedding": (
            Merge(to="party", at=NIGHT - timedelta(days=9), by="<i>Bob</i>", undone=True),
            Merge(to="婚礼", at=NIGHT + timedelta(days=1), by="model"),
        ),
    }
    (folder.root / MERGES).parent.mkdir(parents=True)
    (folder.root / MERGES).write_text(render_merges(records))
    page = text_of(as_person(alice).get("/strands/merges/"))
    listed = page[page.index('<ul class="merges">') :]
    assert re.findall(r"<li[^>]*><p><bdi>([^<]*)</bdi>", listed) == ["wedding", "jogging", "wedding"]
    assert "by the model, <time" in listed
    assert ">9 March, 23:45</time>" in listed
    assert "by <bdi>&lt;i&gt;Bob&lt;/i&gt;</bdi>" in listed
    assert listed.count('<li class="undone">') == 1
    assert listed.count("Undo merge") == 2


def test_an_undone_merge_is_written_committed_and_sorted_anew(alice, as_person, handed, monkeypatch):
    folder = merged(alice)
    client = as_person(alice)
    page = text_of(undo(client))
    assert told(page)[0] == "The merge of “jogging” into “running” is undone, and is never made again."
    assert "Its slices are being sorted anew" in told(page)[1]
    assert handed == [Settle()]
    assert folder.state.pending.exists()
    assert due(folder, utc_now()) == [Settle()]

    # The connection is the test's own, with its transaction.
    monkeypatch.setattr(tasks.connections, "close_all", lambda: None)
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    tasks.settle(str(alice.pk))
    log = subprocess.run(
        ["git", "log", "--format=%s", "-1"], cwd=folder.root, capture_output=True, text=True, check=True
    )
    assert log.stdout == "undo merge jogging → running\n"
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=folder.root, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""
    assert due(folder, utc_now()) == []
    assert not folder.state.pending.exists()

    page = text_of(client.get("/strands/"))
    assert names(page) == ["jogging", "kitchen", "running"]
    assert told(page) == []
    assert focuses(text_of(client.get("/strands/?name=jogging"))) == ["Slice 1", "Slice 2"]
    assert focuses(text_of(client.get("/strands/?name=running"))) == ["Slice 0"]
    assert focuses(text_of(client.get("/timeline/2026/?strand=jogging"))) == ["Slice 2", "Slice 1"]


def test_a_second_undo_is_told_so(alice, as_person, handed):
    folder = merged(alice)
    client = as_person(alice)
    undo(client)
    before = (folder.root / MERGES).read_bytes()
    assert told(text_of(undo(client)))[0] == (
        "“jogging” is not merged into “running” any more: it was undone already, here or elsewhere."
    )
    assert (folder.root / MERGES).read_bytes() == before
    assert handed == [Settle()]


def test_of_two_at_once_one_undoes(alice):
    folder = merged(alice)
    start, outcomes = Barrier(2), []

    def press():
        start.wait()
        outcomes.append(unmerge(folder, "jogging", "running"))

    threads = [Thread(target=press) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(type, outcomes), key=lambda kind: kind.__name__) == [NotStanding, Undone]


def test_a_close_that_computed_with_the_merge_does_not_bring_it_back(alice):
    folder = merged(alice)
    stale = derived.reconcile(folder)
    unmerge(folder, "jogging", "running")
    renew_strands(folder, now=utc_now())
    assert "jogging" in folder.strands()

    with folder.files_lock():
        derived.put(folder, stale, owner="close 2026-03-09-2245", now=utc_now())
    assert "jogging" in folder.strands()
    assert due(folder, utc_now()) == [Settle()]
    renew_strands(folder, now=utc_now())
    assert folder.state.strands_due() == ""


def test_an_undo_committed_by_a_turn_is_still_sorted_anew(alice):
    folder = merged(alice)
    unmerge(folder, "jogging", "running")
    settle(folder, now=utc_now())
    assert due(folder, utc_now()) == [Settle()]
    clear_marker(folder, now=utc_now())
    assert folder.state.pending.exists()
    renew_strands(folder, now=utc_now())
    settle(folder, now=utc_now())
    assert "jogging" in folder.strands()
    assert due(folder, utc_now()) == []


def test_a_busy_folder_says_so_and_changes_nothing(alice, as_person, monkeypatch):
    folder = merged(alice)
    before = (folder.root / MERGES).read_bytes()
    monkeypatch.setattr(type(folder), "files_lock", lambda self: held(self.state.make() / "files.lock", timeout=0))
    with held(folder.state.make() / "files.lock", timeout=0):
        page = text_of(undo(as_person(alice)))
    assert "busy at the moment; try again" in told(page)[0]
    assert (folder.root / MERGES).read_bytes() == before


def test_a_broker_that_is_gone_only_delays(alice, as_person, monkeypatch):
    monkeypatch.setattr(tasks, "enqueue", lambda user_id, job: False)
    folder = merged(alice)
    assert "sorted anew with some delay" in told(text_of(undo(as_person(alice))))[0]
    assert due(folder, utc_now()) == [Settle()]


@pytest.mark.parametrize(("from_key", "to"), [("", ""), ("running", "jogging"), ("jogging", "kitchen"), ("\0", "../x")])
def test_what_is_not_merged_cannot_be_undone(alice, as_person, handed, from_key, to):
    folder = merged(alice)
    before = (folder.root / MERGES).read_bytes()
    assert "not merged into" in told(text_of(undo(as_person(alice), from_key, to)))[0]
    assert (folder.root / MERGES).read_bytes() == before
    assert handed == []


def test_undo_takes_a_post_with_a_token(alice, as_person):
    merged(alice)
    client = as_person(alice)
    assert client.get("/strands/merges/undo/").status_code == 405
    client.handler.enforce_csrf_checks = True
    assert client.post("/strands/merges/undo/", {"from": "jogging", "to": "running"}).status_code == 403


def test_the_message_of_the_commit_is_one_short_line():
    assert undo_owner("a\nb  c", "x" * 300) == f"undo merge a b c → {'x' * 59}…"
    assert undo_owner("--exec=touch pwned", "b").startswith("undo merge ")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_others_wrote_are_inert(alice, as_person, handed, name):
    keep(alice, NIGHT, ("t1", "a", "b"), focus=name, tags=(name, "kitchen"))
    folder = folder_of(alice)
    (folder.root / MERGES).write_text(render_merges({"cooking": (Merge(to=name, at=NIGHT, by=name),)}))
    catalogued(alice)
    client = as_person(alice)
    for path, query in (
        ("/strands/", {}),
        ("/strands/", {"q": name}),
        ("/strands/", {"name": name}),
        ("/strands/", {"name": f"{name} not there"}),
        ("/strands/merges/", {}),
    ):
        page = text_of(client.get(path, query))
        assert "<script>alert" not in page
        assert " style=" not in page
    assert names(text_of(client.get("/strands/", {"q": name}))) == [name]
    assert focuses(text_of(client.get("/strands/", {"name": name}))) == [name]
    assert "is undone, and is never made again" in told(text_of(undo(client, "cooking", name)))[0]


@pytest.mark.parametrize("path", ["", "?q=kit", "?name=kitchen", "merges/"])
def test_nobody_else_sees_them(alice, charlie, dana, client, as_person, path):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="Hers", tags=("kitchen",))
    catalogued(alice)
    for other in (charlie, dana):
        answer = as_person(other).get(f"/strands/{path}")
        assert answer.status_code == (404 if "name" in path else 200)
        assert "Hers" not in text_of(answer)
        assert names(text_of(answer)) == []
    assert client.get(f"/strands/{path}")["Location"].startswith("/accounts/login/")


def test_nobody_else_undoes_a_merge(alice, charlie, client, as_person, handed):
    folder = merged(alice)
    before = (folder.root / MERGES).read_bytes()
    assert "not merged into" in told(text_of(undo(as_person(charlie))))[0]
    answer = client.post("/strands/merges/undo/", {"from": "jogging", "to": "running"})
    assert answer["Location"].startswith("/accounts/login/")
    assert (folder.root / MERGES).read_bytes() == before
    assert handed == []
    assert not access.folder_of(charlie).exists()


def test_a_page_costs_the_same_queries_and_no_git_however_much_there_is(
    alice, as_person, django_assert_num_queries, monkeypatch
):
    keep(alice, NIGHT, ("t1", "a", "b"), focus="One", tags=("kitchen",))
    catalogued(alice)
    client = as_person(alice)
    for count in (1, 30):
        for number in range(count):
            tags = ("kitchen", f"strand {count} {number}")
            keep(alice, NIGHT - timedelta(days=number + count), ("t1", "a", "b"), focus="Another", tags=tags)
        catalogued(alice)
        with monkeypatch.context() as patch:
            patch.setattr("subprocess.Popen", None)
            for path in ("", "?name=kitchen", "merges/"):
                with django_assert_num_queries(2):
                    assert client.get(f"/strands/{path}").status_code == 200
