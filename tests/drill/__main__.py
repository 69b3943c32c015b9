"""`python -m tests.drill`: a team's whole stack on this machine, put to work behind nginx, then hurt.

Web ×2, worker ×2, PostgreSQL and Redis, all our own, in a folder that goes away. First people stream, behind nginx with
our example and again with nginx's defaults; then a worker, a web process, Redis and PostgreSQL are killed in turn while
people go on talking: every acknowledged message has to be there, once, and answered after all. Ends with 1 when not.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.benchmarks import stack as single
from tests.benchmarks.browser import Browser
from tests.drill import hurting, services
from tests.drill.stack import TeamStack, running
from tests.served import ROOT, clean_environment

SECONDS_TO_BE_READY = 120


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drill", description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600, help="how long people stream, for each nginx")
    parser.add_argument("--words-per-second", type=float, default=40)
    parser.add_argument("--only", choices=("streams", "hurt"), help="hold one half of the drill")
    options = parser.parse_args()
    if missing := services.missing():
        print(f"The drill needs {', '.join(missing)} on this machine: {services.INSTALL}", file=sys.stderr)
        return 2
    good = True
    if options.only != "hurt":
        for ours in (True, False):
            good = _stream(options, ours=ours) and good
    if options.only != "streams":
        good = _hurt(options) and good
    return 0 if good else 1


def _stream(options: argparse.Namespace, *, ours: bool) -> bool:
    """People stream through nginx; whether each kept up and nothing was lost."""
    port = services.free_port()
    with _folder() as name, running(Path(name), f"http://127.0.0.1:{port}/v1", ours=ours) as stack:
        print(f"\n== nginx with {'our example' if ours else 'its defaults'}", flush=True)
        _wait_until_ready(stack)
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.streams",
            "--url",
            stack.nginx.url,
            "--model-port",
            str(port),
        ]
        command += ["--pids", ",".join(map(str, stack.pids)), "--people", str(options.people)]
        command += ["--seconds", str(options.seconds), "--words-per-second", str(options.words_per_second)]
        environment = clean_environment(stack.data, stack.settings)
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        _show_troubles(stack)
        return done.returncode == 0 and "**no**" not in done.stdout


def _hurt(options: argparse.Namespace) -> bool:
    """Kill each in turn; whether every acknowledged message is there once and answered, and people were told."""
    model = [sys.executable, "-m", "tests.benchmarks.stamping", "--words-per-second", str(options.words_per_second)]
    with subprocess.Popen(model, cwd=ROOT, stdout=subprocess.PIPE, text=True) as talker, _folder() as name:
        try:
            assert talker.stdout is not None
            with running(Path(name), talker.stdout.readline().strip(), ours=True) as stack:
                print("\n== killing each in turn", flush=True)
                _wait_until_ready(stack)
                return _hurt_and_count(stack, options.people)
        finally:
            talker.kill()


def _hurt_and_count(stack: TeamStack, number: int) -> bool:
    single.open_data(stack.data, stack.settings)
    from django.db import close_old_connections, connections

    people = [single.make_person(f"Alice-{os.getpid()}-{one}") for one in range(number)]
    browsers = [Browser(stack.nginx.url, single.sign_in(person)) for person in people]
    connections.close_all()
    said, _ = asyncio.run(hurting.hurt(stack, browsers))
    begun = time.monotonic()
    close_old_connections()
    found = hurting.count(people, said)
    delayed: Counter[str] = sum((one.delayed for one in said), Counter())
    refused: Counter[str] = sum((one.refused for one in said), Counter())
    waited = time.monotonic() - begun
    print(f"acknowledged {found.acknowledged}, lost {found.lost}, doubled {found.doubled}")
    print(f"unanswered {found.unanswered} after {waited:.0f} s, folders unsound {found.unsound}")
    print(f"told that replies are delayed: {dict(delayed)}")
    print(f"not taken, and said so: {dict(refused)}", flush=True)
    _show_troubles(stack)
    told = delayed["Redis"] > 0
    return told and found.acknowledged > 0 and not (found.lost or found.doubled or found.unanswered or found.unsound)


def _wait_until_ready(stack: TeamStack) -> None:
    until = time.monotonic() + SECONDS_TO_BE_READY
    while not stack.ready():
        if time.monotonic() > until:
            _show_troubles(stack)
            raise SystemExit("the stack did not become ready")
        time.sleep(0.5)


def _show_troubles(stack: TeamStack) -> None:
    """Each thing that our processes complained of, and how often."""
    for log in sorted(stack.logs.glob("*.log")):
        complaints = [line for line in log.read_text("utf-8", "replace").splitlines() if '"level": "error"' in line]
        if complaints:
            print(f"{log.name}: {len(complaints)} errors, the first: {complaints[0][:400]}")


def _folder() -> "tempfile.TemporaryDirectory[str]":
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="previously-drill-")
    Path(folder.name).chmod(0o755)  # PostgreSQL and nginx run as users of their own
    return folder


if __name__ == "__main__":
    sys.exit(main())
