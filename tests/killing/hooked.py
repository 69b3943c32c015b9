"""`python -m tests.killing.hooked manage.py serve …`: a program of ours, with a fuse if the environment has one.

`manage.py`, `uvicorn` and `celery` are started as they would be by hand.
"""

import os
import runpy
import sys

from tests.killing.fuse import VARIABLE, from_text, light
from tests.served import ROOT


def main() -> None:
    program, *arguments = sys.argv[1:]
    if text := os.environ.pop(VARIABLE, ""):
        light(from_text(text), died=lambda where: print(f"died at {where}", file=sys.stderr, flush=True))
    sys.argv = [program, *arguments]
    if program == "manage.py":
        runpy.run_path(str(ROOT / program), run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
