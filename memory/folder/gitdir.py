"""What is read and written inside `.git` by plain file operations: the skeleton of a new repository, its
configuration, and where HEAD stands. No process runs here, so the web may ask at any time.
"""

import os
import re
import shutil
from pathlib import Path

from . import flushed
from .errors import ForeignOwner, GitError, HeadBusy, NewerFormat, NotThere

FORMAT_VERSION = 1
"""The newest folder format this code reads and writes."""

_OID = re.compile(r"[0-9a-f]{40}")
_SECTION = re.compile(r"\s*\[([\w.-]+)\]\s*")
_VALUE = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*?)\s*")

_CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = false
	autocrlf = false
	quotePath = false
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgSign = false
[previously]
	format = {format_version}
"""

_EXCLUDE = """\
# Corrupt derived files that were set aside.
*.json.damaged-*
# What editors leave beside a file.
*~
.*.sw?
.*.kate-swp
.#*
\\#*#
.~lock.*#
# What operating systems leave in a directory.
.DS_Store
._*
Thumbs.db
desktop.ini
.directory
.Trash-*
.fuse_hidden*
.nfs*
"""

_ATTRIBUTES = """\
# Every file is kept and exported byte for byte, and the text files always show a readable diff.
* -text -ident -filter !working-tree-encoding -export-ignore -export-subst
*.md diff
*.json diff
"""

# A bisection or a rebase also detaches HEAD, so these are looked at first.
_UNDER_WAY = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)


def is_oid(text: object) -> bool:
    """Whether this is a full object id, 40 lower-case hexadecimal digits."""
    return isinstance(text, str) and _OID.fullmatch(text) is not None


def create(root: Path, *, format_version: int = FORMAT_VERSION) -> None:
    """Make an empty repository at `root`, for its owner alone: branch main, no commit, flushed, whole or not at all.

    Nothing happens when there is one already. The caller holds files_lock. Raises GitError when `root` holds files.
    """
    if (root / ".git").exists():
        return
    if root.exists() and any(root.iterdir()):
        raise GitError(f"{root} has files but no repository")
    root.parent.mkdir(parents=True, exist_ok=True)
    new = root.with_name(f".new-{root.name}")
    if new.exists():
        shutil.rmtree(new)  # what a killed process left half-made
    _write_skeleton(new, format_version)
    os.rename(new, root)
    flushed.flush_directory(root.parent)


def opened(root: Path) -> Path:
    """The `.git` directory of the repository at `root`, fit for us to use.

    Raises NotThere when there is no repository, ForeignOwner when another system user owns it (git itself would refuse
    it then), NewerFormat, and GitError for a `.git` that is a link or a file (a worktree, a submodule) or that keeps
    its references or objects in a way we do not read.
    """
    git_dir = root / ".git"
    try:
        owners = {os.lstat(root).st_uid, os.lstat(git_dir).st_uid}
    except (FileNotFoundError, NotADirectoryError):
        raise NotThere(f"no repository at {root}") from None
    if owners != {os.geteuid()}:
        raise ForeignOwner(f"{root} belongs to another system user; give it back to the user that runs this service")
    if git_dir.is_symlink() or not git_dir.is_dir():
        raise GitError(f"{git_dir} is not a directory")
    settings = config(git_dir)
    refuse_newer(root, settings)
    if settings.get("extensions.refstorage", "files") != "files":
        raise GitError(f"{root} keeps its references in another way than files")
    if settings.get("extensions.objectformat", "sha1") != "sha1":
        raise GitError(f"{root} uses another object format than sha1")
    return git_dir


def refuse_newer(root: Path, settings: dict[str, str] | None = None) -> None:
    """Raise NewerFormat for a folder that a later version has written; nothing may be written there by this one."""
    try:
        found = format_of(config(root / ".git") if settings is None else settings)
    except FileNotFoundError:
        return  # a lost configuration names no later version, and keeps no word from being written
    if found > FORMAT_VERSION:
        raise NewerFormat(f"{root} has format {found}; this version reads up to {FORMAT_VERSION}")


def config(git_dir: Path) -> dict[str, str]:
    """The plain `section.key` settings of the repository's own configuration, keys in lower case."""
    settings: dict[str, str] = {}
    section = ""
    for line in _read(git_dir / "config").splitlines():
        if found := _SECTION.fullmatch(line):
            section = found[1].lower()
        elif line.lstrip().startswith("["):
            section = ""  # a subsection, such as a remote's: none of its settings concerns us
        elif section and (found := _VALUE.fullmatch(line)):
            settings[f"{section}.{found[1].lower()}"] = found[2].strip('"')
    return settings


