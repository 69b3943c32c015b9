"""doctor: each kind of damage is found and named, and --repair mends what it says and not one byte more."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from accounts.models import User
from memory import access, tasks
from memory.folder.clock import utc_now
from memory.folder.paths import CARD, MERGES, STRANDS, core_file, is_derived
from memory.folder.search import SearchIndex
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from tests.model_server.answers import Answer, Rule
from tests.web.pages import keep

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 60


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Alice", "-c", "user.email=alice@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def two(alice: User) -> tuple[Slice, Slice]:
    """Alice's folder with two closed slices, committed, strands and timeline as they are to be."""
    first = keep(alice, None, ("aaaaaa", "Oak or stone?", "Oak."), minutes_ago=2 * DAY, tags=("kitchen",), focus="Oak")
    second = keep(alice, None, ("bbbbbb", "I ran 10 km", "Well done."), minutes_ago=DAY, tags=("running",), focus="Run")
    folder = access.folder_of(alice)
    with folder.files_lock():
        folder.create(name="Alice", now=utc_now(), owner="card")
    git(folder.root, "add", ".")
    git(folder.root, "commit", "-qm", "as it was")
    call_command("rebuild")
    SearchIndex(folder.index_file).catch_up(folder)
    return first, second


@pytest.fixture
def folder(alice: User, two: tuple[Slice, Slice]) -> MemoryFolder:
    return access.folder_of(alice)


@pytest.fixture
def doctor(capsys) -> Callable[..., tuple[int, str]]:
    """Run the command: its exit code and what it said."""

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        try:
            call_command("doctor", *arguments)
            code, last = 0, ""
        except CommandError as error:
            code, last = error.returncode, str(error)
        said = capsys.readouterr()
        return code, said.out + said.err + last

    return run


def files(folder: MemoryFolder) -> dict[str, bytes]:
    return {
        path.relative_to(folder.root).as_posix(): path.read_bytes()
        for path in folder.root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder.root).parts
    }


def write(folder: MemoryFolder, relative: str, text: str) -> None:
    (folder.root / relative).write_bytes(text.encode())


def test_it_works(doctor, folder, alice):
    code, said = doctor()
    assert (code, said) == (0, f"{alice.pk}: sound.\nEverything is sound.\n")
    assert doctor("alice@example.org") == doctor(str(alice.pk)) == (code, said)


def test_a_healthy_folder_is_not_touched_by_repair(doctor, folder):
    before, head = files(folder), folder.repository.head()
    code, said = doctor("--repair")
    assert (code, "nothing to mend" in said) == (0, True)
    assert (files(folder), folder.repository.head()) == (before, head)


def test_examining_changes_nothing(doctor, folder, two):
    write(folder, STRANDS, "{")
    write(folder, core_file(two[0].slice_id), folder.read(core_file(two[0].slice_id)).decode() + "\n## Turn x\nlost\n")
    before, head = files(folder), folder.repository.head()
    assert doctor()[0] == 1
    assert (files(folder), folder.repository.head()) == (before, head)


def test_repair_moves_stray_lines_and_no_other_byte(doctor, folder, two):
    core = core_file(two[0].slice_id)
    text = folder.read(core).decode()
    odd = text.replace("tags:", "mood:   'as typed'   \ntags:  ", 1).replace(
        "---\n\n## Turn", "---\nabove\n\n## Turn", 1
    )
    write(folder, core, odd + "\n## Turn x — yesterday (nobody)\n\nlost words\n")
    before = files(folder)
    code, said = doctor()
    assert code == 1
    assert f"{core}: it has lines that are no turns. --repair moves these lines to the appendix." in said

    code, said = doctor("--repair")

    assert code == 0, said
    after = files(folder)
    changed = {path for path in before | after if before.get(path) != after.get(path) and not is_derived(path)}
    appendix = core.replace("core.md", "appendix.md")
    assert changed == {core, appendix}
    assert after[core].decode().startswith(odd.partition("above")[0])
    assert "mood:   'as typed'   \n" in after[core].decode()
    assert sorted(line for line in (odd + "## Turn x — yesterday (nobody)\nlost words").splitlines() if line) == sorted(
        line for line in (after[core] + after[appendix]).decode().splitlines() if line
    )
    assert folder.repository.status() == []
    subjects = [commit.subject for commit in folder.repository.log()]
    assert subjects[:2] == ["mended by doctor", f"edited by hand: {core}"]
    assert doctor()[0] == 0


