"""Commits, the index and the state of HEAD, with a real git; the person's own git is played by `person`."""

import os
import stat
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.folder import git
from memory.folder.errors import BranchMoved, ForeignOwner, GitError, HeadBusy, NewerFormat, NotThere, Outside
from memory.folder.git import Change, Repository

AT = datetime(2026, 8, 10, 21, 30, 22, 811000, tzinfo=UTC)
CORE = "memory/episodic/slices/2026/08/10/2130/timeline/core.md"


@pytest.fixture
def alice(tmp_path: Path) -> Repository:
    """Alice's new repository."""
    git.create(tmp_path / "folders" / "alice")
    return Repository(tmp_path / "folders" / "alice", tmp_path / "run" / "alice")


def person(repository: Repository, *arguments: str, check: bool = True) -> str:
    """What a person's own git prints."""
    command = ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.org", *arguments]
    return subprocess.run(command, cwd=repository.root, check=check, capture_output=True, text=True).stdout


def write(repository: Repository, path: str, content: bytes) -> Change:
    """A change that is in the work tree too."""
    file = repository.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return Change(path, content)


def commit(repository: Repository, *changes: Change, message: str = "turn mVhV2g: hello") -> str:
    """A commit on top of what is there, with the index brought up to it."""
    made = repository.commit(changes, message, parent=repository.head(), at=AT)
    blobs = {change.path: git.blob_id(change.content) if change.content is not None else None for change in changes}
    assert repository.refresh_index(blobs)
    return made


def test_it_works(alice: Repository) -> None:
    made = commit(alice, write(alice, CORE, b"hello\n"))
    assert alice.head() == made == person(alice, "rev-parse", "HEAD").strip()
    assert person(alice, "show", f"HEAD:{CORE}") == "hello\n"
    assert person(alice, "status", "--porcelain") == ""
    assert alice.fsck() == []


def test_a_folder_named_from_here(alice: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(alice.root.parents[1])
    here = Repository(Path("folders/alice"), Path("run/alice"))
    commit(here, write(here, CORE, b"hello\n"))
    assert here.status() == []


def test_a_new_repository_contents_git(alice: Repository) -> None:
    assert alice.head() is None
    assert alice.format() == 1
    assert alice.fsck() == []
    assert alice.status() == []
    assert alice.log() == []
    assert person(alice, "fsck", "--strict") == ""
    assert "No commits yet" in person(alice, "status")
    assert person(alice, "config", "previously.format") == "1\n"
    for name, value in {
        "gc.auto": "0",
        "maintenance.auto": "false",
        "core.autocrlf": "false",
        "commit.gpgSign": "false",
        "core.quotePath": "false",
    }.items():
        assert person(alice, "config", "--local", name).strip() == value


def test_a_new_repository_is_for_its_owner_alone(alice: Repository) -> None:
    for path in [alice.root, *alice.root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert [path.name for path in alice.root.parent.iterdir()] == ["alice"]


def test_creating_again_changes_nothing_and_never_covers_files(alice: Repository, tmp_path: Path) -> None:
    made = commit(alice, write(alice, CORE, b"hello\n"))
    git.create(alice.root)
    assert alice.head() == made
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.md").write_text("mine")
    with pytest.raises(GitError):
        git.create(tmp_path / "full")
    (tmp_path / ".new-bob").mkdir()
    (tmp_path / ".new-bob" / "half").write_text("left by a killed process")
    git.create(tmp_path / "bob")
    assert Repository(tmp_path / "bob", tmp_path / "run").status() == []


def test_leftovers_of_editors_are_not_untracked_files(alice: Repository) -> None:
    for name in ("core.md~", ".core.md.swp", ".DS_Store", "strands.json.damaged-2026-08-10T213022Z"):
        write(alice, f"memory/{name}", b"x")
    assert alice.status() == []
    write(alice, "memory/note.md", b"x")
    assert alice.status() == ["?? memory/note.md"]


def test_who_and_when(alice: Repository) -> None:
    commit(alice, write(alice, CORE, b"hello\n"))
    shown = person(alice, "log", "--format=%an <%ae> %aI | %cn <%ce> %cI")
    who = "Previously <previously@localhost> 2026-08-10T21:30:22+00:00"
    assert shown.strip() == f"{who} | {who}"


def test_bytes_are_kept_as_they_are(alice: Repository) -> None:
    content = bytes(range(256)) + b"\r\n$Id$\n" + b"data 3\nabc\nfrom main\n"
    write(alice, ".gitattributes", b"* text=auto eol=crlf ident working-tree-encoding=UTF-16\n")
    made = commit(alice, write(alice, CORE, content))
    assert alice.read(made, CORE) == content
    assert alice.blobs([CORE]) == {CORE: git.blob_id(content)}
    assert alice.status() == ["?? .gitattributes"]


@pytest.mark.parametrize(
    "path",
    [
        "memory/a b.md",
        "memory/半程马拉松.md",
        'memory/say "hi".md',
        "memory/back\\slash.md",
        "memory/*?[x].md",
        "-n",
        ":(top)x",
    ],
)
def test_any_path_is_only_a_path(alice: Repository, path: str) -> None:
    commit(alice, write(alice, "memory/other.md", b"other\n"))
    made = commit(alice, write(alice, path, b"hello\n"))
    assert alice.read(made, path) == b"hello\n"
    assert alice.blobs([path, "memory/none.md"]) == {path: git.blob_id(b"hello\n"), "memory/none.md": None}
    assert [entry.id for entry in alice.log(path=path)] == [made]
    assert [file.path for file in alice.show(made).files] == [path]
    assert [file.path for file in alice.show(made, path=path).files] == [path]
    assert alice.status() == []
    commit(alice, Change(path, None))
    assert alice.blobs([path]) == {path: None}
    assert alice.status() == [f"?? {path}"]


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "memory/../../x", ".git/config", "a/.GIT/hooks/x", "a//b", "a\0b"]
)
def test_a_path_that_leaves_the_folder_is_refused(alice: Repository, path: str) -> None:
    commit(alice, write(alice, CORE, b"hello\n"))
    for use in (
        lambda: alice.commit([Change(path, b"x")], "turn a: b", parent=alice.head(), at=AT),
        lambda: alice.refresh_index({path: git.blob_id(b"x")}),
        lambda: alice.blobs([path]),
        lambda: alice.read(alice.head() or "", path),
    ):
        with pytest.raises(Outside):
            use()


