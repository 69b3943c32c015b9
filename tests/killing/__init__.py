"""Killing what works on a folder, with SIGKILL, and looking at what is left: `python -m tests.killing --help`."""
