"""A memory taken along: the zip holds every file as of the last commit, and a bundle with the whole history."""

import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from memory.folder.errors import GitError
from memory.folder.export import export
from tests.conversation.talk import BEGIN, Talk


def git(place: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Alice", "-c", "user.email=alice@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=place, check=True, capture_output=True, text=True)
    return done.stdout


def exported(talk: Talk) -> zipfile.ZipFile:
    data = b"".join(export(talk.folder.repository, now=BEGIN))
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    return archive


def files_below(root: Path) -> dict[str, bytes]:
    """Every file that is not git's own, by its path from the root."""
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def test_it_works(tmp_path):
    talk = Talk(tmp_path)
    for words in ("Oak or stone? 橡木 🌳", "Oak, then.\r\n---\n## Turn x", "\ud800 ​ \u202e"):
        talk.say(words)
    archive = exported(talk)
    archive.extractall(tmp_path / "out")
    there = files_below(talk.folder.root)
    assert len(there) >= 2
    assert files_below(tmp_path / "out" / "folder") == there

    git(tmp_path, "clone", "-q", str(tmp_path / "out" / "history.bundle"), "again")
    again = tmp_path / "again"
    assert files_below(again) == there
    assert git(again, "log", "--format=%H %s") == git(talk.folder.root, "log", "--format=%H %s")
    assert git(again, "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    git(again, "fsck", "--strict")


def test_names_are_safe_on_any_system(tmp_path):
    talk = Talk(tmp_path)
    talk.say("Hello")
    root = talk.folder.root
    for name in ("a\\b.txt", "a_b.txt", "c:d", "Ärger 注意.md", "-rf"):
        (root / name).write_text(name)
    (root / "away").symlink_to("/etc/passwd")
    git(root, "add", ".")
    git(root, "commit", "-qm", "odd names")
    archive = exported(talk)
    names = archive.namelist()
    assert len(names) == len(set(names))
    assert {"folder/a_b.txt", "folder/a_b.txt_", "folder/c_d", "folder/Ärger 注意.md", "folder/-rf"} < set(names)
    for info in archive.infolist():
        assert not info.filename.startswith("/")
        assert "\\" not in info.filename
        assert ".." not in info.filename.split("/")
        assert info.filename.isascii() or info.flag_bits & 0x800
        assert info.external_attr >> 16 == 0o600
    assert archive.read("folder/away") == b"/etc/passwd"


def test_attributes_of_a_persons_own_take_nothing_out(tmp_path):
    talk = Talk(tmp_path)
    talk.say("Hello")
    root = talk.folder.root
    (root / ".gitattributes").write_text("*.md export-ignore\n*.txt export-subst text eol=crlf\n")
    (root / "note.txt").write_text("$Format:%H$\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "attributes")
    archive = exported(talk)
    assert archive.read("folder/note.txt") == b"$Format:%H$\n"
    assert archive.read("folder/memory/previously.md") == (root / "memory/previously.md").read_bytes()


def test_what_is_not_committed_is_not_in_it(tmp_path):
    talk = Talk(tmp_path)
    said = talk.say("Hello")
    committed = (talk.folder.root / "memory/previously.md").read_bytes()
    (talk.folder.root / "memory/previously.md").write_text("half-way through an edit")
    archive = exported(talk)
    assert archive.read("folder/memory/previously.md") == committed
    assert any(said.slice_id.replace("-", "/")[:10] in name for name in archive.namelist())


def test_nothing_committed_is_no_export(tmp_path):
    talk = Talk(tmp_path)
    talk.receive("Hello")
    with pytest.raises(GitError):
        b"".join(export(talk.folder.repository, now=BEGIN))


def test_a_reader_who_goes_away_ends_git(tmp_path):
    talk = Talk(tmp_path)
    for number in range(3):
        talk.say(f"{number} " + "x" * 200_000)
    pieces = export(talk.folder.repository, now=BEGIN)
    next(pieces)
    pieces.close()
    assert talk.folder.repository.fsck() == []
