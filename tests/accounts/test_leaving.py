"""An account is deleted: nothing of it is left, nothing of anybody else's is touched, and nothing comes back."""

import hashlib
import logging
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core import management
from django.core.cache import cache
from django.db import connection
from django.test import Client

from accounts import leaving, opened
from accounts.models import MemoryOpened, Page, User
from memory import access, facts, pace, tasks
from memory.conversation.receive import receive
from memory.conversation.settle import settle
from memory.folder import erasing, locks
from memory.folder.clock import utc_now
from memory.folder.errors import NotThere
from memory.folder.search import SearchIndex
from memory.models import FolderFacts
from tests.conftest import PASSWORD
from tests.web.pages import text_of

pytestmark = pytest.mark.django_db

MARKER = "Zinnober7713"


def hash_of(*roots: Path) -> str:
    """All below these directories, to the byte."""
    sums = hashlib.sha256()
    for root in roots:
        for path in sorted(root.rglob("*")):
            sums.update(str(path.relative_to(root)).encode())
            if path.is_file():
                sums.update(path.read_bytes())
    return sums.hexdigest()


def talk(person: User, words: str) -> None:
    """A whole turn, committed, indexed, and one more message that is still owed a reply."""
    folder = access.folder_of(person)
    for text in (words, f"{words} again"):
        said = receive(
            folder, text, turn_id="", seen=[], person=access.person_of(person, browser_zone="UTC"), now=utc_now()
        )
        folder.state.save_prompt(said.slice_id, words)
    settle(folder, now=utc_now() + timedelta(days=2))  # nothing is owed any more then, so all of it is committed
    SearchIndex(folder.index_file).catch_up(folder)
    facts.count(str(person.pk), folder, utc_now())
    pace.too_fast(person.pk)


def everything(person: User, data_dir: Path) -> dict[str, list[str]]:
    """Where the marker or the person's id is found: below the data folder, and in the database."""
    wanted = (MARKER.encode(), str(person.pk).encode(), person.pk.hex.encode())
    files = [
        str(path.relative_to(data_dir))
        for path in data_dir.rglob("*")
        if any(one in str(path.relative_to(data_dir)).encode() for one in wanted)
        or (path.is_file() and any(one in path.read_bytes() for one in wanted))
    ]
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            said = repr(cursor.fetchall())
            if any(one.decode() in said for one in wanted):
                rows.append(table)
    return {"files": files, "tables": rows}


@pytest.fixture
def marked(make_person, data_dir) -> User:
    """Alice, whose every word is the marker."""
    alice = make_person(f"Alice{MARKER}", timezone="Europe/Berlin")
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    talk(alice, f"# {MARKER}\n#{MARKER.lower()}")
    return alice