@pytest.mark.parametrize(
    ("message", "subject", "body"),
    [
        ("--exec=touch pwned", "--exec=touch pwned", ""),
        ("turn a: one\nfrom 0\nM 100644 inline x", "turn a: one", "from 0\nM 100644 inline x"),
        (
            "turn a: bell\a, escape\x1b[31m, line\u2028end, \u202egnp.exe",
            "turn a: bell , escape [31m, line end, gnp.exe",
            "",
        ),
        ("  \n turn a: 跑步 👩‍🚀\r\n", "turn a: 跑步 👩‍🚀", ""),
        ("turn a: half \ud83d", "turn a: half", ""),
        ("", "", ""),
    ],
)
def test_a_message_is_only_text(alice: Repository, message: str, subject: str, body: str) -> None:
    commit(alice, write(alice, CORE, b"hello\n"), message=message)
    assert alice.log()[0].subject == subject
    assert person(alice, "log", "--format=%b").strip() == body
    assert person(alice, "ls-files").split() == [CORE]
    assert not (alice.root / "pwned").exists()
    assert alice.fsck() == []


def test_the_environment_and_configuration_of_others_take_no_part(
    alice: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-commit", "post-index-change", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "gitconfig").write_text(
        f"[core]\n hooksPath={hooks}\n[user]\n name=Eve\n[core]\n excludesFile={tmp_path}/all\n"
    )
    (tmp_path / "all").write_text("*\n")
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", elsewhere], check=True)
    for name, value in {
        "GIT_DIR": f"{elsewhere}/.git",
        "GIT_WORK_TREE": str(elsewhere),
        "GIT_INDEX_FILE": f"{elsewhere}/index",
        "GIT_CONFIG_GLOBAL": f"{tmp_path}/gitconfig",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(hooks),
        "GIT_AUTHOR_NAME": "Eve",
        "GIT_COMMITTER_NAME": "Eve",
        "GIT_NAMESPACE": "eve",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "")
    commit(alice, write(alice, CORE, b"hello\n"))
    write(alice, "memory/new.md", b"x")
    assert alice.status() == ["?? memory/new.md"]
    alice.upkeep()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert person(alice, "log", "--format=%an %cn") == "Previously Previously\n"
    assert not (tmp_path / "ran").exists()
    assert not (elsewhere / "index").exists()


def test_hooks_and_settings_of_the_repository_itself_take_no_part(alice: Repository, tmp_path: Path) -> None:
    hooks = alice.root / ".git" / "hooks"
    hooks.mkdir()
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    (hooks / "reference-transaction").chmod(0o755)
    (tmp_path / "spy").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "spy").chmod(0o755)
    for name, value in {
        "core.fsmonitor": f"{tmp_path}/spy",
        "diff.external": f"{tmp_path}/spy",
        "core.worktree": "/",
    }.items():
        person(alice, "config", name, value)
    made = commit(alice, write(alice, CORE, b"hello\n"))
    assert alice.status() == []
    assert alice.show(made).files[0].path == CORE
    assert not (tmp_path / "ran").exists()


