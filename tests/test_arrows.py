"""Which part of the project may import which: the arrows run one way."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("memory", "accounts", "previously_site")

# For each part, what it must not import, and what it may nevertheless.
FORBIDDEN = {
    "memory/folder": (
        ["django", "celery", "openai", "httpx", "requests", "urllib.request", "http", "socket", "asyncio", *OURS],
        ["memory.folder"],
    ),
    "memory/llm": (["django", "celery", *OURS], ["memory.llm"]),
    "memory/conversation": (
        ["django", "celery", "openai", *OURS],
        ["memory.conversation", "memory.folder", "memory.llm", "memory.prompts"],
    ),
    "memory/prompts": (["django", "celery", *OURS], ["memory.prompts"]),
    "accounts": (["memory"], ["memory.access"]),
}


def imports(file: Path, root: Path) -> Iterator[str]:
    """Yield the dotted names a file imports; `from a import b` gives `a.b`, since b may be a module."""
    package = file.relative_to(root).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*parts, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def within(name: str, modules: list[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def wrong_arrows(root: Path, part: str) -> list[str]:
    forbidden, allowed = FORBIDDEN[part]
    return [
        f"{file.relative_to(root)} imports {name}"
        for file in sorted((root / part).rglob("*.py"))
        for name in imports(file, root)
        if within(name, forbidden) and not within(name, allowed)
    ]


def importers_of_views(root: Path) -> list[str]:
    own = ("memory/views", "memory/urls.py")
    return [
        f"{file.relative_to(root)} imports {name}"
        for part in OURS
        for file in sorted((root / part).rglob("*.py"))
        if not file.relative_to(root).as_posix().startswith(own)
        for name in imports(file, root)
        if within(name, ["memory.views"])
    ]


def test_it_works():
    found = set(imports(ROOT / "memory/folder/slices.py", ROOT))
    assert {"re", "yaml"} & found == {"re"}
    assert {"memory.folder.frontmatter", "memory.folder.turns.Entry", "dataclasses.dataclass"} <= found


@pytest.mark.parametrize("part", FORBIDDEN)
def test_arrows_run_one_way(part):
    assert any((ROOT / part).rglob("*.py"))
    assert wrong_arrows(ROOT, part) == []


def test_nothing_imports_the_views():
    assert importers_of_views(ROOT) == []


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("memory/folder", "import django.utils.timezone"),
        ("memory/folder", "from memory import llm"),
        ("memory/folder", "from ..conversation import receive"),
        ("memory/folder", "def f():\n    from previously_site import env"),
        ("memory/llm", "from memory.folder.turns import Entry"),
        ("memory/conversation", "from django.conf import settings"),
        ("memory/conversation", "from memory.access import folder_of"),
        ("memory/conversation", "from .. import tasks"),
        ("accounts", "from memory.models import FolderFacts"),
    ],
)
def test_a_wrong_arrow_is_found(tmp_path, part, source):
    file = tmp_path / part / "wrong.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    assert len(wrong_arrows(tmp_path, part)) == 1


@pytest.mark.parametrize(
    "source", ["from memory.views.chat import chat", "from memory import views", "from . import views"]
)
def test_an_importer_of_views_is_found(tmp_path, source):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "tasks.py").write_text(source)
    assert len(importers_of_views(tmp_path)) == 1


@pytest.mark.parametrize("package", ["folder", "llm", "conversation"])
def test_every_module_loads_without_django(package):
    modules = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in sorted((ROOT / "memory" / package).rglob("*.py"))
    ]
    code = f"import sys; sys.modules['django'] = None; import {', '.join(modules)}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
