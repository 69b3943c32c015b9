"""Reading the past, and upkeep that never changes it."""

import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.folder import git, history
from memory.folder.errors import NotThere
from memory.folder.git import Change, Commit, DiffLine, FileDiff, Repository

AT = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
CARD = "memory/previously.md"
UNKNOWN = "1" * 40


@pytest.fixture
def alice(tmp_path: Path) -> Repository:
    """Alice's new repository."""
    git.create(tmp_path / "alice")
    return Repository(tmp_path / "alice", tmp_path / "run")


def commit(repository: Repository, path: str, content: bytes | None, *, minute: int = 0) -> str:
    """One more commit, named after the minute."""
    at = AT + timedelta(minutes=minute)
    return repository.commit([Change(path, content)], f"turn {minute}", parent=repository.head(), at=at)


def person(repository: Repository, *arguments: str) -> str:
    """What a person's own git prints."""
    command = ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.org", *arguments]
    return subprocess.run(command, cwd=repository.root, check=True, capture_output=True, text=True).stdout


def test_it_works(alice: Repository) -> None:
    first = commit(alice, CARD, b"# Previously on Alice\n", minute=1)
    second = commit(alice, "memory/a.md", b"a\n", minute=2)
    assert alice.log() == [
        Commit(second, AT + timedelta(minutes=2), "turn 2"),
        Commit(first, AT + timedelta(minutes=1), "turn 1"),
    ]


def test_pages_follow_each_other_without_gap_or_overlap(alice: Repository) -> None:
    made = [commit(alice, f"memory/{minute % 3}.md", b"%d" % minute, minute=minute) for minute in range(10)]
    made.reverse()
    pages, before = [], None
    while page := alice.log(limit=4, before=before):
        pages.append([entry.id for entry in page])
        before = page[-1].id
    assert pages == [made[:4], made[4:8], made[8:]]
    assert [entry.subject for entry in alice.log(path="memory/1.md", limit=2)] == ["turn 7", "turn 4"]
    assert [entry.subject for entry in alice.log(path="memory/1.md", before=made[4])] == ["turn 4", "turn 1"]
    assert [entry.subject for entry in alice.log(path="memory", limit=1)] == ["turn 9"]
    assert alice.log(path="memory/none.md") == []


def test_a_persons_merge_is_one_commit_of_the_line(alice: Repository) -> None:
    first = commit(alice, CARD, b"1\n", minute=1)
    second = commit(alice, CARD, b"2\n", minute=2)
    alice.rebuild_index()
    person(alice, "checkout", "-q", "-f", "-b", "side", first)
    person(alice, "commit", "-q", "--allow-empty", "-m", "aside")
    (alice.root / "memory/side.md").write_text("side\n")
    person(alice, "add", ".")
    person(alice, "commit", "-q", "-m", "by hand")
    person(alice, "checkout", "-q", "main")
    person(alice, "merge", "-q", "-m", "merged", "side")
    log = alice.log()
    assert [entry.subject for entry in log] == ["merged", "turn 2", "turn 1"]
    assert [entry.id for entry in alice.log(before=log[0].id)] == [second, first]
    assert alice.show(log[0].id).files == (FileDiff("memory/side.md", "added", (DiffLine("add", "side"),)),)


def test_a_diff_is_readable(alice: Repository) -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    commit(alice, CARD, "\n".join(lines).encode() + b"\n")
    lines[1], lines[20] = "-- a/removed", "## 跑步\x00\r"
    made = commit(alice, CARD, "\n".join(lines).encode() + b"\n\nlast", minute=1)
    assert alice.show(made).files == (
        FileDiff(
            CARD,
            "changed",
            (
                DiffLine("context", "line 1"),
                DiffLine("remove", "line 2"),
                DiffLine("add", "-- a/removed"),
                DiffLine("context", "line 3"),
                DiffLine("context", "line 4"),
                DiffLine("context", "line 5"),
                DiffLine("gap", ""),
                DiffLine("context", "line 18"),
                DiffLine("context", "line 19"),
                DiffLine("context", "line 20"),
                DiffLine("remove", "line 21"),
                DiffLine("add", "## 跑步\x00\r"),
                DiffLine("context", "line 22"),
                DiffLine("context", "line 23"),
                DiffLine("context", "line 24"),
                DiffLine("gap", ""),
                DiffLine("context", "line 28"),
                DiffLine("context", "line 29"),
                DiffLine("context", "line 30"),
                DiffLine("add", ""),
                DiffLine("add", "last"),
            ),
        ),
    )


