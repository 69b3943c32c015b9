"""System checks name what is wrong and the remedy; settings that cannot be used stop the start in one sentence."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from previously_site import checks
from previously_site.logs import JsonFormatter
from tests.served import ROOT, clean_environment


def manage(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean_environment(tmp_path, environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_works(tmp_path):
    done = manage(tmp_path, "check")
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.parametrize(
    ("name", "value"), [("PREVIOUSLY_DEBUG", "perhaps"), ("PREVIOUSLY_DATABASE_URL", "mysql://u:s3cret@h/d")]
)
def test_a_wrong_setting_stops_the_start_without_a_traceback(tmp_path, name, value):
    done = manage(tmp_path, "check", **{name: value})
    assert done.returncode == 1
    assert done.stderr.startswith(f"Previously cannot start. {name}")
    assert len(done.stderr.splitlines()) == 1
    assert "s3cret" not in done.stderr


def test_a_misspelt_setting_is_a_warning(tmp_path):
    done = manage(tmp_path, "check", PREVIOUSLY_MODELL="x")
    assert done.returncode == 0
    assert "PREVIOUSLY_MODELL is not a setting of Previously" in done.stderr


def test_behind_tls_the_deployment_check_finds_nothing(tmp_path):
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", PREVIOUSLY_TRUSTED_PROXIES="1")
    assert done.returncode == 0, done.stderr


def test_no_migration_is_missing(tmp_path):
    done = manage(tmp_path, "makemigrations", "--check", "--dry-run", "accounts")
    assert done.returncode == 0, done.stdout


def test_the_worker_refuses_another_process_s_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "previously_site", "worker"],
        cwd=ROOT,
        env=clean_environment(tmp_path, {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "the worker runs inside `manage.py serve`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_without_a_model_is_pointed_out(previously):
    previously(model="", model_url="http://localhost:9/v1")
    [warning] = checks.a_model_is_named()
    assert "PREVIOUSLY_MODEL" in warning.hint
    previously(model="small")
    assert checks.a_model_is_named() == []


@pytest.mark.parametrize(("policy", "warnings"), [("open", 0), ("closed", 0), ("invite", 0), ("approve", 1)])
def test_people_who_would_not_be_told_are_pointed_out(previously, policy, warnings):
    previously(signup=policy)
    assert len(checks.people_can_be_told()) == warnings
    previously(signup=policy, email_url="console://")
    assert checks.people_can_be_told() == []


@pytest.mark.parametrize(("version", "found"), [("git version 2.33.1", 1), ("git version 2.34.0", 0), ("nonsense", 1)])
def test_an_old_git_is_an_error(tmp_path, monkeypatch, version, found):
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\necho '{version}'\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert len(checks.git_is_new_enough()) == found


def test_a_missing_git_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [error.id for error in checks.git_is_new_enough()] == ["previously.E001"]


def test_a_log_line_can_be_json():
    record = logging.LogRecord("memory.tasks", logging.WARNING, "", 0, "slice %s", ("2026-08-10-2130",), None)
    line = JsonFormatter().format(record)
    assert '"level": "warning", "logger": "memory.tasks", "message": "slice 2026-08-10-2130"' in line
