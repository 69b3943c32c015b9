"""Reading the past of a folder: who changed what, and how a file once was. Part of the git layer; `git.py` runs git.

Every function takes the runner of a repository, so that this file holds what is asked and how the answer is read.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from .commit_stream import checked, path_bytes
from .errors import GitError, NotThere
from .gitdir import is_oid

DIFF_BYTES = 1_000_000
"""How much of a commit's diff is read; what is left out is said with `CommitView.cut`."""

_FORMAT = "%H %ct %s"
_PATCH = (
    "-p",
    "-U3",
    "--full-index",
    "--diff-merges=first-parent",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
# `git log` is made for people and listens to their settings; these say out loud what no other command here needs.
_PLAIN_LOG = (
    "--first-parent",
    "--no-follow",
    "--no-show-signature",
    "--no-notes",
    "--no-mailmap",
    "--no-relative",
    "--inter-hunk-context=0",
    "--submodule=short",
    "--encoding=UTF-8",
    "-O/dev/null",
)
_FROM_THE_TOP = re.compile(rb"@@ -[01][ ,]")
_INDEX = re.compile(rb"index [0-9a-f]+\.\.([0-9a-f]+)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = dict(zip(b'ntrabfv"\\', b'\n\t\r\a\b\f\v"\\', strict=True))
_KINDS: dict[bytes, Literal["context", "add", "remove"]] = {b" ": "context", b"+": "add", b"-": "remove"}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a git process ended: exit code (negative: killed by that signal), output, and git's own complaint."""

    code: int
    out: bytes
    err: str


class Run(Protocol):
    """Runs git with these arguments. A non-zero exit raises GitError unless `check` is off."""

    def __call__(self, *arguments: str, stdin: bytes = b"", check: bool = True, at_most: int | None = None) -> Ran: ...


@dataclass(frozen=True)
class Commit:
    """One commit: full id, instant (UTC), first line of its message."""

    id: str
    at: datetime
    subject: str


@dataclass(frozen=True)
class DiffLine:
    """A line of a diff; `gap` stands where unchanged lines were left out, and has no text."""

    kind: Literal["context", "add", "remove", "gap"]
    text: str


@dataclass(frozen=True)
class FileDiff:
    """What a commit did to one file."""

    path: str
    change: Literal["added", "removed", "changed"]
    lines: tuple[DiffLine, ...]
    blob: str | None = field(default=None, compare=False)
    """The id of the bytes it left, None when it removed the file."""


@dataclass(frozen=True)
class CommitView:
    """A commit with its diff against its first parent; `cut` when there was more than a page can show."""

    commit: Commit
    files: tuple[FileDiff, ...]
    cut: bool


def log(run: Run, tip: str, *, path: str | None, limit: int, before: str | None) -> list[Commit]:
    """Up to `limit` commits, newest first, from `tip` or from behind `before`; with `path`, those that touched it.

    Only the main line is walked (a person's merge counts as one commit), so that pages never overlap or leave gaps.
    """
    start = tip if before is None else commit_id(before)
    arguments = ["rev-list", "--first-parent", "--no-commit-header", f"--format={_FORMAT}", f"--max-count={limit + 1}"]
    ran = _asked(run, [*arguments, start, *_only(path)], start)
    commits = [_commit(line) for line in ran.out.decode("utf-8", "replace").split("\n") if line]
    return [commit for commit in commits if commit.id != before][:limit]


def diffs(
    run: Run, tip: str, *, path: str, limit: int, before: str | None, at_most: int = DIFF_BYTES
) -> tuple[list[CommitView], bool]:
    """Up to `limit` commits of the main line that touched `path`, newest first, each with its diff of it.

    `before` is the last one of the page before; the second value says whether there are more behind these. All diffs
    together are `at_most` bytes; where that ends, the last commit is `cut` and the next page goes on behind it.
    """
    start = tip if before is None else commit_id(before)
    skipped = 0 if before is None else 1
    arguments = [
        "log",
        f"--format=%x00{_FORMAT}",
        *_PATCH,
        *_PLAIN_LOG,
        f"--max-count={limit + 1}",
        f"--skip={skipped}",
    ]
    ran = _asked(run, [*arguments, start, *_only(path)], start, at_most=at_most)
    cut = len(ran.out) == at_most
    # Each line of a diff has its mark in front, so only a commit's own line begins with NUL.
    sections = re.split(rb"^\0", ran.out, flags=re.MULTILINE)[1:]
    if cut and len(sections) > 1 and b"\n" not in sections[-1]:
        sections.pop()
    views = [_view(section, cut=cut and section is sections[-1]) for section in sections[:limit]]
    return views, cut or len(sections) > limit


def _view(section: bytes, *, cut: bool) -> CommitView:
    head, _, patch = section.partition(b"\n")
    whole_lines = patch[: patch.rfind(b"\n") + 1] if cut else patch
    return CommitView(_commit(head.decode("utf-8", "replace")), _files(whole_lines), cut)


def show(run: Run, commit: str, *, path: str | None) -> CommitView:
    """One commit with its diff, of one path or of all."""
    arguments = ["diff-tree", "--always", "--root", "-r", f"--format={_FORMAT}", *_PATCH]
    ran = _asked(run, [*arguments, commit_id(commit), *_only(path)], commit, at_most=DIFF_BYTES)
    head, _, patch = ran.out.partition(b"\n")
    if not head:
        raise NotThere(f"no commit {commit}")
    whole_lines = patch[: patch.rfind(b"\n") + 1]
    return CommitView(_commit(head.decode("utf-8", "replace")), _files(whole_lines), len(ran.out) == DIFF_BYTES)


def read(run: Run, commit: str, path: str) -> bytes:
    """A file as it was in a commit; raises NotThere."""
    name = path_bytes(path)
    if b"\n" in name:
        raise NotThere(f"no {path!r} in commit {commit}")  # one name a line is asked for
    ran = run("cat-file", "--batch", stdin=b"%s:%s\n" % (commit_id(commit).encode(), name))
    head, _, rest = ran.out.partition(b"\n")
    parts = head.split(b" ")
    if len(parts) != 3 or parts[1] != b"blob":
        raise NotThere(f"no {path} in commit {commit}")
    return rest[: int(parts[2])]


def changed(run: Run, a: str, b: str) -> list[str]:
    """The paths whose bytes differ between two commits, in path order."""
    arguments = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", commit_id(a), commit_id(b), "--"]
    return [path.decode("utf-8", "surrogateescape") for path in _asked(run, arguments, a, b).out.split(b"\0") if path]


def is_ancestor(run: Run, a: str, b: str) -> bool:
    """Whether commit `a` is `b` or lies behind it; False when the repository does not know one of them."""
    ran = run("merge-base", "--is-ancestor", commit_id(a), commit_id(b), check=False)
    if ran.code in (0, 1):
        return ran.code == 0
    if "Not a valid commit name" in ran.err:
        return False
    raise GitError(ran.err)


def commit_id(text: str) -> str:
    """The text if it is a full commit id; raises NotThere, so that nothing else ever reaches git as a revision."""
    if not is_oid(text):
        raise NotThere("no such commit")
    return text


def _only(path: str | None) -> list[str]:
    return ["--"] if path is None else ["--", checked(path)]


def _asked(run: Run, arguments: list[str], *ids: str, at_most: int | None = None) -> Ran:
    try:
        return run(*arguments, at_most=at_most)
    except GitError as error:
        if any(f"bad object {oid}" in str(error) for oid in ids):
            raise NotThere("no such commit") from error
        raise


def _commit(line: str) -> Commit:
    oid, seconds, subject = line.split(" ", 2)
    return Commit(oid, datetime.fromtimestamp(int(seconds), UTC), subject)


def _files(patch: bytes) -> tuple[FileDiff, ...]:
    # No line of content can begin like a file's heading: each has its mark in front.
    return tuple(_file(section.split(b"\n")) for section in re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:])


def _file(section: list[bytes]) -> FileDiff:
    change: Literal["added", "removed", "changed"] = "changed"
    lines: list[DiffLine] = []
    in_hunk = False
    blob = None
    for line in section[1:]:
        if line.startswith(b"@@ "):
            if in_hunk or not _FROM_THE_TOP.match(line):
                lines.append(DiffLine("gap", ""))
            in_hunk = True
        elif not in_hunk and line.startswith(b"new file "):
            change = "added"
        elif not in_hunk and line.startswith(b"deleted file "):
            change = "removed"
        elif not in_hunk and (index := _INDEX.match(line)):
            blob = index[1].decode("ascii")
        elif in_hunk and line[:1] in _KINDS:
            lines.append(DiffLine(_KINDS[line[:1]], line[1:].decode("utf-8", "replace")))
    return FileDiff(_path(section[0]), change, tuple(lines), None if change == "removed" else blob)


def _path(heading: bytes) -> str:
    # Without renames the heading is the same name twice, `a/… b/…`, both quoted like a C string or neither.
    name = heading[: len(heading) // 2]
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_unescaped, name[1:-1])
    return name[2:].decode("utf-8", "replace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    text = found[1]
    return bytes([int(text, 8) if len(text) == 3 else _ESCAPES[text[0]]])
