"""backup and restore: everything comes back, nothing foreign comes along, and a bad backup changes nothing."""

import hashlib
import http.cookiejar
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memory import access
from memory.conversation.receive import receive
from memory.folder.clock import utc_now
from memory.folder.paths import new_turn_id, slice_ids
from previously_site import manifest as manifests
from previously_site.env import MEMORY_BROKER
from tests.served import ROOT, Served, clean_environment

pytestmark = pytest.mark.django_db(transaction=True)
sqlite_only = pytest.mark.skipif(
    "connection.vendor != 'sqlite'", reason="with PostgreSQL the accounts are dumped by pg_dump"
)

DANA = {"email": "dana@example.org", "called": "Dana", "password": "a-long-walk-by-the-sea"}


def git(root: Path, *arguments: str, check: bool = True) -> str:
    identity = ("-c", "user.name=Alice", "-c", "user.email=alice@example.org")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=root, check=check, capture_output=True, text=True).stdout


def tree(root: Path) -> dict[str, str]:
    """The hash of every file that is not git's own."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def say(person, words: str) -> None:
    """A message that is taken and not answered."""
    folder = access.folder_of(person)
    receive(folder, words, turn_id=new_turn_id(), seen=[], person=access.person_of(person), now=utc_now())


def backup(target: Path, capsys=None) -> str:
    call_command("backup", str(target))
    return capsys.readouterr().out if capsys else ""


@pytest.fixture
def emptied(data_dir: Path, settings, monkeypatch) -> Callable[[], Path]:
    """The data folder moves away, and an empty one is there in its place; gives the old one."""

    def empty() -> Path:
        old = data_dir.with_name("old")
        data_dir.rename(old)
        data_dir.mkdir(mode=0o700)
        monkeypatch.setitem(settings.DATABASES["default"], "NAME", data_dir / "database.sqlite3")
        return old

    return empty


def restore(source: Path) -> None:
    call_command("restore", str(source))


def refused(command: str, *arguments: object) -> str:
    with pytest.raises(CommandError) as error:
        call_command(command, *map(str, arguments))
    assert error.value.returncode == 2
    return str(error.value)


@sqlite_only
def test_it_works(alice, bob, charlie, data_dir, tmp_path, emptied, capsys):
    say(alice, "Oak or stone? 橡木 🌳")
    say(alice, "Oak, then.\r\n---\n## Turn x")
    say(bob, "你好")
    assert "2 folders of 3 people" in backup(tmp_path / "backup", capsys)

    old = emptied()
    restore(tmp_path / "backup")

    for person in (alice, bob):
        root, before = access.folder_of(person).root, old / "folders" / str(person.pk)
        assert tree(root) == tree(before)
        assert len(tree(root)) >= 2
        assert git(root, "ls-tree", "-r", "HEAD") == git(before, "ls-tree", "-r", "HEAD")
        assert git(root, "log", "--format=%H %s") == git(before, "log", "--format=%H %s")
        assert git(root, "status", "--porcelain") == ""
        assert git(root, "fsck", "--strict") == ""
        assert (root / ".git" / "config").read_text() == (before / ".git" / "config").read_text()
    assert not access.folder_of(charlie).exists()
    assert {path.name for path in (data_dir / "pending").iterdir()} == {str(alice.pk), str(bob.pk)}
    assert oct((data_dir / "secret_key").stat().st_mode & 0o777) == "0o600"
    with sqlite3.connect(data_dir / "database.sqlite3") as database:
        emails = {email for (email,) in database.execute("SELECT email FROM accounts_user")}
    assert emails == {"alice@example.org", "bob@example.org", "charlie@example.org"}
    assert {path.name for path in data_dir.iterdir()} == {"database.sqlite3", "folders", "pending", "secret_key"}


def test_a_message_nobody_has_answered_is_in_it(alice, tmp_path):
    say(alice, "Is anybody there?")
    backup(tmp_path / "backup")
    [bundle] = (tmp_path / "backup" / "folders").iterdir()
    git(tmp_path, "clone", "-q", str(bundle), "again")
    [core] = (tmp_path / "again").rglob("core.md")
    assert "Is anybody there?" in core.read_text()


def test_a_turn_that_is_answered_after_the_backup_gets_its_commit(alice, tmp_path, previously):
    previously(broker_url=MEMORY_BROKER)  # then the sweep does the work itself
    say(alice, "Is anybody there?")
    backup(tmp_path / "backup")
    call_command("sweep")
    folder = access.folder_of(alice)
    assert folder.newest(1)[0].entries[-1].role == "agent"
    assert folder.repository.status() == []
    assert [commit.subject.partition(" ")[0] for commit in folder.repository.log()] == ["turn", "turn"]


@sqlite_only
def test_branches_and_tags_come_along_and_other_references_do_not(alice, tmp_path, emptied):
    say(alice, "Oak or stone?")
    folder = access.folder_of(alice)
    backup(tmp_path / "first")
    git(folder.root, "branch", "notes")
    git(folder.root, "tag", "before-the-move")
    git(folder.root, "update-ref", "refs/stash", "HEAD")
    git(folder.root, "checkout", "-qb", "mine")
    backup(tmp_path / "backup")
    emptied()
    restore(tmp_path / "backup")
    assert git(folder.root, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/heads/mine",
        "refs/heads/notes",
        "refs/tags/before-the-move",
    ]
    assert git(folder.root, "symbolic-ref", "HEAD").strip() == "refs/heads/mine"


@sqlite_only
def test_a_detached_head_is_restored_on_a_branch_and_its_words_are_missed(alice, tmp_path, emptied, capsys):
    say(alice, "Oak or stone?")
    folder = access.folder_of(alice)
    backup(tmp_path / "first")
    git(folder.root, "checkout", "-q", "--detach")
    say(alice, "And the worktop?")
    with pytest.raises(CommandError, match="not whole") as error:
        backup(tmp_path / "backup")
    assert error.value.returncode == 1
    assert "could not be committed (HeadBusy)" in capsys.readouterr().err
    emptied()
    restore(tmp_path / "backup")
    assert git(folder.root, "symbolic-ref", "HEAD").strip() == "refs/heads/restored"


def test_what_is_changed_by_hand_is_named(alice, tmp_path, capsys):
    say(alice, "Oak or stone?")
    access.folder_of(alice).root.joinpath("notes.txt").write_text("mine")
    assert "not committed, so not in the backup: 'notes.txt'" in backup(tmp_path / "backup", capsys)


def test_an_existing_place_is_refused(alice, tmp_path, data_dir):
    (tmp_path / "there").mkdir()
    assert "exists already" in refused("backup", tmp_path / "there")
    assert "lies in the data folder" in refused("backup", data_dir / "backup")


def test_a_full_disk_leaves_nothing_behind(alice, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    say(alice, "Oak or stone?")
    monkeypatch.setattr("previously_site.backing_up.os.fsync", full)
    assert "No space left on device" in refused("backup", tmp_path / "backup")
    assert not [path for path in tmp_path.iterdir() if "backup" in path.name]


def test_postgresql_is_dumped_beside_it(alice, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(connection, "vendor", "postgresql")
    monkeypatch.setenv("PREVIOUSLY_DATABASE_URL", "postgres://u:s3cret@h/d")
    said = backup(tmp_path / "backup", capsys)
    assert (
        f'pg_dump --format=custom --file={tmp_path}/backup/database.pgdump --dbname="$PREVIOUSLY_DATABASE_URL"' in said
    )
    assert "s3cret" not in said
    assert not (tmp_path / "backup" / "database.sqlite3").exists()


@pytest.fixture
def saved(alice, tmp_path, emptied) -> Path:
    """A backup of Alice's folder; the data folder is empty again."""
    if connection.vendor != "sqlite":
        pytest.skip("with PostgreSQL the accounts are dumped by pg_dump")
    say(alice, "Oak or stone?")
    backup(tmp_path / "backup")
    emptied()
    return tmp_path / "backup"


