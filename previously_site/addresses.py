"""DATABASE_URL and EMAIL_URL taken apart into what Django wants. Their values hold passwords and are never shown."""

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from previously_site.env import SettingsError

POSTGRES_CONNECTIONS = 20
POSTGRES_SECONDS = 5
"""So long a page waits for a connection; with a server that is gone it says so then."""

_DATABASE_REMEDY = (
    "use postgres://user:password@host:5432/name or sqlite:////absolute/path.sqlite3,"
    " or leave it out for SQLite in the data folder."
)
_EMAIL_REMEDY = (
    "use smtp://user:password@host:587, smtps://user:password@host:465, smtp://host:25?tls=off or console://."
)


def database(url: str, data_dir: Path) -> dict[str, Any]:
    """Django's description of the database; '' means SQLite in the data folder. Raises SettingsError."""
    if not url:
        return _sqlite(data_dir / "database.sqlite3")
    parts = _split("PREVIOUSLY_DATABASE_URL", url, _DATABASE_REMEDY)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return _sqlite(data_dir / unquote(parts.path)[1:])
    if parts.scheme in ("postgres", "postgresql") and len(parts.path) > 1:
        options: dict[str, Any] = dict(parse_qsl(parts.query))
        host = options.pop("host", "") or parts.hostname or ""
        # The pool keeps connections; Django must then not keep them itself.
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path[1:]),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": host,
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 0,
            "OPTIONS": options
            | {"pool": {"min_size": 1, "max_size": POSTGRES_CONNECTIONS, "timeout": POSTGRES_SECONDS}},
        }
    raise SettingsError(f"PREVIOUSLY_DATABASE_URL cannot be used: {_DATABASE_REMEDY}")


def _sqlite(path: Path) -> dict[str, Any]:
    # IMMEDIATE takes the write lock at the beginning of a transaction, so that two writers wait for each other
    # instead of failing half-way; tests use a file too, for threads share an in-memory database badly.
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
        "TEST": {"NAME": path.with_name(f"test-{path.name}")},
    }


def email(url: str) -> dict[str, Any]:
    """Django's e-mail settings by name; '' means that this server sends no e-mail. Raises SettingsError."""
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
    parts = _split("PREVIOUSLY_EMAIL_URL", url, _EMAIL_REMEDY)
    options = dict(parse_qsl(parts.query))
    sender = options.pop("from", "")
    security = options.pop("tls", "starttls" if parts.scheme == "smtp" else "")
    if parts.scheme == "console":
        found: dict[str, Any] = {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    elif parts.scheme in ("smtp", "smtps") and parts.hostname and not options and security in ("", "starttls", "off"):
        found = {
            "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "EMAIL_HOST": parts.hostname,
            "EMAIL_PORT": parts.port or (587 if parts.scheme == "smtp" else 465),
            "EMAIL_HOST_USER": unquote(parts.username or ""),
            "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
            "EMAIL_USE_TLS": parts.scheme == "smtp" and security == "starttls",
            "EMAIL_USE_SSL": parts.scheme == "smtps",
            "EMAIL_TIMEOUT": 10,
        }
    else:
        raise SettingsError(f"PREVIOUSLY_EMAIL_URL cannot be used: {_EMAIL_REMEDY}")
    return found | ({"DEFAULT_FROM_EMAIL": sender} if sender else {})


def _split(name: str, url: str, remedy: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is no number raises only when asked for
    except ValueError as error:
        raise SettingsError(f"{name} cannot be used: {remedy}") from error
    return parts
