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
    copy = tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po"
    copy.parent.mkdir(parents=True)
    shutil.copy(CATALOGUE, copy)
    settings.LOCALE_PATHS = [str(tmp_path)]
    monkeypatch.chdir(settings.BASE_DIR)
    ignored = ["tests", "data", ".venv", "venv"]
    call_command(
        "makemessages", locale=["zh_Hans"], ignore_patterns=ignored, no_wrap=True, no_location=True, verbosity=0
    )
    found = polib.pofile(str(copy))
    assert [entry.msgid for entry in found if not entry.obsolete and not entry.translated()] == []
    assert [entry.msgid for entry in found.obsolete_entries()] == []