def test_it_works(marked, bob, dana, data_dir, as_person, caplog, settings):
    caplog.set_level(logging.INFO)
    talk(bob, "Bob's own words")
    opened.note(who=dana, whose=marked, page=Page.CARD, reason=MARKER, now=utc_now())
    opened.note(who=marked, whose=bob, page=Page.CARD, now=utc_now())
    client, elsewhere = as_person(marked), as_person(marked)
    as_person(dana).post(
        f"/admin/accounts/user/{marked.pk}/change/", {"email": marked.email, "called": MARKER, "is_active": "on"}
    )
    assert LogEntry.objects.filter(object_id=str(marked.pk)).exists()
    before = everything(marked, data_dir)
    assert len(before["files"]) > 10
    assert {"accounts_user", "account_emailaddress", "accounts_memoryopened", "memory_folderfacts"} < set(
        before["tables"]
    )
    bobs = access.places(str(bob.pk))
    kept = hash_of(bobs.root, bobs.run), bobs.index.read_bytes(), User.objects.filter(pk=bob.pk).values().get()

    assert "everything you and the agent have said" in text_of(client.get("/settings/leave/"))
    answer = client.post("/settings/leave/", {"password": PASSWORD})
    assert answer.status_code == 200
    assert "Your account is gone" in text_of(answer)

    assert everything(marked, data_dir)["files"] == []
    # Bob's list keeps the name of who looked at his memory, and nothing else of hers.
    assert everything(marked, data_dir)["tables"] == ["accounts_memoryopened"]
    trail = MemoryOpened.objects.get()
    assert (trail.who_id, trail.whose_id, trail.who_called) == (None, bob.pk, marked.called)
    assert cache.get(f"turns-60-{marked.pk}") is None
    assert MARKER not in caplog.text
    for other in (client, elsewhere):
        assert other.get("/").status_code == 302
    assert not Client().login(email=marked.email, password=PASSWORD)
    assert (hash_of(bobs.root, bobs.run), bobs.index.read_bytes()) == kept[:2]
    assert User.objects.filter(pk=bob.pk).values().get() == kept[2]
    assert FolderFacts.objects.filter(person=bob).exists()


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD.upper()])
def test_without_the_password_nothing_goes(marked, data_dir, as_person, password):
    before = hash_of(data_dir)
    answer = as_person(marked).post("/settings/leave/", {"password": password, "email": marked.email})
    assert answer.status_code == 422
    assert 'class="errorlist"' in text_of(answer)
    assert hash_of(data_dir) == before
    assert User.objects.get(pk=marked.pk).is_active


def test_guessing_the_password_is_limited(marked, as_person):
    client = as_person(marked)
    statuses = [client.post("/settings/leave/", {"password": str(number)}).status_code for number in range(12)]
    assert statuses[0] == 422
    assert statuses[-1] == 429
    assert User.objects.filter(pk=marked.pk).exists()


def test_who_has_no_password_types_the_address(marked, as_person):
    marked.set_unusable_password()
    marked.save()
    client = as_person(marked)
    assert 'name="email"' in text_of(client.get("/settings/leave/"))
    assert client.post("/settings/leave/", {"email": "other@example.org"}).status_code == 422
    assert User.objects.filter(pk=marked.pk).exists()
    assert client.post("/settings/leave/", {"email": f" {marked.email.upper()} "}).status_code == 200
    assert not User.objects.filter(pk=marked.pk).exists()


