"""A person takes their memory along: one zip with every file as of the last commit, and the whole history beside them.

Nothing is read from the live work tree: git gives the files of one commit, and a bundle whose HEAD is that commit. The
zip is made while it is sent, so it costs no disk and little memory however large the folder is.
"""

import io
import tarfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import datetime
from typing import IO, TYPE_CHECKING

from memory.folder.errors import GitError
from memory.folder.git import Repository

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from typing_extensions import Buffer

HISTORY = "history.bundle"
FILES = "folder/"


def export(repository: Repository, *, now: datetime) -> Generator[bytes]:
    """The zip, piece by piece: `history.bundle`, then the files below `folder/`.

    Names are relative, with forward slashes, and flagged as UTF-8 where they are more than ASCII. Raises GitError.
    """
    sent = _Sent()
    date = now.timetuple()[:6]
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_DEFLATED) as archive:
        with closing(repository.bundle()) as pieces:
            head, begin = _head(pieces)
            # Packed already: to deflate it once more gains nothing.
            with archive.open(_info(HISTORY, date, zipfile.ZIP_STORED), "w", force_zip64=True) as entry:
                entry.write(begin)
                for piece in pieces:
                    entry.write(piece)
                    yield sent.take()
        with (
            closing(repository.archive(head)) as pieces,
            tarfile.open(fileobj=io.BufferedReader(_Read(pieces)), mode="r|", encoding="utf-8") as files,
        ):
            names: set[str] = set()
            for member in files:
                content = files.extractfile(member) if member.isfile() else None
                if content is None and not member.issym():
                    continue
                with archive.open(_info(FILES + _name(member.name, names), date), "w", force_zip64=True) as entry:
                    # A link becomes a file that says where it led, as on a system without links.
                    for piece in _pieces(content) if content else [member.linkname.encode("utf-8", "replace")]:
                        entry.write(piece)
                        yield sent.take()
                files.members.clear()  # type: ignore[attr-defined]  # or every name ever read would be kept
    yield sent.take()


def _head(pieces: Iterator[bytes]) -> tuple[str, bytes]:
    """The commit that a bundle calls HEAD, and as much of the bundle as was read to know it."""
    begin = b""
    for piece in pieces:
        begin += piece
        if b"\n\n" in begin:
            break
    for line in begin.split(b"\n\n")[0].splitlines():
        oid, _, name = line.partition(b" ")
        if name == b"HEAD":
            return oid.decode("ascii"), begin
    raise GitError("git made a bundle without HEAD")


def _info(name: str, date: tuple[int, ...], method: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date)  # type: ignore[arg-type]
    info.compress_type = method
    info.external_attr = 0o600 << 16
    return info


def _name(name: str, names: set[str]) -> str:
    """A name that any system takes for the same relative path; a person's own files may have odd ones."""
    parts = name.encode("utf-8", "replace").decode("utf-8").replace("\\", "_").replace(":", "_").split("/")
    safe = "/".join(part for part in parts if part not in ("", ".", ".."))
    while safe in names:
        safe += "_"
    names.add(safe)
    return safe


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: content.read(65_536), b"")


class _Sent(io.RawIOBase):
    """Where the zip is written to: what has been written and not yet taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: "Buffer") -> int:
        self._pieces.append(bytes(data))
        return len(self._pieces[-1])

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


class _Read(io.RawIOBase):
    """Pieces as a file to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._rest = self._rest or next(self._pieces, b"")
        room = memoryview(buffer)
        taken, self._rest = self._rest[: len(room)], self._rest[len(room) :]
        room[: len(taken)] = taken
        return len(taken)
