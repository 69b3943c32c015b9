"""Git: the commits of a memory folder, made and read. Together with `history.py` the only file that runs git.

A commit goes through `git fast-import`: it costs the same whether the folder holds ten slices or a hundred thousand,
it does not pass through the index, and git itself refuses it when the branch has moved. The person's own git
configuration, hooks and environment take no part, and no text can become an option, a path or a command.
"""

import hashlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from git.cmd import Git
from git.exc import GitCommandNotFound

from . import bundle as bundles
from . import commit_stream, gitdir, gitlocks, history
from .clock import utc_now
from .commit_stream import Change, checked, path_bytes
from .errors import BranchMoved, ForeignLock, GitError
from .gitdir import FORMAT_VERSION, create
from .history import Commit, CommitView, DiffLine, FileDiff, Ran

__all__ = [
    "FORMAT_VERSION",
    "Change",
    "Commit",
    "CommitView",
    "DiffLine",
    "FileDiff",
    "Repository",
    "blob_id",
    "create",
]

CALL_SECONDS = 30.0
UPKEEP_SECONDS = 600.0
FOREIGN_LOCK_SECONDS = 600.0
"""The age from which a lock that is not ours is reported: a person's git, even with its editor open, may hold one."""

_NO_BLOB = "0" * 40
_PATHS_A_CALL = 500
_PIECE = 65_536

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_COMMITTER_NAME": "Previously",
    "GIT_COMMITTER_EMAIL": "previously@localhost",
    "TZ": "UTC",
}

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.symlinks=false",  # a link in somebody's commit is never made: it becomes a file that says where it led
    "core.fsync=all",  # packs are flushed anyway; this flushes the branch too
    "core.logAllRefUpdates=false",  # we only ever add commits, so the history is its own log
    "diff.suppressBlankEmpty=false",
    "log.showRoot=true",
    "fastimport.unpackLimit=0",  # a commit stays one small pack, even one that holds a single object
    "pack.threads=1",
    "repack.writeBitmaps=false",
)

_LOCKED = re.compile(r"Unable to create '([^']+)': File exists")


