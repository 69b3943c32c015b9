"""A reply arrives as it is written through an nginx that nobody has tuned, compression on."""

import asyncio
import re
import time
from pathlib import Path

import pytest

from tests.benchmarks.browser import Browser
from tests.benchmarks.stamping import message
from tests.drill.services import NGINX, Nginx, our_site
from tests.served import Served
from tests.site.test_backup import signed_in

WORDS, A_SECOND = 80, 40
pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx on this machine: apt-get install nginx-light")


@pytest.fixture
def talker():
    """A model whose words say when they were sent."""
    import subprocess
    import sys

    from tests.served import ROOT

    command = [sys.executable, "-m", "tests.benchmarks.stamping", "--words-per-second", str(A_SECOND)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("ours", [False, True])
def test_it_works(serve, talker, tmp_path, ours):
    tmp_path.chmod(0o755)
    served: Served = serve(PREVIOUSLY_MODEL_URL=talker, PREVIOUSLY_MODEL="talker")
    nginx = Nginx(tmp_path, [int(served.url.rstrip("/").rpartition(":")[2])], ours=ours)
    nginx.start()
    try:
        session = next(cookie.value for cookie in signed_in(served) if cookie.name == "sessionid")
        words, updates = asyncio.run(_watched(Browser(nginx.url, session or "")))
    finally:
        nginx.stop()
    assert words == list(range(1, WORDS + 1))
    assert (len(updates) - 1) / (updates[-1] - updates[0]) >= 3
    assert updates[0] < 1


async def _watched(browser: Browser) -> tuple[list[int], list[float]]:
    """The words in the order they were seen first, and when updates came, counted from the model's first word."""
    path = await browser.say(message(WORDS, in_one_piece=False))
    seen: dict[int, float] = {}
    sent = 0.0
    updates: list[float] = []
    async for event in browser.watch(path):
        new = {
            int(word): int(at) / 1000
            for word, at in re.findall(r"(\d+):(\d{13})\b", event.data)
            if int(word) not in seen
        }
        if new:
            sent = sent or min(new.values())
            updates.append(time.time() - sent)
            seen |= new
    return list(seen), updates


def test_our_example_is_a_configuration_that_nginx_takes(tmp_path: Path):
    import subprocess

    tmp_path.chmod(0o755)
    assert "proxy_buffering off" in our_site(20_000, [20_001, 20_002])
    nginx = Nginx(tmp_path, [20_001, 20_002], ours=True)
    [config] = tmp_path.glob("nginx-*/nginx.conf")
    said = subprocess.run([str(NGINX), "-t", "-c", str(config)], capture_output=True, text=True, check=False)
    assert (said.returncode, nginx.port > 0) == (0, True), said.stderr