def test_a_repository_is_never_looked_for_further_up(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "data").mkdir()
    with pytest.raises(NotThere):
        Repository(tmp_path / "data", tmp_path / "run").status()
    (tmp_path / "data" / ".git").mkdir()
    (tmp_path / "data" / ".git" / "config").write_text("")
    (tmp_path / "data" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(GitError):
        Repository(tmp_path / "data", tmp_path / "run").status()


def test_a_branch_that_moved_refuses_the_commit(alice: Repository) -> None:
    first = commit(alice, write(alice, CORE, b"1\n"))
    with pytest.raises(BranchMoved):
        alice.commit([Change(CORE, b"x\n")], "turn a: b", parent=None, at=AT)
    second = commit(alice, write(alice, CORE, b"2\n"))
    with pytest.raises(BranchMoved):
        alice.commit([Change(CORE, b"x\n")], "turn a: b", parent=first, at=AT)
    person(alice, "reset", "-q", "--hard", first)
    with pytest.raises(BranchMoved):
        alice.commit([Change(CORE, b"x\n")], "turn a: b", parent=second, at=AT)
    assert alice.head() == first


def test_git_itself_refuses_when_the_branch_moves_after_our_look(
    alice: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A git that lets another commit win just before it does its own work.
    first = commit(alice, write(alice, CORE, b"1\n"))
    (tmp_path / "bin").mkdir()
    real = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "bin" / "git").write_text(
        f"#!/bin/sh\n{real} -C {alice.root} -c user.name=A -c user.email=a@b commit -q --allow-empty -m between\n"
        f'exec {real} "$@"\n'
    )
    (tmp_path / "bin" / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        with pytest.raises(BranchMoved):
            alice.commit([Change(CORE, b"2\n")], "turn a: b", parent=first, at=AT)
    assert [entry.subject for entry in alice.log()] == ["between", "turn mVhV2g: hello"]


def test_two_writers_lose_no_commit(alice: Repository) -> None:
    def work(name: str) -> None:
        for number in range(15):
            change = Change(f"memory/{name}-{number}.md", b"x")
            while True:
                try:
                    alice.commit([change], f"{name} {number}", parent=alice.head(), at=AT)
                    break
                except GitError:  # the other one was first, or holds the branch this moment
                    continue

    writers = [threading.Thread(target=work, args=(name,)) for name in ("first", "second")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    made = [entry.subject for entry in alice.log(limit=100)]
    assert sorted(made) == sorted(f"{name} {number}" for name in ("first", "second") for number in range(15))
    assert len(person(alice, "ls-tree", "-r", "--name-only", "HEAD").split()) == 30
    assert alice.fsck() == []


def test_a_commit_is_one_pack_and_an_empty_one_too(alice: Repository) -> None:
    commit(alice, write(alice, CORE, b"1\n"))
    commit(alice)
    assert len(list((alice.root / ".git/objects/pack").glob("*.pack"))) == 2
    assert not list((alice.root / ".git/objects").glob("[0-9a-f][0-9a-f]"))


def test_the_branch_that_head_names_takes_the_commit(alice: Repository) -> None:
    first = commit(alice, write(alice, CORE, b"1\n"))
    person(alice, "checkout", "-q", "-b", "diary/2026")
    second = commit(alice, write(alice, CORE, b"2\n"))
    assert person(alice, "rev-parse", "main", "diary/2026").split() == [first, second]
    person(alice, "pack-refs", "--all")
    assert alice.head() == second
    third = commit(alice, write(alice, CORE, b"3\n"))
    assert alice.head() == third
    person(alice, "branch", "-m", "main", "old")
    person(alice, "checkout", "-q", "old")
    assert alice.head() == first
    person(alice, "checkout", "-q", "--orphan", "fresh")
    assert alice.head() is None


def test_head_busy(alice: Repository) -> None:
    first = commit(alice, write(alice, CORE, b"1\n"))
    second = commit(alice, write(alice, CORE, b"2\n"))
    person(alice, "checkout", "-q", "-b", "other", first)
    commit(alice, write(alice, CORE, b"other\n"))
    for command, undo, why in (
        (["checkout", "-q", second], ["checkout", "-q", "other"], "detached"),
        (["merge", "main"], ["merge", "--abort"], "merge"),
        (["rebase", "main"], ["rebase", "--abort"], "rebase"),
        (["cherry-pick", second], ["cherry-pick", "--abort"], "cherry-pick"),
        (["revert", second], ["revert", "--abort"], "revert"),
        (["bisect", "start"], ["bisect", "reset"], "bisect"),
    ):
        person(alice, *command, check=False)
        assert alice.busy() == why
        for use in (alice.head, lambda: alice.commit([], "turn a: b", parent=second, at=AT)):
            with pytest.raises(HeadBusy) as refused:
                use()
            assert refused.value.why == why
        assert alice.log(limit=1)[0].subject == "turn mVhV2g: hello"
        person(alice, *undo)
        assert alice.busy() is None


def test_the_index_is_refreshed_without_reading_the_work_tree(alice: Repository) -> None:
    commit(alice, write(alice, CORE, b"1\n"), write(alice, "memory/gone.md", b"x"))
    change = write(alice, CORE, b"2\n")
    (alice.root / "memory/gone.md").unlink()
    alice.commit([change, Change("memory/gone.md", None)], "turn a: b", parent=alice.head(), at=AT)
    write(alice, CORE, b"2\nand by hand\n")
    assert alice.refresh_index({CORE: git.blob_id(b"2\n"), "memory/gone.md": None})
    assert alice.status() == [f" M {CORE}"]
    assert person(alice, "diff", "--cached") == ""


def test_an_index_that_somebody_holds_is_left_for_later(alice: Repository) -> None:
    change = write(alice, CORE, b"1\n")
    (alice.root / ".git/index.lock").touch()
    made = alice.commit([change], "turn a: b", parent=None, at=AT)
    assert alice.head() == made
    assert not alice.refresh_index({CORE: git.blob_id(b"1\n")})
    assert not alice.rebuild_index()
    (alice.root / ".git/index.lock").unlink()
    assert alice.refresh_index({CORE: git.blob_id(b"1\n")})
    assert alice.status() == []


@pytest.mark.parametrize("index", [b"", b"garbage"])
def test_a_damaged_index_is_rebuilt(alice: Repository, index: bytes) -> None:
    commit(alice, write(alice, CORE, b"1\n"))
    (alice.root / ".git/index").write_bytes(index)
    with pytest.raises(GitError):
        alice.refresh_index({CORE: git.blob_id(b"1\n")})
    assert alice.rebuild_index()
    assert alice.status() == []


def test_rebuilding_an_index_before_the_first_commit_empties_it(alice: Repository) -> None:
    write(alice, CORE, b"1\n")
    person(alice, "add", CORE)
    assert alice.rebuild_index()
    assert alice.status() == [f"?? {CORE}"]


def test_a_newer_format_is_refused(alice: Repository) -> None:
    person(alice, "config", "previously.format", "2")
    with pytest.raises(NewerFormat):
        alice.head()
    person(alice, "config", "previously.format", "two")
    with pytest.raises(GitError):
        alice.head()


def test_a_git_file_or_link_is_refused(alice: Repository, tmp_path: Path) -> None:
    commit(alice, write(alice, CORE, b"1\n"))
    person(alice, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").symlink_to(alice.root / ".git")
    for name in ("tree", "linked"):
        with pytest.raises(GitError):
            Repository(tmp_path / name, tmp_path / "run").head()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to somebody else")
@pytest.mark.parametrize("owned", [".", ".git"])
def test_a_foreign_owner_is_named(alice: Repository, owned: str) -> None:
    commit(alice, write(alice, CORE, b"1\n"))
    os.chown(alice.root / owned, 12345, 12345)
    with pytest.raises(ForeignOwner, match=str(alice.root)):
        alice.commit([], "turn a: b", parent=None, at=AT)
    os.chown(alice.root / owned, os.geteuid(), os.getegid())
    commit(alice, write(alice, CORE, b"2\n"))


@pytest.mark.parametrize("head", ["ref: refs/heads/../../config", "nonsense", ""])
def test_a_damaged_head_commits_nothing(alice: Repository, head: str) -> None:
    (alice.root / ".git/HEAD").write_text(head)
    with pytest.raises(GitError):
        alice.commit([Change(CORE, b"x")], "turn a: b", parent=None, at=AT)


def test_no_process_or_pipe_is_left(alice: Repository) -> None:
    commit(alice, write(alice, CORE, b"1\n"))
    before = set(os.listdir("/proc/self/fd"))
    for number in range(5):
        commit(alice, write(alice, CORE, b"%d\n" % number))
        alice.show(alice.head() or "")
    assert set(os.listdir("/proc/self/fd")) == before
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert [pid for pid in children if "git" in Path(f"/proc/{pid}/comm").read_text()] == []
