"""What the operator says in the environment, read strictly and once.

`read` takes the environment as a mapping and gives a frozen `Previously`; nothing here knows Django. A value that
cannot be meant as written is a `SettingsError`, one sentence that names the variable, what is wrong and the remedy.
An empty value counts as not set.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

from memory.folder.clock import known_zone

PREFIX = "PREVIOUSLY_"
LANGUAGES = ("en", "zh-hans")
SIGNUP_POLICIES = ("closed", "invite", "open", "approve")
OPENAI_URL = "https://api.openai.com/v1"
MEMORY_BROKER = "memory://"

#: Fields that may also come from a file, named by the variable with `_FILE` added. Their values are never shown.
SECRETS = frozenset(
    {
        "secret_key",
        "database_url",
        "broker_url",
        "model_key",
        "email_url",
        "oidc_client_secret",
        "metrics_token",
        "admin_password",
    }
)

_WORDS = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


class SettingsError(Exception):
    """A setting that cannot be used; its text is the whole message for the operator."""


@dataclass(frozen=True, kw_only=True)
class Previously:
    """Every setting; the variable of a field is its name in capitals after `PREVIOUSLY_`. '' means not set."""

    data_dir: Path
    cache_dir: Path
    secret_key: str = field(repr=False)
    debug: bool
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    trusted_proxies: int
    database_url: str = field(repr=False)
    broker_url: str = field(repr=False)
    model_url: str
    model_key: str = field(repr=False)
    model: str
    model_analyst: str
    models_allowed: tuple[str, ...]
    model_tools: str
    model_context: int
    signup: str
    admin_sees_content: bool
    max_message_chars: int
    turns_per_minute: int
    turns_per_day: int
    card_wait_seconds: float
    replies_at_once: int
    language: str
    time_zone: str
    email_url: str = field(repr=False)
    oidc_issuer: str
    oidc_client_id: str
    oidc_client_secret: str = field(repr=False)
    oidc_name: str
    metrics_token: str = field(repr=False)
    admin_email: str
    admin_password: str = field(repr=False)
    log_format: str

    @property
    def worker_inside(self) -> bool:
        """Whether tasks run only inside `serve`, on the memory broker."""
        return self.broker_url == MEMORY_BROKER

    @property
    def behind_tls(self) -> bool:
        """Whether people reach us over https: behind a proxy, unless every named origin says plain http."""
        plain = bool(self.trusted_origins) and all(one.startswith("http://") for one in self.trusted_origins)
        return self.trusted_proxies > 0 and not plain


def variable(field_name: str) -> str:
    """The environment variable of a field of `Previously`."""
    return PREFIX + field_name.upper()


def known_variables() -> frozenset[str]:
    """Every `PREVIOUSLY_*` name that means something, the `_FILE` forms included."""
    names = {variable(one.name) for one in fields(Previously)}
    return frozenset(names | {variable(secret) + "_FILE" for secret in SECRETS})


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """`PREVIOUSLY_*` names in the environment that mean nothing: most likely misspelt."""
    return sorted(name for name in env if name.startswith(PREFIX) and name not in known_variables())


def read(env: Mapping[str, str], *, base: Path) -> Previously:
    """All settings from `env`; relative folders are taken from `base`. Raises SettingsError."""
    reader = _Reader(env, base)
    data_dir = reader.folder("data_dir", base / "data")
    # Each of the two falls back alone, as the openai client itself does.
    model_url = reader.url("model_url") or reader.url_of("OPENAI_BASE_URL")
    model_key = reader.secret("model_key") or env.get("OPENAI_API_KEY", "").strip()
    model = reader.text("model")
    if model and not model_url:
        if not model_key:
            raise SettingsError(
                "PREVIOUSLY_MODEL is set, but there is no server to ask: set PREVIOUSLY_MODEL_URL"
                " (for example http://localhost:11434/v1), or PREVIOUSLY_MODEL_KEY for OpenAI's own server."
            )
        model_url = OPENAI_URL
    allowed = reader.words("models_allowed")
    return Previously(
        data_dir=data_dir,
        cache_dir=reader.folder("cache_dir", data_dir / "cache"),
        secret_key=reader.secret("secret_key"),
        debug=reader.flag("debug", default=False),
        allowed_hosts=reader.hosts("allowed_hosts", ("localhost", "127.0.0.1", "[::1]")),
        trusted_origins=reader.origins("trusted_origins"),
        trusted_proxies=reader.whole("trusted_proxies", 0, low=0, high=10),
        database_url=reader.secret("database_url"),
        broker_url=reader.broker("broker_url"),
        model_url=model_url,
        model_key=model_key,
        model=model,
        model_analyst=reader.text("model_analyst") or model,
        models_allowed=allowed if model in allowed or not model else (model, *allowed),
        model_tools=reader.one_of("model_tools", ("auto", "on", "off")),
        model_context=reader.whole("model_context", 32_768, low=2_048, high=10_000_000),
        signup=reader.one_of("signup", SIGNUP_POLICIES),
        admin_sees_content=reader.flag("admin_sees_content", default=True),
        max_message_chars=reader.whole("max_message_chars", 100_000, low=1, high=1_000_000),
        turns_per_minute=reader.whole("turns_per_minute", 0, low=0, high=10_000),
        turns_per_day=reader.whole("turns_per_day", 0, low=0, high=1_000_000),
        card_wait_seconds=reader.seconds("card_wait_seconds", 6.0, high=60.0),
        replies_at_once=reader.whole("replies_at_once", 64, low=1, high=1_000),
        language=reader.one_of("language", LANGUAGES),
        time_zone=reader.zone("time_zone"),
        email_url=reader.secret("email_url"),
        **reader.oidc(),
        metrics_token=reader.secret("metrics_token"),
        admin_email=reader.text("admin_email"),
        admin_password=reader.secret("admin_password"),
        log_format=reader.one_of("log_format", ("text", "json")),
    )


class _Reader:
    """The strict readers, one a kind of value. Each takes the field's name."""

    def __init__(self, env: Mapping[str, str], base: Path) -> None:
        self.env = env
        self.base = base

    def text(self, name: str) -> str:
        return self.env.get(variable(name), "").strip()

    def secret(self, name: str) -> str:
        value, source = self.text(name), self.env.get(variable(name) + "_FILE", "").strip()
        if not source:
            return value
        file_variable = variable(name) + "_FILE"
        if value:
            raise SettingsError(f"{variable(name)} and {file_variable} are both set: keep one of them.")
        try:
            value = Path(source).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(
                f"{file_variable} names {source}, which cannot be read ({reason}): correct the path or its rights."
            ) from error
        if not value:
            raise SettingsError(f"{file_variable} names {source}, which is empty: put the secret into it.")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        word = self.text(name).lower()
        if not word:
            return default
        if word not in _WORDS:
            raise self._wrong(name, f"use one of {', '.join(_WORDS)}")
        return _WORDS[word]

    def whole(self, name: str, default: int, *, low: int, high: int) -> int:
        word = self.text(name)
        if not word:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", word) or not low <= int(word) <= high:
            raise self._wrong(name, f"use a whole number from {low} to {high}")
        return int(word)

    def seconds(self, name: str, default: float, *, high: float) -> float:
        word = self.text(name)
        if not word:
            return default
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", word) or float(word) > high:
            raise self._wrong(name, f"use a number of seconds from 0 to {high:g}")
        return float(word)

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the allowed words; the first is the default."""
        word = self.text(name).lower()
        if not word:
            return allowed[0]
        if word not in allowed:
            raise self._wrong(name, f"use one of {', '.join(allowed)}")
        return word

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word for part in self.text(name).split(",") if (word := part.strip()))

    def folder(self, name: str, default: Path) -> Path:
        return self.base / Path(self.text(name) or default).expanduser()

    def hosts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        hosts = self.words(name)
        if any(re.search(r"[/\s@]|:\d+$", host) for host in hosts):
            raise self._wrong(name, "use host names without scheme, port or path, for example chat.example.org")
        return hosts or default

    def origins(self, name: str) -> tuple[str, ...]:
        origins = self.words(name)
        if not all(re.fullmatch(r"https?://[^/\s@?#]+", origin) for origin in origins):
            raise self._wrong(name, "use origins with their scheme and without a path, like https://chat.example.org")
        return origins

    def url(self, name: str) -> str:
        return self.url_of(variable(name))

    def url_of(self, full_name: str) -> str:
        """An http(s) address without trailing slash. One that carries a user name or a query is refused."""
        text = self.env.get(full_name, "").strip()
        if not text:
            return ""
        try:
            parts = urlsplit(text)
            usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0
        except ValueError:
            usable = False
        if not usable or parts.username or parts.query or parts.fragment or re.search(r"\s", text):
            raise SettingsError(
                f"{full_name} is no address that can be used: give it as http://host:port/path or https://…,"
                " without user name, password, query or fragment."
            )
        return text.rstrip("/")

    def broker(self, name: str) -> str:
        url = self.secret(name) or MEMORY_BROKER
        if url != MEMORY_BROKER and urlsplit(url).scheme not in ("redis", "rediss", "redis+socket"):
            raise SettingsError(
                f"{variable(name)} names a broker that is not supported: use memory:// (the worker runs inside"
                " serve) or redis://host:6379/0 for Redis or Valkey."
            )
        return url

    def zone(self, name: str) -> str:
        word = self.text(name) or "UTC"
        if known_zone(word) is None:
            raise self._wrong(name, "use an IANA time zone such as Europe/Berlin or Asia/Shanghai")
        return word

    def oidc(self) -> dict[str, str]:
        """The four OIDC fields: issuer, client id and secret go together or not at all."""
        found = {
            "oidc_issuer": self.url("oidc_issuer"),
            "oidc_client_id": self.text("oidc_client_id"),
            "oidc_client_secret": self.secret("oidc_client_secret"),
        }
        missing = [variable(name) for name, value in found.items() if not value]
        if 0 < len(missing) < len(found):
            raise SettingsError(f"Single sign-on is set up only in part: set {' and '.join(missing)} too.")
        return found | {"oidc_name": self.text("oidc_name") or "Single sign-on"}

    def _wrong(self, name: str, remedy: str) -> SettingsError:
        return SettingsError(f"{variable(name)} is {self.text(name)!r}, which cannot be used: {remedy}.")
