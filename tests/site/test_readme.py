"""README is kept true: its settings, its two commands, its map."""

import re

from previously_site.env import SECRETS, Previously, known_variables, read, variable
from tests.served import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = README.partition("## Settings")[2].partition("\n## ")[0]


def rows() -> dict[str, str]:
    return dict(re.findall(r"^\| `(PREVIOUSLY_\w+)`(.*)$", TABLE, re.MULTILINE))


def test_it_works():
    fields = Previously.__dataclass_fields__
    assert set(rows()) == {variable(name) for name in fields}


def test_secrets_are_marked_as_such():
    marked = {name for name, rest in rows().items() if rest.lstrip().startswith("*secret*")}
    assert marked == {variable(name) for name in SECRETS}


def test_every_variable_it_names_exists():
    named = set(re.findall(r"PREVIOUSLY_[A-Z_]+[A-Z]", README))
    assert named <= known_variables()


def test_the_numbers_and_words_it_gives_are_the_defaults():
    defaults = read({}, base=ROOT)
    for name in Previously.__dataclass_fields__:
        value = getattr(defaults, name)
        said = rows()[variable(name)].split("|")[1].strip().strip("`")
        if isinstance(value, bool):
            assert said == ("on" if value else "off"), name
        elif isinstance(value, int | float):
            assert said.partition(":")[0] == f"{value:g}" or said == str(value), name
        elif value and isinstance(value, str):
            assert said == value, name


def test_the_two_commands_are_on_the_first_screen():
    first_screen = README.splitlines()[:24]
    install = "python3 -m venv .venv && .venv/bin/pip install -r"
    assert f"    {install} requirements.txt && .venv/bin/python manage.py serve" in first_screen
    assert f"    {install} tests/requirements.txt && .venv/bin/python -m pytest" in first_screen


def test_the_map_names_what_is_there():
    folders = re.findall(r"`([a-z_/]+/)`", README.partition("## Where things are")[2])
    assert len(folders) >= 9
    assert all((ROOT / folder).is_dir() for folder in folders)
