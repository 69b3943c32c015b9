"""The timer of the sweep."""

import threading

import pytest

from memory import tasks
from previously_site import sweeping


@pytest.fixture
def stopping(monkeypatch):
    """A flag for one test, and no pause between two sweeps."""
    flag = threading.Event()
    monkeypatch.setattr(sweeping, "stopping", flag)
    monkeypatch.setattr(sweeping, "SECONDS_BETWEEN", 0)
    return flag


@pytest.mark.django_db(transaction=True)
def test_it_works(stopping, monkeypatch):
    swept: list[int] = []

    def sweep() -> None:
        swept.append(1)
        if len(swept) == 3:
            stopping.set()

    monkeypatch.setattr(tasks, "sweep_now", sweep)
    sweeping.start().join(10)
    assert len(swept) == 3


@pytest.mark.django_db(transaction=True)
def test_a_failing_sweep_does_not_end_the_timer(stopping, monkeypatch, caplog):
    swept: list[int] = []

    def sweep() -> None:
        swept.append(1)
        if len(swept) == 1:
            raise OSError("No space left on device")
        stopping.set()

    monkeypatch.setattr(tasks, "sweep_now", sweep)
    sweeping.start().join(10)
    assert len(swept) == 2
    assert "The sweep failed" in caplog.text
