"""What every test may ask for: the cast, a data folder of its own, signed-in clients, changed settings, a browser."""

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.core.cache import cache
from django.test import Client

from accounts.models import User
from tests.served import Served

# On a shared machine the same examples each time and no clock over them; new examples are found where people work.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

PASSWORD = "a-long-walk-by-the-sea"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        reason = "no Chromium on this machine: apt-get install chromium"
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def previously(settings: Any) -> Callable[..., None]:
    """Change settings of `settings.PREVIOUSLY` for one test: `previously(signup="open")`."""

    def change(**fields: Any) -> None:
        settings.PREVIOUSLY = dataclasses.replace(settings.PREVIOUSLY, **fields)

    return change


@pytest.fixture
def data_dir(tmp_path: Path, settings: Any, previously: Callable[..., None]) -> Path:
    """An empty data folder for one test."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    previously(data_dir=folder, cache_dir=folder / "cache")
    settings.DATA_DIR = folder
    return folder


@pytest.fixture
def _clean_cache() -> Iterator[None]:
    """Attempts counted by one test must not lock out the next."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def make_person(db: None, data_dir: Path, _clean_cache: None) -> Callable[..., User]:
    """Make an account: `make_person("Alice", timezone="Asia/Shanghai")`; its address is alice@example.org."""

    def make(called: str, **fields: Any) -> User:
        return User.objects.create_user(f"{called.lower()}@example.org", PASSWORD, called=called, **fields)

    return make


@pytest.fixture
def alice(make_person: Callable[..., User]) -> User:
    return make_person("Alice", timezone="Europe/Berlin")


@pytest.fixture
def bob(make_person: Callable[..., User]) -> User:
    return make_person("Bob", timezone="Asia/Shanghai", language="zh-hans")


@pytest.fixture
def charlie(make_person: Callable[..., User]) -> User:
    """The stranger, who must see nothing of the others."""
    return make_person("Charlie")


@pytest.fixture
def dana(make_person: Callable[..., User]) -> User:
    """The administrator."""
    return make_person("Dana", is_staff=True, is_superuser=True)


@pytest.fixture
def as_person() -> Callable[[User], Client]:
    """A client that is signed in: `as_person(alice).get("/")`."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return signed_in


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start `manage.py serve` as a process on a free port: `serve(PREVIOUSLY_SIGNUP="open").url`."""
    started: list[Served] = []

    def start(**environment: str) -> Served:
        served = Served(tmp_path / "served", environment)
        started.append(served)
        served.wait_until_ready()
        return served

    yield start
    for served in started:
        served.kill()
