"""`manage.py serve` as people run it: a real process on a free port."""

import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from previously_site import serving
from tests.served import ROOT, Served, clean_environment


def get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_works(serve):
    served: Served = serve()
    assert served.url.startswith("http://127.0.0.1:")
    assert get(f"{served.url}healthz") == (200, "ok\n")
    assert get(f"{served.url}accounts/login/")[0] == 200
    assert get(f"{served.url}static/django_htmx/htmx-2.min.js")[0] == 200
    status, page = get(served.link)
    assert status == 200
    assert 'name="called"' in page
    assert stat.S_IMODE(served.data_dir.stat().st_mode) == 0o700
    began = time.monotonic()
    assert served.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 8
    assert "Traceback" not in served.output
    assert "/first/" not in served.output.replace(served.link, "")


def test_control_c_stops_it_with_a_connection_open(serve):
    served: Served = serve()
    host, port = served.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port))) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")  # never finished
        began = time.monotonic()
        assert served.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 8


def test_two_servers_on_one_new_data_folder_migrate_one_after_the_other(tmp_path):
    both = [Served(tmp_path / "data", {}) for _ in range(2)]
    try:
        for served in both:
            served.wait_until_ready()
    finally:
        for served in both:
            served.kill()
    assert all("Traceback" not in served.output for served in both)
    links = {served.link for served in both}
    assert len(links) == 2


def test_a_taken_port_is_said_in_one_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "serve", "--port", str(port)],
            cwd=ROOT,
            env=clean_environment(tmp_path, {}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is taken" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_address_asked_for_is_answered(tmp_path):
    served = Served(tmp_path / "data", {}, "--host", "127.0.0.2")
    try:
        served.wait_until_ready()
        assert get(f"{served.url}accounts/login/")[0] == 200
    finally:
        served.kill()


def test_the_worker_is_named_when_it_is_elsewhere(tmp_path):
    served = Served(tmp_path / "data", {"PREVIOUSLY_BROKER_URL": "redis://127.0.0.1:1/0"})
    try:
        served.wait_until_ready()
        assert "celery -A previously_site worker" in served.output
        assert served.stop() == 0
    finally:
        served.kill()


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/"),
        ("0.0.0.0", "http://localhost:8000/"),
        ("::", "http://localhost:8000/"),
        ("::1", "http://[::1]:8000/"),
    ],
)
def test_the_address_printed_can_be_opened(host, shown):
    assert serving.address(host, 8000) == shown


@pytest.mark.parametrize(("host", "port"), [("no-such-host.invalid", 0), ("203.0.113.1", 0)])
def test_an_address_that_is_not_ours_is_refused(host, port):
    with pytest.raises(serving.AddressUnusable):
        serving.listen(host, port)