def blob_id(content: bytes) -> str:
    """The id under which git knows these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Repository:
    """The repository at `root`; calls under way are recorded below `run`.

    Every method raises NotThere when there is no repository, NewerFormat, ForeignOwner, and GitError when git fails or
    takes too long. Paths are posix paths from the root; one that leaves it raises Outside. Revisions are full commit
    ids; an unknown one raises NotThere.
    """

    root: Path
    run: Path

    def format(self) -> int:
        """The folder's format version."""
        return gitdir.format_of(gitdir.config(self._git_dir))

    def busy(self) -> str | None:
        """Why nothing can be committed: detached, merge, rebase, cherry-pick, revert or bisect; None when it can be."""
        return gitdir.busy(self._git_dir)

    def head(self) -> str | None:
        """The commit our next one builds on, None before the first; read from files. Raises HeadBusy."""
        git_dir = self._git_dir
        return gitdir.ref(git_dir, gitdir.branch(git_dir))

    def tip(self) -> str | None:
        """The commit that HEAD stands at, on a branch or detached; None before the first."""
        return gitdir.tip(self._git_dir)

    def branch(self) -> str | None:
        """The full name of the branch that HEAD names, whatever is under way; None when HEAD is detached."""
        return gitdir.named_branch(self._git_dir)

    def blobs(self, paths: Sequence[str], *, at: str = "HEAD") -> dict[str, str | None]:
        """The blob id of each path in a commit, None where there is no such file; `HEAD` may also be unborn."""
        tip = self.tip() if at == "HEAD" else history.commit_id(at)
        found: dict[str, str | None] = dict.fromkeys(map(checked, paths))
        names = list(found) if tip else []
        for first in range(0, len(names), _PATHS_A_CALL):
            ran = self._git("ls-tree", "-z", "--full-tree", tip or "", "--", *names[first : first + _PATHS_A_CALL])
            for row in ran.out.decode("utf-8", "surrogateescape").split("\0")[:-1]:
                kind, _, path = row.partition("\t")
                _, type_, oid = kind.split(" ")
                if type_ == "blob":
                    found[path] = oid
        return found

    def commit(self, changes: Sequence[Change], message: str, *, parent: str | None, at: datetime) -> str:
        """Commit these changes on top of `parent` to the branch that HEAD names, and return the new commit's id.

        The first line of the message, without control characters, is the subject. The commit is on disk and the branch
        names it when this returns; the work tree and the index are not touched. Raises BranchMoved when the branch is
        not at `parent` (None: not unborn), HeadBusy, and ForeignLock when another git holds the branch.
        """
        git_dir = self._git_dir
        branch = gitdir.branch(git_dir)
        # Git refuses a commit that the branch's tip is no ancestor of. A branch set back to an older commit would pass
        # that test, hence this look first.
        if gitdir.ref(git_dir, branch) != parent:
            raise BranchMoved(f"{branch} is not at {parent or 'its beginning'}")
        stream = commit_stream.render(branch, changes, message, parent=parent, at=at)
        # Compressed quickly, not well: at thousands of strands deflating their file would be most of a turn. Upkeep
        # packs it again, against its last version.
        ran = self._git(
            "fast-import",
            "--quiet",
            stdin=stream,
            locks=("HEAD.lock", f"{branch}.lock"),
            check=False,
            setting="pack.compression=1",
        )
        made = ran.out.decode("ascii", "replace").strip()
        if ran.code:
            there = gitdir.ref(git_dir, branch)
            if there == made:
                return made  # the branch had moved already when git failed
            if there != parent:
                raise BranchMoved(f"{branch} moved to {there} meanwhile")
            raise _failure("fast-import", ran)
        return made

    def refresh_index(self, blobs: Mapping[str, str | None]) -> bool:
        """Tell the index what was committed (None: deleted), so that `git status` is clean; the work tree is not read.

        Returns False when somebody holds the index: do it later. Raises GitError for a damaged index: rebuild it.
        """
        rows = [
            b"%s %s\t%s\0" % (b"100644" if oid else b"0", (oid or _NO_BLOB).encode(), path_bytes(path))
            for path, oid in blobs.items()
        ]
        return self._write_index("update-index", "-z", "--index-info", stdin=b"".join(rows))

    def rebuild_index(self) -> bool:
        """Make the index anew from HEAD, whatever state it is in; what a person has staged in it is given up.

        Entry by entry rather than by `read-tree`, which also writes git's cache of trees: in a large folder that cache
        makes every later refresh cost twice as much, and none of our calls reads it. Returns False when somebody holds
        the index.
        """
        if not self._write_index("read-tree", "--empty"):
            return False
        tip = gitdir.tip(self._git_dir)
        rows = self._git("ls-tree", "-r", "-z", "--full-tree", tip).out if tip else b""
        return self._write_index("update-index", "-z", "--index-info", stdin=rows)

    def upkeep(self) -> None:
        """Pack what the last commits left and extend the commit graph; only adds and regroups, never drops an object.

        Safe while commits go on. The caller holds work_lock. Runs niced, for seconds in a large folder.
        """
        if self.tip() is None:
            return
        self._git("repack", "-d", "-q", "-n", "--geometric=2", locks=(), seconds=UPKEEP_SECONDS, nice=True)
        self._git(
            "commit-graph",
            "write",
            "--reachable",
            "--changed-paths",
            "--split",
            "--no-progress",
            locks=(gitlocks.CHAIN_LOCK,),
            seconds=UPKEEP_SECONDS,
            nice=True,
        )

    def log(self, *, path: str | None = None, limit: int = 50, before: str | None = None) -> list[Commit]:
        """Up to `limit` commits, newest first, behind the commit `before`; with a path (file or directory) those that
        touched it.
        """
        tip = self.tip()
        if tip is None:
            return []
        return history.log(self._git, tip, path=path, limit=limit, before=before)

    def diffs(
        self, *, path: str, limit: int, before: str | None = None, at_most: int = history.DIFF_BYTES
    ) -> tuple[list[CommitView], bool]:
        """A page of the commits that touched a path, newest first, with their diffs, and whether there are more.

        `before` is the last commit of the page before; all diffs together are at most `at_most` bytes.
        """
        tip = self.tip()
        if tip is None:
            return [], False
        return history.diffs(self._git, tip, path=path, limit=limit, before=before, at_most=at_most)

    def show(self, commit_id: str, *, path: str | None = None) -> CommitView:
        """A commit with its readable diff, at most a megabyte of it; with a path, that file's or directory's part."""
        return history.show(self._git, commit_id, path=path)

    def read(self, commit_id: str, path: str) -> bytes:
        """A file's bytes as they were in a commit; raises NotThere."""
        return history.read(self._git, commit_id, path)

    def bundle(self) -> Generator[bytes]:
        """HEAD, every branch and every tag with their whole history as a git bundle, piece by piece.

        Raises GitError when git fails half-way: what came before is no bundle then.
        """
        return self._pieces("bundle", "create", "--quiet", "-", "HEAD", "--branches", "--tags")

    def restore_from(self, bundle: Path, *, head: str, branch: str) -> None:
        """Fill this new, empty repository from a bundle of ours: `head` is checked out on `branch` (`refs/heads/…`).

        Nobody else may know of the repository yet. What is left after a GitError is to be thrown away.
        """
        gitdir.checked_branch(branch)
        run = partial(self._git, seconds=UPKEEP_SECONDS)
        bundles.fill(run, bundle, head=history.commit_id(head), branch=branch)

    def archive(self, commit_id: str) -> Generator[bytes]:
        """The work tree of a commit as a tar, piece by piece; raises as `bundle` does."""
        return self._pieces("archive", "--format=tar", history.commit_id(commit_id))

    def changed(self, a: str, b: str) -> list[str]:
        """The paths whose bytes differ between two commits."""
        return history.changed(self._git, a, b)

    def is_ancestor(self, a: str, b: str) -> bool:
        """Whether commit `a` is `b` or lies behind it; False when one of them is unknown here."""
        return history.is_ancestor(self._git, a, b)

    def fsck(self) -> list[str]:
        """What `git fsck` complains of, a line each; empty when the repository is sound."""
        ran = self._git("fsck", "--full", "--no-dangling", "--no-progress", check=False, seconds=UPKEEP_SECONDS)
        lines = ran.out.decode("utf-8", "replace").splitlines() + ran.err.splitlines()
        complaints = [line for line in lines if line and not line.startswith("notice: ")]
        return complaints or ([f"git fsck ended with {ran.code}"] if ran.code else [])

    def status(self) -> list[str]:
        """What `git status` lists, as two letters, a space and the path; empty when the work tree equals HEAD."""
        ran = self._git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
        return [row.decode("utf-8", "surrogateescape") for row in ran.out.split(b"\0") if row]

    def clear_stale_locks(self, *, foreign_after: float = FOREIGN_LOCK_SECONDS) -> list[str]:
        """Remove the locks that our dead calls left, and their half-written files; return them relative to `.git`.

        A lock that is not ours stays; when one is older than `foreign_after` seconds, ForeignLock names it.
        """
        git_dir = self._git_dir
        removed = gitlocks.clear(self.run, git_dir)
        before = utc_now().timestamp() - foreign_after
        for lock in gitlocks.existing(git_dir):
            with suppress(FileNotFoundError):
                if (git_dir / lock).stat(follow_symlinks=False).st_mtime < before:
                    raise ForeignLock(f".git/{lock}")
        return removed

    @property
    def _git_dir(self) -> Path:
        return gitdir.opened(self.root)

    def _write_index(self, *arguments: str, stdin: bytes = b"") -> bool:
        # From a file, not a pipe: git would take the half of a path that a killed worker got out for a path.
        with tempfile.TemporaryFile() as rows:
            rows.write(stdin)
            rows.seek(0)
            try:
                self._git(*arguments, stdin=rows, locks=("index.lock",))
            except ForeignLock:
                return False
        return True

    def _git(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        check: bool = True,
        at_most: int | None = None,
        locks: Sequence[str] | None = None,
        seconds: float = CALL_SECONDS,
        nice: bool = False,
        setting: str = "",
    ) -> Ran:
        """Run git. `locks` (None: it only reads) puts the call on record; `at_most` cuts its output short.

        A non-zero exit raises GitError unless `check` is off; running longer than `seconds` always does.
        """
        git_dir = self._git_dir.absolute()
        command = _command(git_dir, ("-c", setting, *arguments) if setting else arguments, nice=nice)
        if locks is None:
            ran = _run(command, self.root, stdin=stdin, seconds=seconds, at_most=at_most)
        else:
            call = gitlocks.begin(self.run, git_dir, locks, command=arguments[0], seconds=seconds)
            killed = True
            try:
                ran = _run(command, self.root, stdin=stdin, seconds=seconds, at_most=at_most, inherit=call.handle)
                killed = ran.code < 0
            finally:
                gitlocks.end(call, run=self.run, git_dir=git_dir, killed=killed)
        if check and ran.code:
            raise _failure(arguments[0], ran)
        return ran

    def _pieces(self, *arguments: str) -> Generator[bytes]:
        """Run git and yield what it says, as it says it; when the reader stops, git is stopped."""
        started = _start(_command(self._git_dir.absolute(), arguments, nice=True), self.root)
        process = cast("subprocess.Popen[bytes]", started.proc)
        with process:
            try:
                yield from iter(lambda: cast(IO[bytes], process.stdout).read(_PIECE), b"")
                err = cast(IO[bytes], process.stderr).read().decode("utf-8", "replace")
                code = process.wait()
            finally:
                if process.poll() is None:
                    _kill(process)
            if code:
                raise _failure(arguments[0], Ran(code=code, out=b"", err=err))


