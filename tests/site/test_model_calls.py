"""The counting of model calls: sums an hour and a kind, whoever adds to them at once."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, connections, transaction

from memory import tasks
from memory.llm.structured import Called
from memory.models import ModelCalls

NOW = datetime(2026, 8, 10, 21, 30, 22, tzinfo=UTC)
THREADS = 8
EACH = 10


@pytest.mark.django_db
def test_it_works() -> None:
    ModelCalls.add("turn", failed=False, seconds=0.5, now=NOW)
    ModelCalls.add("turn", failed=True, seconds=1.5, now=NOW + timedelta(minutes=29))
    ModelCalls.add("turn", failed=False, seconds=1.0, now=NOW + timedelta(minutes=30))
    ModelCalls.add("close", failed=False, seconds=2.0, now=NOW)
    rows = [(row.hour, row.kind, row.count, row.errors, row.seconds) for row in ModelCalls.objects.all()]
    hour = datetime(2026, 8, 10, 21, tzinfo=UTC)
    assert rows == [
        (hour + timedelta(hours=1), "turn", 1, 0, 1.0),
        (hour, "close", 1, 0, 2.0),
        (hour, "turn", 2, 1, 2.0),
    ]


@pytest.mark.django_db
def test_there_is_one_row_an_hour_and_kind() -> None:
    ModelCalls.objects.create(hour=NOW, kind="turn")
    with pytest.raises(IntegrityError), transaction.atomic():
        ModelCalls.objects.create(hour=NOW, kind="turn")


@pytest.mark.django_db(transaction=True)
def test_threads_that_add_at_once_lose_nothing() -> None:
    together = threading.Barrier(THREADS)

    def add() -> None:
        together.wait(30)
        for number in range(EACH):
            ModelCalls.add("answer", failed=number == 0, seconds=0.25, now=NOW)
        connections.close_all()

    threads = [threading.Thread(target=add) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (row,) = ModelCalls.objects.all()
    assert (row.count, row.errors, row.seconds) == (THREADS * EACH, THREADS, THREADS * EACH * 0.25)


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_after_counting() -> None:
    tasks.count_call(Called(kind="merge", ok=False, seconds=0.1))
    assert connection.connection is None
    (row,) = ModelCalls.objects.all()
    assert (row.kind, row.count, row.errors) == ("merge", 1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_refuses_stops_no_conversation(caplog: pytest.LogCaptureFixture) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_modelcalls RENAME TO elsewhere")
    try:
        tasks.count_call(Called(kind="turn", ok=True, seconds=0.1))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO memory_modelcalls")
    assert "is not counted" in caplog.text