@pytest.mark.parametrize("broken", ["{", "[]", '{"kitchen": 3}', "\x00", '{"kitchen": []}', "{}"])
def test_strands_are_made_anew(doctor, folder, broken):
    good = files(folder)
    write(folder, STRANDS, broken)
    code, said = doctor()
    assert code == 1
    assert f"{STRANDS}: " in said
    assert "--repair makes it anew from the slices" in said
    assert doctor("--repair")[0] == 0
    assert {path: data for path, data in files(folder).items() if ".damaged-" not in path} == good
    assert doctor()[0] == 0


def test_a_timeline_month_is_made_anew(doctor, folder, two):
    good = files(folder)
    month = next(path for path in good if path.startswith("memory/episodic/timeline/"))
    write(folder, month, '{"month": "1999-01", "slices": []}')
    code, said = doctor()
    assert (code, f"{month}: it differs" in said) == (1, True)
    assert doctor("--repair")[0] == 0
    assert files(folder) == good


def test_a_damaged_index_is_made_anew(doctor, folder):
    folder.index_file.write_bytes(b"SQLite format 3\x00" + b"x" * 5000)
    code, said = doctor()
    assert (code, "the search index is damaged" in said) == (1, True)
    assert doctor("--repair")[0] == 0
    assert SearchIndex(folder.index_file).unsound() == ""


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("no yaml: [", "line 3: did not find expected node content"),
        ("status: perhaps", "its status is neither active nor closed"),
        ("slice_id: 2001-01-01-0101\nstatus: closed", "its slice_id is another slice's"),
    ],
)
def test_front_matter_is_named_and_left_alone(doctor, folder, two, damage, what):
    core = core_file(two[0].slice_id)
    write(folder, core, f"---\n{damage}\n---\n\n## Turn aaaaaa\n")
    before = folder.read(core)
    for arguments in ((), ("--repair",)):
        code, said = doctor(*arguments)
        assert code == 1
        assert f"{core}: {what}" in said
        assert "Mend the front matter in an editor." in said
    assert folder.read(core) == before


def test_bytes_that_are_no_text_are_named_and_left_alone(doctor, folder, two):
    core = core_file(two[0].slice_id)
    (folder.root / core).write_bytes(b"---\n\xff\xfe\n---\n")
    code, said = doctor("--repair")
    assert (code, f"{core}: it is not UTF-8" in said) == (1, True)
    assert folder.read(core) == b"---\n\xff\xfe\n---\n"


def test_merges_are_named_left_alone_and_nothing_is_guessed(doctor, folder, two):
    core = core_file(two[0].slice_id)
    write(folder, MERGES, "{")
    write(folder, core, folder.read(core).decode() + "\n## Turn x\nlost\n")
    strands = folder.read(STRANDS)
    code, said = doctor("--repair")
    assert code == 1
    assert f"git checkout -- {MERGES}" in said
    assert (folder.read(MERGES), folder.read(STRANDS)) == (b"{", strands)
    assert "lost" not in folder.read(core).decode()


def test_a_card_out_of_shape_is_its_owner_s(doctor, folder):
    write(folder, CARD, "no card at all")
    code, said = doctor("--repair")
    assert (code, f"{CARD}: " in said, "on the card page" in said) == (1, True, True)
    assert folder.read(CARD) == b"no card at all"


@pytest.mark.parametrize("relative", [CARD, STRANDS, "core"])
def test_a_link_is_named_and_not_followed(doctor, folder, two, tmp_path, relative):
    path = folder.root / (core_file(two[0].slice_id) if relative == "core" else relative)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    code, said = doctor("--repair")
    assert (code, "it is a symbolic link" in said) == (1, True)
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_a_lost_object_is_named(doctor, folder, two):
    pack = next((folder.root / ".git" / "objects").rglob("*.pack"), None)
    loose = next(path for path in (folder.root / ".git" / "objects").glob("??/*"))
    (pack or loose).unlink()
    loose.unlink(missing_ok=True)
    code, said = doctor()
    assert (code, "git fsck: " in said, "from a backup" in said) == (1, True, True)


