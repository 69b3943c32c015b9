"""The short pieces of the system message and of the journal's replies, in both languages."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """Sentences with named places for `str.format`; every field exists in every language."""

    called: str
    card_empty: str
    card_damaged: str
    card_more: str
    began: str
    first: str
    before: str
    before_damaged: str
    continuation: str
    card_changed: str
    timeline_none: str
    timeline_damaged: str
    topic: str
    topics_some: str
    topics_all: str
    topics_ask: str
    topics_none: str
    topics_damaged: str
    journal: str
    journal_moments: str
    journal_nothing: str


ENGLISH = Phrases(
    called="They asked to be called:",
    card_empty="Nothing is on the card yet.",
    card_damaged="The card's file is damaged and cannot be read: nothing of it is known. Say so if it matters.",
    card_more="(The card is longer than fits here: `read_card` shows the rest.)",
    began="It began on {time} ({zone}).",
    first="There is no conversation before this one on record.",
    before="The conversation before this one ended {gap} earlier, on {time}. It was about:",
    before_damaged="The conversation before this one, of {day}, cannot be read: its file is damaged.",
    continuation=(
        "That is less than a day ago, so this may be its continuation. If the person takes up that thread, go on from "
        "where it stopped and do not make them repeat themselves; read it first when you need its words. If they begin "
        "with something else, let it rest."
    ),
    card_changed="What the card took over from it:",
    timeline_none="None yet.",
    timeline_damaged="damaged, cannot be read",
    topic="last seen {day}, {ago}",
    topics_some="The {shown} of {total} topics that came up most recently:",
    topics_all="Topics that came up, the most recent first:",
    topics_ask="When the person mentions one of these, ask `recall` before you answer.",
    topics_none="None yet.",
    topics_damaged="The list of topics cannot be read. Ask `recall` when the person refers to something earlier.",
    journal="No model is configured on this server, so I cannot answer. Your words are kept.",
    journal_moments="This is your record alone. Closest to what you wrote:",
    journal_nothing="Nothing in your record is close to it yet.",
)

CHINESE = Phrases(
    called="对方希望被称作：",
    card_empty="卡片上还没有内容。",
    card_damaged="卡片文件已损坏，目前无法读取，其中的内容一概不知。必要时如实说明。",
    card_more="（卡片较长，这里放不下：`read_card` 可以看到其余部分。）",
    began="谈话始于{time}（{zone}）。",
    first="在这次之前没有任何谈话记录。",
    before="上一次谈话在{gap}前结束，时间是{time}。谈的是：",
    before_damaged="上一次谈话（{day}）无法读取：文件已损坏。",
    continuation=(
        "那还不到一天，所以这次可能是它的延续。对方若接着那个话题，就从停下的地方继续，不要让对方重复；需要原话时先去读。"
        "对方若谈别的，就不必提起。"
    ),
    card_changed="卡片从那次谈话中更新的内容：",
    timeline_none="还没有。",
    timeline_damaged="已损坏，无法读取",
    topic="上次出现：{day}，{ago}",
    topics_some="共{total}个主题，以下是最近出现的{shown}个：",
    topics_all="出现过的主题，最近的在前：",
    topics_ask="对方提到其中任何一个时，先用 `recall` 查，再回答。",
    topics_none="还没有。",
    topics_damaged="主题列表目前无法读取。对方提到以前的事时，先用 `recall` 查。",
    journal="这台服务器没有配置模型，所以我无法回答。你写的话已经保存。",
    journal_moments="以下只是你自己的记录。与这段话最接近的是：",
    journal_nothing="你的记录里还没有与之接近的内容。",
)

_PHRASES = {"en": ENGLISH, "zh-hans": CHINESE}


def phrases(language: str) -> Phrases:
    """The phrases in 'en' or 'zh-hans'."""
    return _PHRASES[language]
