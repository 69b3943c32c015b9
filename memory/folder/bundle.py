"""A folder's whole history in one file, and a new folder made from it. Part of the git layer; `git.py` runs git.

A bundle carries objects and the names of branches and tags. It cannot carry a configuration, hooks or alternates, and
the new repository has our own skeleton: nothing that a stranger has put into a bundle is ever executed.
"""

import re
from pathlib import Path

from .errors import GitError
from .gitdir import is_oid
from .history import Run

_KEPT = re.compile(r"refs/(heads|tags)/[^\x00-\x20\x7f]+")
_HEADER_BYTES = 4_000_000


def head_of(bundle: Path) -> str | None:
    """The commit that a bundle's own list calls HEAD, None when it names none. Raises GitError when it has no list."""
    with bundle.open("rb") as file:
        begin, found, _ = file.read(_HEADER_BYTES).partition(b"\n\n")
    if not found or not begin.startswith(b"# v2 git bundle\n"):
        raise GitError(f"{bundle.name} is no git bundle, or was cut short")
    for line in begin.splitlines():
        oid, _, name = line.decode("utf-8", "replace").partition(" ")
        if name == "HEAD" and is_oid(oid):
            return oid
    return None


def fill(run: Run, bundle: Path, *, head: str, branch: str) -> None:
    """Put a bundle's objects, branches and tags into a new repository, and check `head` out on `branch`.

    Raises GitError when the bundle is cut short, when it is not
    complete in itself, or holds a path that git refuses to check out.
    """
    listed = run("bundle", "unbundle", str(bundle.absolute())).out.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(" ") for line in listed)
    references = {name: oid for oid, _, name in pairs if name}
    kept = {name: oid for name, oid in references.items() if _KEPT.fullmatch(name) and is_oid(oid)}
    if head not in references.values():
        raise GitError(f"{bundle.name} does not hold the commit {head}")
    run("update-ref", "--stdin", "-z", stdin=_created(kept | {branch: head}))
    run("symbolic-ref", "HEAD", branch)
    run("read-tree", head)
    run("checkout-index", "--all", "--force", "--index", "--quiet")


def _created(references: dict[str, str]) -> bytes:
    return "".join(f"create {name}\0{oid}\0" for name, oid in references.items()).encode()
