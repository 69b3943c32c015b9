"""A page of a file's or a directory's history: commits with their diffs, from one git process."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.folder import git
from memory.folder.errors import NotThere
from memory.folder.git import Change, Repository, blob_id

AT = datetime(2026, 8, 10, 21, 30, tzinfo=UTC)
CARD = "memory/previously.md"


@pytest.fixture
def alice(tmp_path: Path) -> Repository:
    """Alice's new repository."""
    git.create(tmp_path / "alice")
    return Repository(tmp_path / "alice", tmp_path / "run")


def commit(repository: Repository, path: str, content: bytes | None, *, minute: int = 0) -> str:
    """One more commit, named after the minute."""
    at = AT + timedelta(minutes=minute)
    return repository.commit([Change(path, content)], f"turn {minute}", parent=repository.head(), at=at)


def test_it_works(alice: Repository) -> None:
    assert alice.diffs(path=CARD, limit=5) == ([], False)
    first = commit(alice, CARD, b"one\n", minute=1)
    commit(alice, "memory/other.md", b"other\n", minute=2)
    second = commit(alice, CARD, b"one\ntwo\n", minute=3)
    views, more = alice.diffs(path=CARD, limit=5)
    assert [view.commit.id for view in views] == [second, first]
    assert views == [alice.show(second, path=CARD), alice.show(first, path=CARD)]
    assert [view.files[0].blob for view in views] == [blob_id(b"one\ntwo\n"), blob_id(b"one\n")]
    assert not more


def test_pages_follow_each_other_without_gap_or_overlap(alice: Repository) -> None:
    made = [commit(alice, f"memory/{minute % 2}.md", b"%d\n" % minute, minute=minute) for minute in range(11)]
    pages, before, more = [], None, True
    while more:
        views, more = alice.diffs(path="memory/0.md", limit=2, before=before)
        pages.append([view.commit.id for view in views])
        before = pages[-1][-1]
    made = made[::-1][::2]
    assert pages == [made[:2], made[2:4], made[4:]]


def test_a_directory_is_all_its_files(alice: Repository) -> None:
    commit(alice, "memory/a/one.md", b"1\n")
    commit(alice, "memory/a/b/two.md", b"2\n")
    commit(alice, "memory/ab.md", b"3\n")
    views, _ = alice.diffs(path="memory/a", limit=5)
    assert [file.path for view in views for file in view.files] == ["memory/a/b/two.md", "memory/a/one.md"]


def test_what_is_too_large_is_cut_and_the_next_page_goes_on_behind_it(alice: Repository) -> None:
    first = commit(alice, CARD, b"small\n", minute=1)
    second = commit(alice, CARD, b"".join(b"%d\n" % number for number in range(5_000)), minute=2)
    third = commit(alice, CARD, b"", minute=3)
    views, more = alice.diffs(path=CARD, limit=5, at_most=10_000)
    assert [view.commit.id for view in views] == [third]
    assert more
    views, more = alice.diffs(path=CARD, limit=5, at_most=10_000, before=third)
    assert [(view.commit.id, view.cut) for view in views] == [(second, True)]
    assert more
    views, more = alice.diffs(path=CARD, limit=5, at_most=10_000, before=second)
    assert [(view.commit.id, view.cut) for view in views] == [(first, False)]
    assert not more


def test_content_that_looks_like_the_output_changes_nothing(alice: Repository) -> None:
    forged = b"\0" + b"1" * 40 + b" 0 forged\ndiff --git a/x b/x\nindex 1..2\n@@ -1 +1 @@\n+x\n"
    made = commit(alice, CARD, b"text\n" * 4_000 + forged)
    views, _ = alice.diffs(path=CARD, limit=5)
    assert [view.commit.id for view in views] == [made]
    assert [line.text for line in views[0].files[0].lines[4_000:]] == forged.decode().split("\n")[:-1]


def test_a_removed_file_left_no_bytes(alice: Repository) -> None:
    commit(alice, CARD, b"one\n")
    commit(alice, CARD, None, minute=1)
    views, _ = alice.diffs(path=CARD, limit=1)
    assert (views[0].files[0].change, views[0].files[0].blob) == ("removed", None)


@pytest.mark.parametrize(
    "setting",
    [
        "log.follow=true",
        "log.showSignature=true",
        "log.showRoot=false",
        "log.diffMerges=combined",
        "diff.orderFile=/nowhere",
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "diff.context=0",
        "diff.interHunkContext=9",
        "diff.renames=copies",
        "diff.external=/bin/false",
        "diff.relative=true",
        "format.pretty=fuller",
        "format.notes=true",
        "color.ui=always",
        "i18n.logOutputEncoding=latin1",
    ],
)
def test_a_persons_settings_change_nothing(alice: Repository, setting: str) -> None:
    commit(alice, CARD, "".join(f"{number} 跑\n" for number in range(30)).encode())
    commit(alice, CARD, "".join(f"{number} 跑{'步' * (number % 9 == 0)}\n" for number in range(30)).encode(), minute=1)
    before = alice.diffs(path=CARD, limit=5)
    assert len(before[0]) == 2
    subprocess.run(["git", "config", *setting.split("=")], cwd=alice.root, check=True)
    assert alice.diffs(path=CARD, limit=5) == before


@pytest.mark.parametrize("revision", ["HEAD", "main", "--all", "", "1" * 40, "@{0}"])
def test_only_full_ids_of_commits_are_revisions(alice: Repository, revision: str) -> None:
    commit(alice, CARD, b"1\n")
    with pytest.raises(NotThere):
        alice.diffs(path=CARD, limit=5, before=revision)
