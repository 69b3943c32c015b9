"""The data folder and the server's secret key, both made at the first start."""

import os
import secrets
import tempfile
from pathlib import Path

from previously_site.env import SettingsError


def data_folder(path: Path) -> Path:
    """The data folder, made for its owner alone when it is not there yet. Raises SettingsError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"The data folder {path} cannot be made ({error.strerror}):"
            " set PREVIOUSLY_DATA_DIR to a folder that this user may write."
        ) from error
    return path


def secret_key(data_dir: Path) -> str:
    """The key kept in the data folder, made there once with mode 0600. Raises SettingsError."""
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            _make(path)
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The secret key {path} cannot be made or read ({error}):"
            " give this user the rights to the data folder, or set PREVIOUSLY_SECRET_KEY."
        ) from error
    if len(key) < 32:
        raise SettingsError(f"The secret key {path} is too short: delete the file and a new one is made.")
    return key


def _make(path: Path) -> None:
    # Written aside and linked into place: of two processes that start at once one link succeeds, both then read the
    # same key, and neither can read half of it.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".secret_key-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(64) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass  # the other process was first, its key is the key
    finally:
        os.unlink(temporary)
