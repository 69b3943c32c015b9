"""Every word a person can see is there in Chinese, and what is compiled is what is written."""

import re
import shutil
from pathlib import Path
from typing import Any

import polib
import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import translation

CATALOGUE = Path(settings.LOCALE_PATHS[0]) / "zh_Hans" / "LC_MESSAGES" / "django.po"
HOLE = re.compile(r"%\(\w+\)[sd]|%%s|%[sd]|<[^>]+>")


def test_it_works() -> None:
    with translation.override("zh-hans"):
        assert translation.gettext("Say something") == "说点什么"


def test_nothing_is_left_untranslated_or_unsure() -> None:
    catalogue = polib.pofile(str(CATALOGUE))
    assert [entry.msgid for entry in catalogue.untranslated_entries()] == []
    assert [entry.msgid for entry in catalogue.fuzzy_entries()] == []


def test_a_translation_has_the_holes_and_the_markup_of_its_original() -> None:
    for entry in polib.pofile(str(CATALOGUE)):
        for translated in entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]:
            assert set(HOLE.findall(translated)) == set(HOLE.findall(entry.msgid_plural or entry.msgid)), entry.msgid


def test_what_is_compiled_is_what_is_written() -> None:
    def messages(catalogue: Any) -> set[tuple[str, str, str, tuple[str, ...]]]:
        return {
            (entry.msgctxt or "", entry.msgid, entry.msgstr, tuple(map(str, entry.msgstr_plural.values())))
            for entry in catalogue
            if not entry.obsolete
        }

    assert messages(polib.mofile(str(CATALOGUE.with_suffix(".mo")))) == messages(polib.pofile(str(CATALOGUE)))


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="no xgettext on this machine: apt-get install gettext")
def test_no_string_of_the_code_is_missing(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # In a copy: the command writes into whatever catalogue it finds on its way.
    for folder in ("accounts", "memory", "previously_site", "templates"):
        shutil.copytree(settings.BASE_DIR / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    catalogue = tmp_path / CATALOGUE.relative_to(settings.BASE_DIR)
    settings.LOCALE_PATHS = [str(tmp_path / "previously_site" / "locale")]
    monkeypatch.chdir(tmp_path)
    call_command("makemessages", locale=["zh_Hans"], no_wrap=True, no_location=True, verbosity=0)
    found = polib.pofile(str(catalogue))
    assert [entry.msgid for entry in found if not entry.obsolete and not entry.translated()] == []
    assert [entry.msgid for entry in found.obsolete_entries()] == []