def test_what_is_under_way_is_named(doctor, folder):
    git(folder.root, "checkout", "-q", "--detach")
    code, said = doctor()
    assert (code, "git is in the middle of something: detached" in said) == (1, True)


def test_an_old_lock_is_named_and_left(doctor, folder):
    lock = folder.root / ".git" / "HEAD.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    code, said = doctor()
    assert (code, ".git/HEAD.lock: a lock that is not ours" in said) == (1, True)
    assert lock.exists()


def test_a_newer_format_is_named_and_nothing_is_written(doctor, folder):
    config = folder.root / ".git" / "config"
    config.write_text(config.read_text().replace("format = 1", "format = 2"))
    write(folder, STRANDS, "{")
    before = files(folder)
    code, said = doctor("--repair")
    assert (code, "has format 2; this version reads up to 1. Upgrade Previously" in said) == (1, True)
    assert files(folder) == before


def test_files_without_a_repository_are_named(doctor, folder):
    (folder.root / ".git").rename(folder.root.parent.parent / "git-elsewhere")
    code, said = doctor()
    assert (code, "it has files but no git repository" in said) == (1, True)


def test_a_folder_of_nobody_is_named(doctor, folder, data_dir):
    (data_dir / "folders" / "5c0f8f0e-0000-4000-8000-000000000000").mkdir()
    code, said = doctor()
    assert (code, "folders/5c0f8f0e-0000-4000-8000-000000000000: no account has this folder" in said) == (1, True)


def test_somebody_unknown_is_said(doctor, folder):
    assert doctor("bob@example.org") == (
        1,
        "There is no account bob@example.org. Give an e-mail address or the id in its folder's name.",
    )
    assert "There is no account not-an-id" in doctor("not-an-id")[1]


def test_the_model_is_asked(doctor, folder, previously, model_server):
    tasks.model_server.cache_clear()
    previously(model="talker", model_url=model_server.url)
    assert "model:" not in doctor()[1]
    tasks.model_server.cache_clear()
    previously(model="talker", model_url="http://127.0.0.1:1/v1")
    code, said = doctor()
    assert (code, "server: model: the model server cannot be reached. Check PREVIOUSLY_MODEL_URL" in said) == (1, True)
    tasks.model_server.cache_clear()
    model_server.rules(Rule(path="/models", answers=[Answer(status=200, body={"data": [{"id": "other"}]})]))
    previously(model="talker", model_url=model_server.url)
    assert "Set PREVIOUSLY_MODEL to one of: other" in doctor()[1]
    tasks.model_server.cache_clear()


def test_a_broker_that_is_gone_is_said(doctor, folder, previously, settings):
    from previously_site import celery_app

    previously(broker_url="redis://127.0.0.1:1/0")
    working, celery_app.conf.broker_url = celery_app.conf.broker_url, "redis://127.0.0.1:1/0"
    try:
        assert "server: broker: " in doctor()[1]
    finally:
        celery_app.conf.broker_url = working


def test_a_database_that_is_gone_ends_it_at_once(doctor, folder, monkeypatch):
    def gone(*_: object) -> None:
        raise DatabaseError("connection refused")

    monkeypatch.setattr("memory.management.commands.doctor.MigrationExecutor", gone)
    code, said = doctor()
    assert code == 1
    assert "server: database: connection refused. Check PREVIOUSLY_DATABASE_URL" in said


def test_a_full_disk_is_said_and_breaks_nothing(doctor, folder, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write(folder, STRANDS, json.dumps({}))
    before = files(folder)
    monkeypatch.setattr("memory.folder.flushed.os.fsync", full)
    code, said = doctor("--repair")
    assert (code, "could not be mended" in said) == (1, True)
    assert files(folder) == before


def test_people_may_talk_meanwhile(doctor, folder, alice):
    keep(alice, utc_now() - timedelta(minutes=1), ("cccccc", "And now?", None), active=True)
    assert doctor()[0] == 0