def bundle_of(saved: Path) -> Path:
    [bundle] = (saved / "folders").iterdir()
    return bundle


def signed(saved: Path, **changes: object) -> None:
    """Make the manifest fit what was done to the files, as somebody with bad intentions would."""
    manifest = json.loads((saved / "manifest.json").read_text())
    [folder] = manifest["folders"]
    found = manifests.measured(bundle_of(saved))
    folder["bundle"] = {"size": found.size, "sha256": found.sha256}
    (saved / "manifest.json").write_text(json.dumps(manifest | {"folders": [folder | changes]}))


def nothing_restored(data_dir: Path) -> bool:
    return not {path.name for path in data_dir.iterdir()} - {"secret_key"}


def test_a_folder_that_is_not_empty_is_refused(saved, data_dir):
    (data_dir / "folders").mkdir()
    assert "is not empty (it holds folders)" in refused("restore", saved)


def test_a_try_that_was_cut_short_is_no_obstacle(saved, alice, data_dir):
    (data_dir / ".restoring" / "folders").mkdir(parents=True)
    restore(saved)
    assert access.folder_of(alice).exists()


@pytest.mark.parametrize("keep", [0, 20, 200, -1])
def test_a_cut_bundle_changes_nothing(saved, data_dir, keep):
    bundle = bundle_of(saved)
    bundle.write_bytes(bundle.read_bytes()[:keep])
    assert "is damaged or was cut short: take another backup" in refused("restore", saved)
    signed(saved)
    assert "cannot be used" in refused("restore", saved)
    assert nothing_restored(data_dir)


