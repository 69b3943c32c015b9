"""The whole team's stack on this machine, put to work and then hurt: `python -m tests.drill`."""
