"""The environment is read strictly: what cannot be meant as written is refused in one sentence with a remedy."""

from pathlib import Path

import pytest

from previously_site.env import Previously, SettingsError, known_variables, read, unknown_variables

BASE = Path("/srv/previously")


def settings(**variables: str) -> Previously:
    return read({f"PREVIOUSLY_{name}": value for name, value in variables.items()}, base=BASE)


def refusal(**variables: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(**variables)
    return str(caught.value)


def test_it_works():
    chosen = settings()
    assert chosen.data_dir == BASE / "data"
    assert chosen.cache_dir == BASE / "data" / "cache"
    assert chosen.signup == "closed"
    assert chosen.worker_inside
    assert chosen.max_message_chars == 100_000
    assert chosen.card_wait_seconds == 6
    assert chosen.replies_at_once == 64
    assert (chosen.model, chosen.model_url, chosen.model_key) == ("", "", "")
    assert not chosen.debug


@pytest.mark.parametrize(("word", "meant"), [("on", True), ("TRUE", True), ("1", True), ("No", False), ("off", False)])
def test_words_for_yes_and_no(word, meant):
    assert settings(DEBUG=word).debug is meant


@pytest.mark.parametrize("word", ["ja", "enabled", "2", "tru", "on off"])
def test_an_unknown_word_for_yes_or_no_is_no_no(word):
    said = refusal(ADMIN_SEES_CONTENT=word)
    assert "PREVIOUSLY_ADMIN_SEES_CONTENT" in said
    assert repr(word) in said
    assert "on, true, yes, 1, off, false, no, 0" in said


def test_an_empty_value_counts_as_not_set():
    assert settings(DEBUG="", MODEL_CONTEXT=" ", SIGNUP="") == settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL_CONTEXT", "many"),
        ("MODEL_CONTEXT", "1_000_000"),
        ("MODEL_CONTEXT", "12"),
        ("MODEL_CONTEXT", "٣٢٧٦٨"),
        ("MAX_MESSAGE_CHARS", "0"),
        ("MAX_MESSAGE_CHARS", "-5"),
        ("REPLIES_AT_ONCE", "1e3"),
        ("TRUSTED_PROXIES", "all"),
        ("CARD_WAIT_SECONDS", "nan"),
        ("CARD_WAIT_SECONDS", "61"),
        ("SIGNUP", "everyone"),
        ("MODEL_TOOLS", "yes"),
        ("LOG_FORMAT", "xml"),
        ("LANGUAGE", "de"),
        ("TIME_ZONE", "Mars/Phobos"),
        ("TIME_ZONE", "UTC+8"),
        ("TIME_ZONE", "../../etc/passwd"),
        ("ALLOWED_HOSTS", "https://chat.example.org"),
        ("ALLOWED_HOSTS", "chat.example.org:8000"),
        ("TRUSTED_ORIGINS", "chat.example.org"),
        ("TRUSTED_ORIGINS", "https://chat.example.org/path"),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_name(name, value):
    said = refusal(**{name: value})
    assert f"PREVIOUSLY_{name} is {value!r}" in said
    assert ": use " in said


def test_zones_may_be_aliases():
    assert settings(TIME_ZONE="Asia/Calcutta").time_zone == "Asia/Calcutta"


def test_relative_folders_do_not_depend_on_where_one_stands():
    assert settings(DATA_DIR="somewhere/else").data_dir == BASE / "somewhere" / "else"
    assert settings(DATA_DIR="/var/lib/previously").cache_dir == Path("/var/lib/previously/cache")


def test_a_secret_may_come_from_a_file(tmp_path):
    (tmp_path / "key").write_text("sk-from-file\n")
    assert settings(MODEL="m", MODEL_KEY_FILE=str(tmp_path / "key")).model_key == "sk-from-file"


def test_a_secret_given_twice_is_refused(tmp_path):
    (tmp_path / "key").write_text("sk-from-file\n")
    said = refusal(MODEL_KEY="sk-direct", MODEL_KEY_FILE=str(tmp_path / "key"))
    assert "PREVIOUSLY_MODEL_KEY and PREVIOUSLY_MODEL_KEY_FILE are both set" in said
    assert "sk-direct" not in said


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_a_secret_file_that_says_nothing_is_refused(tmp_path, content):
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    said = refusal(SECRET_KEY_FILE=str(path))
    assert "PREVIOUSLY_SECRET_KEY_FILE" in said
    assert str(path) in said


@pytest.mark.parametrize(
    "url",
    ["localhost:11434", "ftp://host/v1", "http://", "http://host:port/v1", "http://me:pw@host/v1", "http://host/?k=v"],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url):
    said = refusal(MODEL_URL=url)
    assert said.startswith("PREVIOUSLY_MODEL_URL is no address that can be used")
    assert "me:pw" not in said


def test_openai_variables_are_honoured_when_ours_are_not_set():
    env = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://localhost:9/v1/", "PREVIOUSLY_MODEL": "small"}
    chosen = read(env, base=BASE)
    assert (chosen.model_key, chosen.model_url) == ("sk-1", "http://localhost:9/v1")
    ours = env | {"PREVIOUSLY_MODEL_KEY": "sk-2", "PREVIOUSLY_MODEL_URL": "http://localhost:8/v1"}
    chosen = read(ours, base=BASE)
    assert (chosen.model_key, chosen.model_url) == ("sk-2", "http://localhost:8/v1")


def test_a_key_alone_means_openai():
    assert read({"OPENAI_API_KEY": "sk-1", "PREVIOUSLY_MODEL": "m"}, base=BASE).model_url == "https://api.openai.com/v1"


def test_a_model_without_a_server_is_refused():
    assert "set PREVIOUSLY_MODEL_URL" in refusal(MODEL="small")


def test_one_model_serves_for_all_unless_told_otherwise():
    chosen = settings(MODEL="big", MODEL_URL="http://localhost:9/v1", MODELS_ALLOWED="other, third")
    assert chosen.model_analyst == "big"
    assert chosen.models_allowed == ("big", "other", "third")


@pytest.mark.parametrize("url", ["amqp://guest@localhost//", "filesystem://", "sqla+sqlite:///x.db", "redis"])
def test_a_broker_that_would_lose_work_is_refused(url):
    said = refusal(BROKER_URL=url)
    assert "memory://" in said
    assert "redis://" in said


def test_single_sign_on_is_whole_or_absent():
    said = refusal(OIDC_ISSUER="https://id.example.org")
    assert "PREVIOUSLY_OIDC_CLIENT_ID and PREVIOUSLY_OIDC_CLIENT_SECRET" in said


def test_secrets_are_not_in_the_representation():
    shown = repr(settings(SECRET_KEY="s3cret", MODEL_KEY="s3cret", DATABASE_URL="postgres://u:s3cret@h/d"))
    assert "s3cret" not in shown


def test_tls_is_what_a_trusted_proxy_speaks():
    assert not settings().behind_tls
    assert settings(TRUSTED_PROXIES="1").behind_tls
    assert not settings(TRUSTED_PROXIES="1", TRUSTED_ORIGINS="http://intranet.example.org").behind_tls


def test_misspelt_names_are_found():
    assert unknown_variables({"PREVIOUSLY_MODELL": "x", "PREVIOUSLY_MODEL": "x", "HOME": "/"}) == ["PREVIOUSLY_MODELL"]
    assert "PREVIOUSLY_MODEL_KEY_FILE" in known_variables()
    assert "PREVIOUSLY_MODEL_FILE" not in known_variables()
