"""README is kept true: its settings, its commands, the format it shows, its map, and the order it tells them in."""

import re

from memory.folder import paths, slices
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
    folders = re.findall(r"`([a-z_/]+/)`", README.partition("## Where things are")[2].partition("\n```")[0])
    assert len(folders) >= 12
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
    top = {folder.partition("/")[0] for folder in folders}
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert there - {"data", "__pycache__"} <= top


def test_the_path_is_in_the_order_of_an_operator():
    assert re.findall(r"^## (.+)$", README, re.MULTILINE) == [
        "Connect a model",
        "Let people in",
        "Put it on a server",
        "PostgreSQL and Redis",
        "Backups",
        "Upgrades",
        "Settings",
        "Where things are",
        "How fast it is",
    ]


def test_its_commands_are_the_commands_there_are():
    files = (ROOT / "memory" / "management" / "commands").glob("*.py")
    ours = {file.stem for file in files} - {"__init__", "runserver"}  # the last is Django's, with a word of ours
    table = README.partition("## Upgrades")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `manage\.py (\w+)` \|", table, re.MULTILINE)) == ours
    of_django = {"migrate", "dumpdata", "loaddata", "changepassword"}
    assert set(re.findall(r"manage\.py ([a-z_]+)", README)) <= ours | of_django


def test_the_options_it_names_exist():
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "memory" / "management").rglob("*.py"))
    for option in ("--repair", "--administrator", "--host", "--port"):
        assert option in README
        assert f'"{option}"' in sources


def test_the_files_it_names_exist():
    named = set(re.findall(r"previously_site/deploy/[\w.-]+\w", README))
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "previously_site" / "deploy").iterdir()} >= named
    assert len(named) == 5


def test_the_format_it_shows_is_the_format():
    shown = README.partition("```\n")[2].partition("```")[0]
    places: list[str] = []
    for line in shown.splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        places = [*places[:depth], name]
        assert places[0] == "memory/"
        path = "".join(places)
        if "2026/08/10" in path and path.endswith(".md"):
            slice_id = "2026-08-10-2130"
            assert path in (
                paths.core_file(slice_id),
                paths.agent_file(slice_id),
                paths.appendix_file(slice_id),
                paths.frozen_card_file(slice_id),
            )
        elif not path.endswith("/"):
            assert path in (paths.CARD, paths.STRANDS, paths.MERGES, paths.month_file("2026-08"))


def test_the_front_matter_it_names_is_all_there_is():
    told = README.partition("The front matter of a `core.md` holds")[2].partition("; other keys")[0]
    assert set(re.findall(r"`(\w+)`", told)) == slices._KEYS