def test_an_administrator_deletes_an_account_with_everything(
    marked, dana, data_dir, as_person, django_capture_on_commit_callbacks
):
    client = as_person(dana)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(f"/admin/accounts/user/{marked.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert everything(marked, data_dir)["files"] == []
    assert not User.objects.filter(pk=marked.pk).exists()
    assert not LogEntry.objects.filter(object_id=str(marked.pk)).exists()


def test_links_are_not_followed(marked, bob, data_dir, tmp_path):
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_text("gold")
    folder = access.folder_of(marked)
    for place in (folder.root, folder.root / ".git", folder.state.directory):
        (place / "away").symlink_to(treasure)
        (place / "file").symlink_to(treasure / "gold")
    leaving.leave(marked)
    assert (treasure / "gold").read_text() == "gold"

    talk(bob, "words")
    places = access.places(str(bob.pk))
    moved = tmp_path / "moved"
    places.root.rename(moved)
    places.root.symlink_to(moved)
    leaving.leave(bob)
    assert not places.root.is_symlink()
    assert (moved / ".git").is_dir()  # the link goes; what an operator put elsewhere by hand is theirs


def test_late_tasks_and_pages_bring_nothing_back(marked, data_dir, caplog, monkeypatch):
    folder, person, user_id = access.folder_of(marked), access.person_of(marked), str(marked.pk)
    newest = folder.newest(1)[0]
    index = SearchIndex(folder.index_file)
    leaving.leave(marked)
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    monkeypatch.setattr(tasks.connections, "close_all", lambda: None)
    for task in (tasks.answer, tasks.settle, *tasks.CLOSE_STEPS.values()):
        arguments = {tasks.answer: (newest.slice_id, "t1"), tasks.settle: ()}.get(task, (newest.slice_id,))
        task(user_id, *arguments)
    assert caplog.text.count(f"there is no account {user_id}") >= 7
    # Whoever had the folder in hand when the account went: a page that takes in a message, a worker at its end.
    with pytest.raises(NotThere):
        receive(folder, MARKER, turn_id="", seen=[], person=person, now=utc_now())
    with pytest.raises(NotThere), folder.files_lock():
        pass
    tasks.indexing.catch_up(folder)
    tasks.indexing.index_slice(folder, newest.slice_id)
    with pytest.raises(NotThere):
        settle(folder, now=utc_now())
    assert index.file.exists() is False
    assert everything(marked, data_dir)["files"] == []


def test_what_is_under_way_is_asked_to_end_and_not_waited_for_for_ever(marked, data_dir, monkeypatch):
    monkeypatch.setattr(erasing, "PATIENCE", 0.2)
    run = access.folder_of(marked).state.directory
    (run / "replies").mkdir(exist_ok=True)
    (run / "replies" / "2026-03-09-2245-Ab12cQ.events").write_text("")
    seen: list[bool] = []
    held, done = threading.Event(), threading.Event()

    def work() -> None:
        with locks.held(run / "reply.lock", timeout=0):
            held.set()
            while not done.wait(0.01):
                seen.append((run / "replies" / "2026-03-09-2245-Ab12cQ.stop").exists())

    worker = threading.Thread(target=work)
    worker.start()
    held.wait(5)
    leaving.leave(marked)
    done.set()
    worker.join()
    assert any(seen)
    assert everything(marked, data_dir)["files"] == []


def test_a_deletion_cut_short_is_finished_by_the_sweep(marked, bob, data_dir, monkeypatch):
    talk(bob, "Bob's own words")
    user_id = str(marked.pk)
    access.begin_erasing(user_id)
    places = access.places(user_id)
    places.root.rename(places.root.with_name(f".gone-{user_id}-1234"))
    monkeypatch.setattr(tasks, "enqueue", lambda *job: True)
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    bobs = hash_of(access.places(str(bob.pk)).root)
    tasks.sweep_now()
    assert not User.objects.filter(pk=user_id).exists()
    assert everything(marked, data_dir)["files"] == []
    assert hash_of(access.places(str(bob.pk)).root) == bobs


def test_the_sweep_removes_what_late_writers_left_and_never_a_folder(bob, data_dir, monkeypatch):
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    monkeypatch.setattr(tasks, "enqueue", lambda *job: True)
    talk(bob, "words")
    stray = "00000000-0000-4000-8000-000000000000"
    orphan = "11111111-0000-4000-8000-000000000000"
    for made in (f"run/{stray}", f"run/{orphan}", f"folders/{orphan}/.git", "run/notes"):
        (data_dir / made).mkdir(parents=True)
    (data_dir / "pending" / stray).touch()
    tasks.sweep_now()
    assert not (data_dir / "run" / stray).exists()
    assert not (data_dir / "pending" / stray).exists()
    # A folder without an account may be one whose database was lost: whoever restores that wants it back.
    assert (data_dir / "folders" / orphan / ".git").is_dir()
    assert (data_dir / "run" / orphan).is_dir()
    assert (data_dir / "run" / "notes").is_dir()
    assert access.folder_of(bob).exists()


def test_the_only_administrator_is_told_what_it_means(dana, as_person, make_person):
    assert "You are the only administrator" in text_of(as_person(dana).get("/settings/leave/"))
    make_person("Erin", is_superuser=True)
    assert "You are the only administrator" not in text_of(as_person(dana).get("/settings/leave/"))


def test_expired_and_foreign_sessions_are_told_apart(marked, bob, as_person):
    as_person(marked)
    his = as_person(bob)
    leaving.leave(marked)
    assert Session.objects.count() == 1
    assert his.get("/settings/").status_code == 200


def test_the_migrations_are_complete():
    management.call_command("makemigrations", check=True, dry_run=True, verbosity=0)