def format_of(settings: dict[str, str]) -> int:
    """The folder format that a configuration names, 1 when it names none; raises GitError when it is no number."""
    text = settings.get("previously.format", "1")
    if not (text.isascii() and text.isdigit()):
        raise GitError("the setting previously.format is not a number")
    return int(text)


def busy(git_dir: Path) -> str | None:
    """Why nothing can be committed: detached, merge, rebase, cherry-pick, revert or bisect; None when it can be."""
    for name, why in _UNDER_WAY:
        if (git_dir / name).exists():
            return why
    return None if named_branch(git_dir) else "detached"


def branch(git_dir: Path) -> str:
    """The full name of the branch that HEAD names, `refs/heads/…`; raises HeadBusy when nothing can be committed."""
    why = busy(git_dir)
    name = named_branch(git_dir)
    if why or not name:
        raise HeadBusy(why or "detached")
    return name


def tip(git_dir: Path) -> str | None:
    """The commit HEAD stands at, on a branch or detached; None before the first commit."""
    head = _read(git_dir / "HEAD").strip()
    return head if is_oid(head) else ref(git_dir, head.removeprefix("ref:").strip())


def ref(git_dir: Path, name: str) -> str | None:
    """The commit a reference names, from its own file or packed-refs; None when it is unborn."""
    for _ in range(2):  # git may be moving it into packed-refs between our two looks
        try:
            text = _read(git_dir / _safe(name)).strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            found = _packed(git_dir, name)
        else:
            if not is_oid(text):
                raise GitError(f"{name} does not name a commit")
            return text
        if found:
            return found
    return None


def named_branch(git_dir: Path) -> str | None:
    """The full name of the branch that HEAD names; None when it is detached."""
    head = _read(git_dir / "HEAD").strip()
    name = head.removeprefix("ref:").strip()
    return _safe(name) if head.startswith("ref:") and name.startswith("refs/heads/") else None


def checked_branch(name: str) -> str:
    """The full name of a branch as it came from outside; raises GitError for anything else."""
    if not name.startswith("refs/heads/") or re.search(r"[\x00-\x20\x7f]", name):
        raise GitError(f"{name!r} is no branch")
    return _safe(name)


def _safe(name: str) -> str:
    if not name.startswith("refs/") or any(part in ("", ".", "..") for part in name.split("/")):
        raise GitError("HEAD cannot be read")
    return name


def _packed(git_dir: Path, name: str) -> str | None:
    try:
        lines = _read(git_dir / "packed-refs").splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        oid, _, packed = line.partition(" ")
        if packed == name and is_oid(oid):
            return oid
    return None


def _read(path: Path) -> str:
    return path.read_text("utf-8", errors="surrogateescape")


def _write_skeleton(root: Path, format_version: int) -> None:
    git_dir = root / ".git"
    for directory in (root, git_dir):
        directory.mkdir(mode=0o700)
    for name in ("objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags", "info"):
        (git_dir / name).mkdir(mode=0o700)
    _write(git_dir / "config", _CONFIG.format(format_version=format_version))
    _write(git_dir / "info" / "exclude", _EXCLUDE)
    _write(git_dir / "info" / "attributes", _ATTRIBUTES)
    _write(git_dir / "HEAD", "ref: refs/heads/main\n")
    for directory in (git_dir / "refs", git_dir / "objects", git_dir / "info", git_dir, root):
        flushed.flush_directory(directory)


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
