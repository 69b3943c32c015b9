"""The tone of a conversation, as one of the four words we write."""

import re
from typing import Any

POSITIVE, NEUTRAL, NEGATIVE, MIXED = "positive", "neutral", "negative", "mixed"

_WORDS = {
    POSITIVE: (
        "positive happy joyful joy ecstatic excited enthusiastic hopeful optimistic cheerful upbeat grateful relieved "
        "proud content satisfied playful warm encouraging inspired delighted "
        "积极 正面 正向 开心 高兴 愉快 快乐 兴奋 乐观 期待 欣慰 满意 感激 自豪 轻松 温暖"
    ),
    NEUTRAL: (
        "neutral calm factual informative informational practical matter-of-fact objective businesslike "
        "中性 中立 平静 平和 客观 冷静 务实"
    ),
    NEGATIVE: (
        "negative sad unhappy angry anxious worried frustrated stressed upset depressed disappointed afraid fearful "
        "tense lonely hopeless annoyed overwhelmed distressed grieving "
        "消极 负面 难过 悲伤 伤心 生气 愤怒 焦虑 担心 担忧 沮丧 失望 害怕 紧张 烦躁 疲惫 痛苦 孤独"
    ),
    MIXED: "mixed ambivalent bittersweet conflicted conflicting 复杂 混合 矛盾 喜忧参半 百感交集",
}
_TONE_OF = {word: tone for tone, words in _WORDS.items() for word in words.split()}
_WORD = re.compile("|".join(sorted(map(re.escape, _TONE_OF), key=len, reverse=True)))
_LATIN = re.compile(r"[a-z-]+")
_NEGATED = re.compile(r"\b(?:not|no|non|never|isn't|hardly)\b|不|没|非", re.IGNORECASE)


def tone(value: Any) -> str | None:
    """`positive`, `neutral`, `negative` or `mixed` for a word or short phrase that means it; None for anything else.

    A phrase that names both good and bad is mixed; neutral beside one of them gives way to it.
    """
    if not isinstance(value, str) or len(value) > 200 or _NEGATED.search(value):
        return None
    text = value.casefold()
    latin = {_TONE_OF[word] for word in _LATIN.findall(text) if word in _TONE_OF}
    found = latin | {_TONE_OF[word] for word in _WORD.findall(_LATIN.sub(" ", text))}
    if MIXED in found or {POSITIVE, NEGATIVE} <= found:
        return MIXED
    return next((one for one in (POSITIVE, NEGATIVE, NEUTRAL) if one in found), None)
