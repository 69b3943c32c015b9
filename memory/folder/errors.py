"""Everything that can go wrong with a memory folder.

FolderError
├── BadId             text that is no slice id, slice path, month or turn id
├── NotThere          no such slice, turn or file
│   └── Outside       a symbolic link was met, or the path leaves the folder
├── FrontMatterError  front matter that cannot be parsed
├── Damaged           a file that cannot be read as what it should be; its bytes stay as they are
├── TooBig            more than one file or message may hold
├── LockTimeout       somebody else held the lock for too long
├── NewerFormat       the folder was written by a later version
└── GitError          git refused or failed
    ├── BranchMoved   the branch is no longer at the commit we built on
    ├── HeadBusy      HEAD is detached, or a merge, rebase or the like is under way
    ├── ForeignOwner  the folder belongs to another system user
    └── ForeignLock   a lock file that is not ours blocks the repository
"""


class FolderError(Exception):
    """The root of the tree; its text may be shown to the person whose folder it is."""


class BadId(FolderError, ValueError):
    """The text is no slice id, slice path, month or turn id."""


class NotThere(FolderError, LookupError):
    """There is no such slice, turn or file."""


class Outside(NotThere):
    """The path meets a symbolic link or leaves the folder."""


class FrontMatterError(FolderError):
    """The front matter cannot be parsed; `why` says what is wrong with it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Damaged(FolderError):
    """The file `path` (relative to the folder) cannot be read; `why` says what is wrong with it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class TooBig(FolderError):
    """More than one file or message may hold."""


class LockTimeout(FolderError):
    """Somebody else held the lock for longer than we may wait."""


class NewerFormat(FolderError):
    """The folder was written by a later version of the format."""


class GitError(FolderError):
    """Git refused or failed; the text is git's own where there is any."""


class BranchMoved(GitError):
    """The branch is no longer at the commit we built on."""


class HeadBusy(GitError):
    """Nothing can be committed now; `why` is the reason code, such as `detached` or `merge`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ForeignOwner(GitError):
    """The folder belongs to another system user, so git will not touch it."""


class ForeignLock(GitError):
    """The lock file `path` was not made by us and blocks the repository."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path
