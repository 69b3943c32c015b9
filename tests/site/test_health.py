"""What watches from outside: one word for strangers, the reasons for whoever has the token, numbers for Prometheus."""

import re
from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test import Client

from memory import access
from memory.folder.clock import utc_now
from memory.models import FolderFacts, ModelCalls, WorkerSeen
from previously_site import health
from previously_site.env import MEMORY_BROKER

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

TOKEN = "a-token-for-prometheus"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def seen(db):
    """A worker that swept just now."""
    return WorkerSeen.objects.create(name="host-1", at=utc_now())


@pytest.fixture
def long_running(monkeypatch):
    """The server did not start just now."""
    monkeypatch.setattr(health, "_begun", float("-inf"))


def metrics(client: Client) -> dict[str, float]:
    page = client.get("/metrics", headers=BEARER).content.decode()
    return {name: float(value) for name, value in re.findall(r"^([a-z]\S+) (\S+)$", page, re.MULTILINE)}


def test_it_works(client, seen, previously):
    previously(metrics_token=TOKEN)
    answer = client.get("/readyz", headers={"Host": "10.0.0.7:8000"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    told = client.get("/readyz", headers=BEARER).json()
    assert {name: one["ok"] for name, one in told.items()} == dict.fromkeys(told, True)
    assert set(told) == {"database", "data", "worker", "broker"}


def test_it_works_as_numbers(client, alice, seen, previously):
    previously(metrics_token=TOKEN)
    now = utc_now()
    FolderFacts.objects.create(person=alice, at=now, owed=2, closes=3, failed_closes=1, size=5_000, slices=7)
    ModelCalls.add("answer", failed=True, seconds=2.5, now=now)
    ModelCalls.add("answer", failed=False, seconds=1.5, now=now)
    ModelCalls.add("answer", failed=False, seconds=9.0, now=now - timedelta(days=1))
    access.folder_of(alice).state.mark_pending()
    found = metrics(client)
    assert found['previously_model_calls_total{kind="answer"}'] == 2
    assert found['previously_model_errors_total{kind="answer"}'] == 1
    assert found['previously_model_seconds_total{kind="answer"}'] == 4
    names = ("replies_owed", "closes_due", "closes_failed", "folders", "folder_bytes", "slices", "workers")
    assert [found[f"previously_{name}"] for name in names] == [2, 3, 1, 1, 5_000, 7, 1]
    assert found["previously_people_pending"] == 1
    assert 0 <= found["previously_queue_age_seconds"] < 60
    assert found["previously_disk_free_bytes"] > 0


def test_every_line_is_one_that_prometheus_reads(client, previously):
    previously(metrics_token=TOKEN)
    answer = client.get("/metrics", headers=BEARER)
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    sample = r'previously_[a-z_]+(\{[a-z]+="[a-z_]+"\})? [-+0-9.e]+'
    lines = answer.content.decode().splitlines()
    assert [line for line in lines if not re.fullmatch(rf"# (HELP|TYPE) previously_.+|{sample}", line)] == []


def test_numbers_cost_the_same_however_many_people(client, make_person, previously, django_assert_num_queries):
    previously(metrics_token=TOKEN)
    for number in range(5):
        FolderFacts.objects.create(person=make_person(f"Alice{number}"), at=utc_now())
    with django_assert_num_queries(3):
        client.get("/metrics", headers=BEARER)


@pytest.mark.parametrize(
    "said", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}, {"Authorization": "é"}]
)
@pytest.mark.parametrize("token", ["", TOKEN])
def test_without_the_token_there_are_no_numbers_and_no_reasons(client, previously, long_running, token, said):
    previously(metrics_token=token)
    assert client.get("/metrics", headers=said).status_code == 404
    answer = client.get("/readyz", headers=said)
    assert (answer.status_code, answer.content) == (503, b"not ready\n")


def test_no_worker_is_said(client, previously, long_running):
    previously(metrics_token=TOKEN, broker_url=MEMORY_BROKER)
    told = client.get("/readyz", headers=BEARER)
    assert told.status_code == 503
    assert told.json()["worker"] == {
        "ok": False,
        "what": "never seen",
        "remedy": "Start serve again. Messages are kept, and answered then.",
    }
    WorkerSeen.objects.create(name="host-1", at=utc_now() - timedelta(minutes=4))
    assert client.get("/readyz", headers=BEARER).json()["worker"]["what"].startswith("not seen since")


def test_a_worker_inside_has_a_moment_to_begin(client, previously):
    previously(broker_url=MEMORY_BROKER)
    assert client.get("/readyz").status_code == 200


def test_a_folder_that_cannot_be_written_is_said(client, seen, previously, monkeypatch):
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    previously(metrics_token=TOKEN)
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    told = client.get("/readyz", headers=BEARER)
    assert told.status_code == 503
    assert told.json()["data"]["what"] == "No space left on device"


def test_a_database_that_is_gone_is_said(client, previously, monkeypatch):
    def gone(*_: object) -> None:
        raise DatabaseError("connection refused\nIs the server running?")

    previously(metrics_token=TOKEN)
    monkeypatch.setattr(WorkerSeen.objects, "order_by", gone)
    told = client.get("/readyz", headers=BEARER)
    assert told.status_code == 503
    assert told.json()["database"]["what"] == "connection refused"


def test_a_broker_that_is_gone_is_said(client, seen, previously):
    from previously_site import celery_app

    previously(metrics_token=TOKEN, broker_url="redis://127.0.0.1:1/0")
    working = celery_app.conf.broker_url
    celery_app.conf.broker_url = "redis://127.0.0.1:1/0"
    try:
        told = client.get("/readyz", headers=BEARER)
    finally:
        celery_app.conf.broker_url = working
    assert told.status_code == 503
    assert not told.json()["broker"]["ok"]
