"""rebuild, sweep, ensure_admin, and a start with a bad configuration: each says what it did, or the remedy."""

import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from accounts.models import User
from memory import access, tasks
from memory.folder.paths import STRANDS
from memory.models import WorkerSeen
from tests.conftest import PASSWORD
from tests.served import ROOT, clean_environment
from tests.site.test_doctor import DAY, files, two  # noqa: F401 - a fixture
from tests.web.pages import keep, newest

pytestmark = pytest.mark.django_db(transaction=True)

ROOTED = os.geteuid() == 0


def told(capsys, *command: str) -> str:
    capsys.readouterr()
    call_command(*command)
    return capsys.readouterr().out


def test_it_works(alice, two, capsys):  # noqa: F811
    folder = access.folder_of(alice)
    good, head = files(folder), folder.repository.head()
    assert told(capsys, "rebuild") == f"{alice.pk}: 2 strands, 0 months changed.\n"
    assert (files(folder), folder.repository.head()) == (good, head)
    (folder.root / STRANDS).write_text("{")
    folder.index_file.write_bytes(b"no index")
    told(capsys, "rebuild", "alice@example.org")
    assert {path: data for path, data in files(folder).items() if ".damaged-" not in path} == good
    assert folder.repository.log()[0].subject == "rebuild strands and timeline"


def test_rebuild_goes_on_behind_a_folder_that_resists(alice, bob, two, capsys):  # noqa: F811
    keep(bob, None, ("aaaaaa", "Hello", "Hello."), minutes_ago=DAY, tags=("tea",))
    config = access.folder_of(alice).root / ".git" / "config"
    config.write_text(config.read_text().replace("format = 1", "format = 2"))
    with pytest.raises(CommandError, match="1 folders were not rebuilt"):
        call_command("rebuild")
    said = capsys.readouterr()
    assert f"{alice.pk}: not rebuilt: " in said.err
    assert f"Run `manage.py doctor {alice.pk}`" in said.err
    assert f"{bob.pk}: 1 strands, 1 months changed." in said.out


def test_rebuild_of_nobody(data_dir, db, capsys):
    assert told(capsys, "rebuild") == ""
    with pytest.raises(CommandError, match="There is no account"):
        call_command("rebuild", "nobody@example.org")


def test_sweep_does_the_work_itself_with_the_memory_broker(alice, bob, previously, capsys):
    previously(broker_url="memory://")
    for person in (alice, bob):
        keep(person, None, ("aaaaaa", "Hello?", None), active=True, minutes_ago=1)
        access.folder_of(person).state.mark_pending()
    said = told(capsys, "sweep")
    assert said.endswith("jobs done.\n")
    assert said.count("done: Answer(") == 2
    for person in (alice, bob):
        assert newest(person).entry("aaaaaa", "agent")
        assert not access.folder_of(person).state.pending.exists()
    assert told(capsys, "sweep") == "Nothing was due.\n"


def test_sweep_hands_over_when_there_is_a_broker(alice, previously, monkeypatch, capsys):
    previously(broker_url="redis://127.0.0.1:1/0")
    monkeypatch.setattr(tasks, "_publish", lambda *_: True)
    keep(alice, None, ("aaaaaa", "Hello?", None), active=True, minutes_ago=1)
    access.folder_of(alice).state.mark_pending()
    assert told(capsys, "sweep") == "1 jobs handed to the workers.\n"
    assert newest(alice).entry("aaaaaa", "agent") is None
    assert WorkerSeen.objects.exists()


def test_a_marker_of_nobody_does_not_stop_the_sweep(data_dir, db, previously, capsys):
    previously(broker_url="memory://")
    (data_dir / "pending").mkdir()
    (data_dir / "pending" / "5c0f8f0e-0000-4000-8000-000000000000").touch()
    (data_dir / "pending" / "no-id").touch()
    assert told(capsys, "sweep") == "Nothing was due.\n"


def test_the_administrator_of_the_environment_is_there_and_stays(db, data_dir, previously, client, capsys):
    previously(admin_email="Dana@Example.org", admin_password=PASSWORD)
    assert told(capsys, "ensure_admin") == "Made the administrator dana@example.org.\n"
    assert client.post("/accounts/login/", {"login": "dana@example.org", "password": PASSWORD}).status_code == 302
    assert client.get("/admin/").status_code == 200
    previously(admin_email="dana@example.org", admin_password="another-password-entirely")
    assert told(capsys, "ensure_admin") == "dana@example.org is an administrator already.\n"
    dana = User.objects.get()
    assert dana.check_password(PASSWORD)
    assert dana.emailaddress_set.get().verified


def test_an_account_that_is_there_gets_the_rights_and_keeps_its_password(alice, previously, capsys):
    User.objects.filter(pk=alice.pk).update(is_active=False, awaits_approval=True)
    previously(admin_email="alice@example.org", admin_password="")
    assert told(capsys, "ensure_admin") == "Made alice@example.org an administrator.\n"
    alice.refresh_from_db()
    assert (alice.is_staff, alice.is_superuser, alice.is_active, alice.awaits_approval) == (True, True, True, False)
    assert alice.check_password(PASSWORD)