def test_a_missing_file_and_a_missing_manifest_change_nothing(saved, data_dir):
    bundle_of(saved).unlink()
    assert "is missing: the backup is not whole" in refused("restore", saved)
    (saved / "manifest.json").unlink()
    assert "holds no manifest.json" in refused("restore", saved)
    assert nothing_restored(data_dir)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"folder_format": 2}, "have format 2, and this version reads up to 1"),
        ({"layout": 2}, "has layout 2"),
        ({"migrations": {"accounts": "9999_later"}}, "were made by a newer version (accounts 9999_later)"),
        ({"folders": [{"person": "../../etc"}]}, "no manifest of a backup"),
        ({"folders": 3}, "no manifest of a backup"),
    ],
)
def test_what_this_version_cannot_read_is_refused(saved, data_dir, change, why):
    manifest = json.loads((saved / "manifest.json").read_text())
    (saved / "manifest.json").write_text(json.dumps(manifest | change))
    assert why in refused("restore", saved)
    assert nothing_restored(data_dir)


def test_a_newer_folder_is_refused_whatever_the_rest_says(saved, data_dir):
    signed(saved, format=2)
    assert "have format 2" in refused("restore", saved)


@pytest.mark.parametrize("branch", ["refs/heads/../../x", "refs/tags/x", "--upload-pack=x", "refs/heads/a b"])
def test_a_branch_that_is_none_is_refused(saved, data_dir, branch):
    signed(saved, branch=branch)
    assert "cannot be used" in refused("restore", saved)
    assert nothing_restored(data_dir)


def hostile(saved: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Alice's bundle with one more commit, made by somebody with bad intentions."""
    clone = tmp_path / "hostile"
    git(tmp_path, "clone", "-q", str(bundle_of(saved)), "hostile")
    make(clone)
    git(clone, "bundle", "create", "-q", str(bundle_of(saved)), "HEAD", "main")
    signed(saved, head=git(clone, "rev-parse", "HEAD").strip(), branch="refs/heads/main")


def test_a_link_in_a_tree_becomes_a_file(saved, alice, tmp_path):
    def make(clone: Path) -> None:
        (clone / "away").symlink_to("/etc/passwd")
        git(clone, "add", "away")
        git(clone, "commit", "-qm", "a link")

    hostile(saved, tmp_path, make)
    restore(saved)
    root = access.folder_of(alice).root
    assert not (root / "away").is_symlink()
    assert (root / "away").read_text() == "/etc/passwd"
    assert access.folder_of(alice).repository.status() == []


def test_a_tree_that_reaches_into_git_is_refused(saved, data_dir, tmp_path):
    def make(clone: Path) -> None:
        blob = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=clone, input="#!/bin/sh\ntouch pwned\n", text=True,
            capture_output=True, check=True,
        ).stdout.strip()  # fmt: skip

        def tree_of(row: str) -> str:
            return subprocess.run(
                ["git", "mktree"], cwd=clone, input=row, text=True, capture_output=True, check=True
            ).stdout.strip()

        hooks = tree_of(f"100755 blob {blob}\tpost-checkout\n")
        inside = tree_of(f"040000 tree {hooks}\thooks\n")
        top = tree_of(f"040000 tree {inside}\t.git\n")
        made = git(clone, "commit-tree", top, "-p", "HEAD", "-m", "reach").strip()
        git(clone, "update-ref", "refs/heads/main", made)

    hostile(saved, tmp_path, make)
    assert "cannot be used" in refused("restore", saved)
    assert nothing_restored(data_dir)


