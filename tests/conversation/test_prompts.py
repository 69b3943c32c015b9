"""The prompts as files: strict about their holes, and complete in both languages."""

from pathlib import Path

import pytest

from memory import prompts

FILES = Path(prompts.__file__).parent
IN_TWO_LANGUAGES = sorted({path.name.split(".")[0] for path in FILES.glob("*.*.md")})


def filled(name: str, language: str, **given: str) -> str:
    return prompts.load(name, language, **{hole: f"<{hole}>" for hole in prompts.holes(name, language)} | given)


def test_it_works() -> None:
    assert "today: <today>" in filled("companion", "en")
    assert "今天：<today>" in filled("companion", "zh-hans")


def test_an_open_hole_raises() -> None:
    with pytest.raises(prompts.PromptError, match="nothing given for began"):
        prompts.load("companion", "en", **dict.fromkeys(prompts.holes("companion", "en") - {"began"}, ""))


def test_a_value_without_a_hole_raises() -> None:
    with pytest.raises(prompts.PromptError, match="no hole named weather"):
        filled("companion", "en", weather="fine")


def test_what_fills_a_hole_is_not_filled_again() -> None:
    assert "{{topics}} and {{secret}}" in filled("companion", "en", card="{{topics}} and {{secret}}")


@pytest.mark.parametrize("name", ["missing", "../folder/clock", "Companion", "companion.en", ""])
def test_only_a_prompt_of_ours_can_be_loaded(name: str) -> None:
    with pytest.raises(prompts.PromptError):
        prompts.load(name, "en")


@pytest.mark.parametrize("language", ["../en", "", "EN", "en/../en"])
def test_only_a_language_can_be_asked_for(language: str) -> None:
    with pytest.raises(prompts.PromptError):
        prompts.holes("companion", language)


@pytest.mark.parametrize("name", IN_TWO_LANGUAGES)
def test_both_languages_have_the_same_holes(name: str) -> None:
    assert prompts.holes(name, "en") == prompts.holes(name, "zh-hans")


def test_a_prompt_with_a_misspelt_hole_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.en.md").write_text("Hello {{ Name }}\n")
    monkeypatch.setattr(prompts, "_HERE", tmp_path)
    with pytest.raises(prompts.PromptError, match="a hole is written"):
        prompts.load("odd", "en")


def test_a_prompt_in_one_language_serves_every_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain_one.md").write_text('Answer with {"tags": {"new": []}} about {{text}}.\n')
    monkeypatch.setattr(prompts, "_HERE", tmp_path)
    assert prompts.load("plain_one", "zh-hans", text="跑步") == 'Answer with {"tags": {"new": []}} about 跑步.'