def test_added_removed_and_empty_files(alice: Repository) -> None:
    first = alice.commit([Change("a.md", b"diff --git a/x b/x\n"), Change("空 \t.md", b"")], "both", parent=None, at=AT)
    assert alice.show(first).files == (
        FileDiff("a.md", "added", (DiffLine("add", "diff --git a/x b/x"),)),
        FileDiff("空 \t.md", "added", ()),
    )
    assert [file.path for file in alice.show(first, path="a.md").files] == ["a.md"]
    assert alice.show(first, path="none.md").files == ()
    second = commit(alice, "a.md", None)
    assert alice.show(second).files == (FileDiff("a.md", "removed", (DiffLine("remove", "diff --git a/x b/x"),)),)
    assert not alice.show(second).cut


def test_a_huge_diff_is_cut(alice: Repository) -> None:
    content = b"".join(b"%d\n" % number for number in range(history.DIFF_BYTES // 5))
    view = alice.show(commit(alice, CARD, content))
    assert view.cut
    assert view.commit.subject == "turn 0"
    assert view.files[0].path == CARD
    shown = [line.text for line in view.files[0].lines]
    assert shown == [str(number) for number in range(len(shown))]
    assert len(shown) > 100_000


def test_a_file_as_it_was(alice: Repository) -> None:
    first = commit(alice, CARD, b"first\r\n\0")
    second = commit(alice, CARD, b"")
    assert alice.read(first, CARD) == b"first\r\n\0"
    assert alice.read(second, CARD) == b""
    for commit_id, path in ((first, "none.md"), (first, "memory"), (UNKNOWN, CARD), (first, "a\nb")):
        with pytest.raises(NotThere):
            alice.read(commit_id, path)
    assert alice.blobs([CARD], at=first) == {CARD: git.blob_id(b"first\r\n\0")}


def test_what_changed_between(alice: Repository) -> None:
    first = commit(alice, CARD, b"1\n")
    commit(alice, "memory/跑.md", b"x\n")
    last = commit(alice, CARD, b"2\n")
    assert alice.changed(first, last) == [CARD, "memory/跑.md"]
    assert alice.changed(last, last) == []
    assert alice.is_ancestor(first, last)
    assert alice.is_ancestor(last, last)
    assert not alice.is_ancestor(last, first)
    assert not alice.is_ancestor(UNKNOWN, last)


@pytest.mark.parametrize("revision", ["HEAD", "main", "--all", "", UNKNOWN, "HEAD^{tree}", "@{0}", "A" * 40])
def test_only_full_ids_of_commits_are_revisions(alice: Repository, revision: str) -> None:
    made = commit(alice, CARD, b"1\n")
    for use in (
        lambda: alice.show(revision),
        lambda: alice.read(revision, CARD),
        lambda: alice.changed(revision, made),
        lambda: alice.log(before=revision),
    ):
        with pytest.raises(NotThere):
            use()


def test_a_tree_is_no_commit(alice: Repository) -> None:
    commit(alice, CARD, b"1\n")
    with pytest.raises(NotThere):
        alice.show(person(alice, "rev-parse", "HEAD^{tree}").strip())


def test_upkeep_packs_and_keeps_everything(alice: Repository) -> None:
    made = [commit(alice, f"memory/{minute % 4}.md", b"%d\n" % minute, minute=minute) for minute in range(12)]
    (alice.root / "loose.md").write_text("a person's own commit\n")
    alice.rebuild_index()
    person(alice, "add", "loose.md")
    unreachable = person(alice, "hash-object", "-w", "--stdin").strip()
    before = alice.log(limit=100)
    alice.upkeep()
    assert len(list((alice.root / ".git/objects/pack").glob("*.pack"))) < 4
    assert alice.log(limit=100) == before
    assert [entry.id for entry in alice.log(path="memory/1.md")] == [made[9], made[5], made[1]]
    assert person(alice, "commit-graph", "verify", "--no-progress") == ""
    assert person(alice, "cat-file", "-t", unreachable) == "blob\n"
    assert alice.fsck() == []
    head = commit(alice, CARD, b"after\n", minute=20)
    alice.upkeep()
    assert alice.log(path=CARD)[0].id == head
    assert alice.fsck() == []


def test_upkeep_before_the_first_commit_does_nothing(alice: Repository) -> None:
    alice.upkeep()
    assert alice.fsck() == []


def test_commits_go_on_during_upkeep(alice: Repository) -> None:
    commit(alice, CARD, b"0")
    done = threading.Event()

    def keep_up() -> None:
        while not done.is_set():
            alice.upkeep()

    upkeep = threading.Thread(target=keep_up)
    upkeep.start()
    try:
        made = [commit(alice, f"memory/{minute}.md", b"%d" % minute, minute=minute) for minute in range(1, 60)]
    finally:
        done.set()
        upkeep.join()
    assert [entry.id for entry in alice.log(limit=100)][:-1] == made[::-1]
    assert alice.fsck() == []


def test_fsck_says_what_is_missing(alice: Repository) -> None:
    commit(alice, CARD, b"1\n")
    for pack in (alice.root / ".git/objects/pack").iterdir():
        pack.unlink()
    assert alice.fsck()
