"""The settings of a test run: a data folder of its own, and nothing of the environment it is started from.

PREVIOUSLY_TEST_STACK=postgres-redis runs the same suite on PostgreSQL and Redis, which have to be up; where they are
is said by PREVIOUSLY_TEST_DATABASE_URL and PREVIOUSLY_TEST_BROKER_URL.
"""

import atexit
import os
import shutil
import tempfile

STACK = os.environ.get("PREVIOUSLY_TEST_STACK", "sqlite-memory")
STACKS = {
    "sqlite-memory": {},
    "postgres-redis": {
        "PREVIOUSLY_DATABASE_URL": os.environ.get(
            "PREVIOUSLY_TEST_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres"
        ),
        "PREVIOUSLY_BROKER_URL": os.environ.get("PREVIOUSLY_TEST_BROKER_URL", "redis://127.0.0.1:6379/9"),
    },
}
if STACK not in STACKS:
    raise SystemExit(f"PREVIOUSLY_TEST_STACK is {STACK!r}: use one of {', '.join(STACKS)}.")

for _name in list(os.environ):
    if _name.startswith(("PREVIOUSLY_", "OPENAI_")):
        del os.environ[_name]
_data = tempfile.mkdtemp(prefix="previously-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ |= STACKS[STACK] | {"PREVIOUSLY_DATA_DIR": _data}

from previously_site.settings import *  # noqa: E402, F403 - the environment comes first

if STACK == "sqlite-memory":
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# Signing in a few hundred times must not take a minute; the real one is used by the served process.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