@pytest.mark.parametrize(
    ("email", "password", "why"),
    [
        ("", "", "Set PREVIOUSLY_ADMIN_EMAIL"),
        ("dana@example.org", "", "set PREVIOUSLY_ADMIN_PASSWORD or its _FILE"),
        ("dana", PASSWORD, "is no e-mail address"),
    ],
)
def test_the_administrator_has_to_be_named(db, previously, email, password, why):
    previously(admin_email=email, admin_password=password)
    with pytest.raises(CommandError, match=why):
        call_command("ensure_admin")
    assert not User.objects.exists()


def manage(data, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean_environment(data, environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def stopped(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == []


def test_a_word_that_means_nothing_stops_it(tmp_path):
    stopped(manage(tmp_path, "serve", PREVIOUSLY_SIGNUP="perhaps"), "PREVIOUSLY_SIGNUP", "use one of closed, invite")


def test_a_data_folder_that_cannot_be_made_stops_it(tmp_path):
    (tmp_path / "file").touch()
    done = manage(tmp_path / "file" / "data", "serve")
    stopped(done, "cannot be made", "set PREVIOUSLY_DATA_DIR to a folder that this user may write")


@pytest.mark.skipif(ROOTED, reason="root may write everywhere")
def test_a_data_folder_that_cannot_be_written_stops_it(tmp_path):
    (tmp_path / "data").mkdir(mode=0o500)
    stopped(manage(tmp_path / "data", "serve"), "cannot be made or read", "give this user the rights")


def test_a_data_folder_on_a_disk_that_takes_nothing_stops_it():
    done = manage("/proc/previously", "serve")
    stopped(done, "cannot be made", "set PREVIOUSLY_DATA_DIR to a folder that this user may write")


@pytest.mark.parametrize("key", ["short", ""])
def test_a_damaged_key_stops_it(tmp_path, key):
    (tmp_path / "secret_key").write_text(key)
    stopped(manage(tmp_path, "serve"), "is too short: delete the file and a new one is made")


def test_a_database_that_is_none_stops_it_in_one_sentence(tmp_path):
    (tmp_path / "database.sqlite3").write_bytes(b"no database" * 1000)
    stopped(manage(tmp_path, "serve", "--port", "0"), "The database cannot be used", "PREVIOUSLY_DATABASE_URL")


def test_a_server_that_is_not_there_stops_it_in_one_sentence(tmp_path):
    url = "postgres://previously:s3cret@127.0.0.1:1/previously?connect_timeout=1"
    done = manage(tmp_path, "serve", "--port", "0", PREVIOUSLY_DATABASE_URL=url)
    stopped(done, "The database cannot be used", "PREVIOUSLY_DATABASE_URL")
    assert "s3cret" not in done.stderr


def test_a_newer_folder_takes_no_message_and_says_so(alice, as_person):
    found = keep(alice, None, ("aaaaaa", "Hello?", "Hello."), active=True, minutes_ago=1)
    root = access.folder_of(alice).root
    config = root / ".git" / "config"
    config.write_text(config.read_text().replace("format = 1", "format = 2"))
    before = files(access.folder_of(alice))
    answer = as_person(alice).post("/", {"text": "And now?", "turn": "bbbbbb", "seen": ["aaaaaa"]})
    assert answer.status_code == 503
    assert "was written by a newer version of this program" in answer.content.decode()
    assert files(access.folder_of(alice)) == before
    tasks.answer(str(alice.pk), found.slice_id, "aaaaaa")
    tasks.settle(str(alice.pk))
    assert files(access.folder_of(alice)) == before
    assert as_person(alice).get("/").status_code == 200


def test_a_full_disk_takes_no_message_and_says_so(alice, as_person, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    keep(alice, None, ("aaaaaa", "Hello?", "Hello."), active=True, minutes_ago=1)
    before = files(access.folder_of(alice))
    monkeypatch.setattr("memory.folder.flushed.os.fsync", full)
    answer = as_person(alice).post("/", {"text": "And now?", "turn": "bbbbbb", "seen": ["aaaaaa"]})
    assert answer.status_code == 503
    page = answer.content.decode()
    assert "could not be written to the disk and was not saved. Your text is kept" in page
    assert "And now?" in page
    assert files(access.folder_of(alice)) == before


def test_limits_are_told_before_anything_is_written(alice, as_person, previously):
    previously(turns_per_minute=2)
    client = as_person(alice)
    answers = [client.post("/", {"text": f"Message {number}", "turn": f"aaaaa{number}"}) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    page = answers[2].content.decode()
    assert "2 messages a minute" in page
    assert "Message 2" in page
    assert "Message 2" not in "".join(path.read_text() for path in access.folder_of(alice).root.rglob("core.md"))


def test_limits_do_not_take_the_words_away_when_nobody_can_count(alice, as_person, previously):
    previously(turns_per_day=5)
    gone = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    client = as_person(alice)
    with override_settings(CACHES={"default": gone}):
        assert client.post("/", {"text": "Hello", "turn": "aaaaaa"}).status_code == 200
