"""The addresses of the database and the mail server."""

from pathlib import Path

import pytest

from previously_site.addresses import database, email
from previously_site.env import SettingsError

DATA = Path("/srv/data")


def test_it_works():
    found = database("", DATA)
    assert found["NAME"] == DATA / "database.sqlite3"
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "WAL" in found["OPTIONS"]["init_command"]


def test_postgres_has_a_pool_and_django_keeps_no_connection_beside_it():
    found = database("postgres://me:p%40ss@db.example.org:6432/previously?sslmode=require", DATA)
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"]) == ("me", "p@ss", "db.example.org", "6432")
    assert found["NAME"] == "previously"
    assert found["OPTIONS"] == {"sslmode": "require", "pool": {"min_size": 1, "max_size": 20, "timeout": 5}}
    assert found["CONN_MAX_AGE"] == 0


def test_postgres_may_be_a_socket():
    assert database("postgresql:///previously?host=/run/postgresql", DATA)["HOST"] == "/run/postgresql"


def test_sqlite_may_lie_elsewhere():
    assert database("sqlite:////srv/other.sqlite3", DATA)["NAME"] == Path("/srv/other.sqlite3")
    assert database("sqlite:///other.sqlite3", DATA)["NAME"] == DATA / "other.sqlite3"


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/d", "postgres://u:s3cret@h", "postgres://u:s3cret@h:port/d", "db"])
def test_another_database_is_refused_without_its_password(url):
    with pytest.raises(SettingsError) as caught:
        database(url, DATA)
    assert "PREVIOUSLY_DATABASE_URL cannot be used: use postgres://" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_no_mail_server_means_no_mail():
    assert email("") == {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}


@pytest.mark.parametrize(
    ("url", "port", "tls", "ssl"),
    [
        ("smtp://me:p%40ss@mail.example.org", 587, True, False),
        ("smtp://me:p%40ss@mail.example.org:25?tls=off", 25, False, False),
        ("smtps://me:p%40ss@mail.example.org", 465, False, True),
    ],
)
def test_mail_is_encrypted_unless_told_otherwise(url, port, tls, ssl):
    found = email(url)
    assert (found["EMAIL_PORT"], found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"]) == (port, tls, ssl)
    assert (found["EMAIL_HOST"], found["EMAIL_HOST_PASSWORD"]) == ("mail.example.org", "p@ss")


def test_the_sender_can_be_given():
    assert email("console://?from=memory@example.org")["DEFAULT_FROM_EMAIL"] == "memory@example.org"


@pytest.mark.parametrize(
    "url", ["mail.example.org", "imap://mail.example.org", "smtp://h?tls=maybe", "smtp://h?port=3"]
)
def test_another_mail_address_is_refused(url):
    with pytest.raises(SettingsError, match="PREVIOUSLY_EMAIL_URL cannot be used: use smtp://"):
        email(url)