def _command(git_dir: Path, arguments: Sequence[str], *, nice: bool) -> list[str]:
    """The whole command line for a call of git."""
    # GitPython starts from our whole environment, so what is not to reach git is taken out on the way.
    inherited = [name for name in os.environ if name.startswith("GIT_") and name not in _ENVIRONMENT]
    command = ["env"] if inherited else []
    for name in inherited:
        command += ["-u", name]
    command += ["nice", "-n", "10"] if nice else []
    command += ["git", f"--git-dir={git_dir}", f"--work-tree={git_dir.parent}", "--literal-pathspecs"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    return [*command, *arguments]


def _start(command: list[str], root: Path, **options: Any) -> Git.AutoInterrupt:
    """Start git; the process is ended when what is returned is no longer kept."""
    # A session of its own: a Ctrl-C meant for the server does not reach git, and git can be stopped with its children.
    try:
        started = Git(root).execute(command, as_process=True, env=_ENVIRONMENT, start_new_session=True, **options)
    except (GitCommandNotFound, OSError) as error:
        raise GitError(f"git cannot be started: {error}") from error
    return cast("Git.AutoInterrupt", started)


def _run(
    command: list[str],
    root: Path,
    *,
    stdin: bytes | IO[bytes],
    seconds: float,
    at_most: int | None = None,
    inherit: int | None = None,
) -> Ran:
    handles = () if inherit is None else (inherit,)
    told = stdin if isinstance(stdin, bytes) else None
    started = _start(command, root, istream=stdin if told is None else subprocess.PIPE, pass_fds=handles)
    process = cast("subprocess.Popen[bytes]", started.proc)
    with process:  # closes the pipes and waits
        try:
            if at_most is not None:
                return _read_some(process, at_most, seconds)
            out, err = process.communicate(told, timeout=seconds)
            return Ran(code=process.returncode, out=out, err=err.decode("utf-8", "replace"))
        except subprocess.TimeoutExpired as error:
            raise GitError(f"git took longer than {seconds:g} seconds and was stopped") from error
        finally:
            if process.poll() is None:
                _kill(process)


def _read_some(process: "subprocess.Popen[bytes]", at_most: int, seconds: float) -> Ran:
    """Read `at_most` bytes of output and stop git then: a whole diff may be larger than memory."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        _kill(process)

    watchdog = threading.Timer(seconds, stop)
    watchdog.start()
    try:
        out = cast(IO[bytes], process.stdout).read(at_most)
        cut = len(out) == at_most
        if cut:
            _kill(process)
        err = cast(IO[bytes], process.stderr).read().decode("utf-8", "replace")
        code = process.wait()
    finally:
        watchdog.cancel()
    if expired.is_set():
        raise subprocess.TimeoutExpired(process.args, seconds)
    return Ran(code=0 if cut else code, out=out, err=err)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _failure(command: str, ran: Ran) -> GitError:
    if found := _LOCKED.search(ran.err):
        return ForeignLock(".git/" + found[1].rpartition(".git/")[2])
    return GitError(f"git {command} ended with {ran.code}: {ran.err.strip()[:1000]}")