def test_configuration_and_hooks_stay_behind(saved, alice, tmp_path):
    def make(clone: Path) -> None:
        (clone / ".gitattributes").write_text("*.md filter=evil text eol=crlf\n")
        git(clone, "add", ".gitattributes")
        git(clone, "commit", "-qm", "attributes")
        (clone / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch pwned\n")
        (clone / ".git" / "hooks" / "post-checkout").chmod(0o755)
        git(clone, "config", "core.fsmonitor", "touch pwned")

    hostile(saved, tmp_path, make)
    restore(saved)
    root = access.folder_of(alice).root
    assert not list(tmp_path.rglob("pwned"))
    assert not (root / ".git" / "hooks").exists()
    assert not (root / ".git" / "objects" / "info" / "alternates").exists()
    assert "fsmonitor" not in (root / ".git" / "config").read_text()
    [core] = root.rglob("core.md")
    assert b"\r\n" not in core.read_bytes()


def signed_in(served: Served) -> http.cookiejar.CookieJar:
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    form = browser.open(served.link, timeout=20).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token
    browser.open(served.link, urllib.parse.urlencode(DANA | {"csrfmiddlewaretoken": token[1]}).encode(), timeout=20)
    return jar


def send(served: Served, jar: http.cookiejar.CookieJar, words: str) -> None:
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    form = {"csrfmiddlewaretoken": token, "text": words, "turn": new_turn_id(), "zone": "UTC"}
    request = urllib.request.Request(served.url, urllib.parse.urlencode(form).encode(), {"HX-Request": "true"})
    assert browser.open(request, timeout=20).status == 200


def manage(data: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean_environment(data, environment),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_server_that_is_talked_to_comes_back_as_it_was(tmp_path):
    served = Served(tmp_path / "data", {})
    stopped = threading.Event()
    acknowledged: list[str] = []
    try:
        served.wait_until_ready()
        jar = signed_in(served)

        def talk() -> None:
            while not stopped.is_set():
                words = f"message-{len(acknowledged)}-end"
                send(served, jar, words)
                acknowledged.append(words)

        talking = threading.Thread(target=talk)
        talking.start()
        while len(acknowledged) < 5:
            assert talking.is_alive()
            stopped.wait(0.05)
        taken = list(acknowledged)
        made = manage(tmp_path / "data", "backup", str(tmp_path / "backup"))
        stopped.set()
        talking.join(30)
    finally:
        stopped.set()
        served.kill()
    assert made.returncode == 0, made.stderr
    shutil.rmtree(tmp_path / "data")
    back = manage(tmp_path / "data", "restore", str(tmp_path / "backup"))
    assert back.returncode == 0, back.stderr
    [root] = (tmp_path / "data" / "folders").iterdir()
    words = "".join(path.read_text() for path in root.rglob("core.md"))
    assert [one for one in taken if one not in words] == []
    assert len(list(slice_ids(root))) >= 1
    assert git(root, "fsck", "--strict") == ""
    again = Served(tmp_path / "data", {})
    try:
        again.wait_until_ready()
        assert again.link == ""
        send(again, jar, "I am still signed in")
        assert "I am still signed in" in "".join(path.read_text() for path in root.rglob("core.md"))
    finally:
        again.kill()
    assert "Traceback" not in again.output
