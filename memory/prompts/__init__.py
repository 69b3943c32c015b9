"""The texts that are put to a model: one Markdown file a prompt, with named holes.

`companion.en.md` and `companion.zh-hans.md` are one prompt in two languages; a prompt whose language does not matter
is a single `name.md`. A hole is written `{{name}}`. Filling is strict, so that a prompt can never go out with a gap in
it, and what fills a hole is never searched for holes itself.
"""

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]+)?")
_HOLE = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")


class PromptError(Exception):
    """A prompt that does not exist, or holes that do not match what was given for them."""


def load(name: str, language: str, /, **filled: str) -> str:
    """The prompt `name` in `language` ('en', 'zh-hans') with its holes filled, without the file's last line break.

    Raises PromptError when there is no such prompt, when a hole is left open, or when a value fits no hole.
    """
    text = _text(name, language)
    wanted = holes(name, language)
    if missing := sorted(wanted - filled.keys()):
        raise PromptError(f"{name} ({language}): nothing given for {', '.join(missing)}")
    if unknown := sorted(filled.keys() - wanted):
        raise PromptError(f"{name} ({language}): no hole named {', '.join(unknown)}")
    return _HOLE.sub(lambda hole: filled[hole[1]], text)


def holes(name: str, language: str) -> frozenset[str]:
    """The names of a prompt's holes; raises PromptError when there is no such prompt."""
    return frozenset(_HOLE.findall(_text(name, language)))


@cache
def _text(name: str, language: str) -> str:
    if not _NAME.fullmatch(name) or not _LANGUAGE.fullmatch(language):
        raise PromptError(f"{name!r} ({language!r}) is no name of a prompt")
    for path in (_HERE / f"{name}.{language}.md", _HERE / f"{name}.md"):
        if path.is_file():
            text = path.read_text("utf-8").rstrip("\n")
            if "{{" in _HOLE.sub("", text):
                raise PromptError(f"{path.name}: a hole is written {{{{name}}}}, in small letters")
            return text
    raise PromptError(f"there is no prompt {name} in {language}")
