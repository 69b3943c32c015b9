"""A short run of the trials, so that the harness itself keeps working; the long ones are started by hand."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.folder.paths import core_file
from tests.conversation.talk import Talk
from tests.killing.fuse import PLACES
from tests.killing.ledger import Ledger, Said, broken_promises
from tests.served import ROOT, clean_environment

NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="finds the processes to kill in /proc, which this system lacks"
)


def run(tmp_path: Path, *arguments: str) -> str:
    """The table that a run prints; fails with all it printed when a promise was broken."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.killing", "--seed", "7", *arguments],
        cwd=ROOT,
        env=clean_environment(tmp_path, {"TMPDIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@NEEDS_PROC
def test_it_works(tmp_path: Path) -> None:
    table = run(tmp_path, "--trials", "18")
    at_steps = dict(re.findall(r"^(\w+) +\d+ +(\d+) +\d+ +0$", table, re.MULTILINE))
    assert set(at_steps) == {"time", *PLACES, "all"}
    assert int(at_steps["all"]) >= 12
    assert not list(tmp_path.glob("previously-killing-*"))


def test_a_lost_message_a_lost_commit_and_a_stray_lock_are_found(tmp_path: Path) -> None:
    """What looks for broken promises can find them."""
    talk = Talk(tmp_path)
    taken = talk.say("m1-1 Hello")
    talk.folder.state.clear_pending()
    ledger = Ledger(said=[Said(taken.slice_id, taken.turn_id, "m1-1 Hello")])
    assert broken_promises(talk.folder, ledger, talk.clock, derived_too=False) == []
    ledger.commits.add("0" * 40)
    path = talk.folder.root / core_file(taken.slice_id)
    path.write_text(path.read_text().replace("m1-1 Hello", "m1-1 Help"))
    (talk.folder.root / ".git" / "index.lock").touch()
    os.utime(talk.folder.root / ".git" / "index.lock")
    found = "\n".join(broken_promises(talk.folder, ledger, datetime(2026, 8, 11, tzinfo=UTC), derived_too=False))
    for sign in ("m1-1 is there 0 times", "is lost", "index.lock stays", "status:  M"):
        assert sign in found
