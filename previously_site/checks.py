"""System checks: what the settings allow but an operator most likely did not mean, each with its remedy."""

import os
import re
import shutil
import subprocess
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from previously_site.env import unknown_variables

OLDEST_GIT = (2, 34)


@register
def variables_are_known(**_: Any) -> list[CheckMessage]:
    return [
        Warning(
            f"{name} is not a setting of Previously and has no effect.",
            hint="README lists the settings; correct the name or remove it.",
            id="previously.W001",
        )
        for name in unknown_variables(os.environ)
    ]


@register
def a_model_is_named(**_: Any) -> list[CheckMessage]:
    chosen = settings.PREVIOUSLY
    if chosen.model or not (chosen.model_url or chosen.model_key):
        return []
    return [
        Warning(
            "A model server or key is set, but no model is named, so the chat works as a journal without a model.",
            hint="Set PREVIOUSLY_MODEL to a model of that server.",
            id="previously.W002",
        )
    ]


@register
def people_can_be_told(**_: Any) -> list[CheckMessage]:
    chosen = settings.PREVIOUSLY
    if chosen.signup != "approve" or chosen.email_url:
        return []
    return [
        Warning(
            "PREVIOUSLY_SIGNUP=approve without PREVIOUSLY_EMAIL_URL: nobody is told when they are let in.",
            hint="Set PREVIOUSLY_EMAIL_URL, or tell people yourself once you have let them in.",
            id="previously.W003",
        )
    ]


@register
def git_is_new_enough(**_: Any) -> list[CheckMessage]:
    remedy = f"Install git {OLDEST_GIT[0]}.{OLDEST_GIT[1]} or newer and make sure that it is on the PATH."
    git = shutil.which("git")
    if git is None:
        return [Error("git is not installed, and every memory is kept in git.", hint=remedy, id="previously.E001")]
    said = subprocess.run([git, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        return [Error(f"git is too old: {said.strip() or 'unknown version'}.", hint=remedy, id="previously.E002")]
    return []
