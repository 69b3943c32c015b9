"""What Alice and her companion talk about: topics by the thousand, and sentences in English and Chinese."""

import random
from itertools import islice

_NOUNS = (
    "running", "sleep", "kitchen", "garden", "budget", "guitar", "Lisbon", "thesis", "bread", "cycling", "tax return",
    "choir", "bicycle", "balcony", "Portuguese", "reading", "insurance", "allotment", "swimming", "photography",
    "migraine", "hiking", "worktop", "heating", "flat hunt", "piano", "chess", "sourdough", "grandmother",
    "beekeeping",
    "woodwork", "marathon", "meditation", "savings", "novel", "pottery", "sailing", "dentist", "interview", "wedding",
    "newsletter", "compost", "violin", "archive", "greenhouse", "astronomy", "calligraphy", "sewing",
)  # fmt: skip
_ASPECTS = (
    "plan", "costs", "routine", "questions", "books", "friends", "gear", "progress", "doubts", "calendar", "notes",
    "teacher", "course", "trip", "goals", "repairs", "ideas", "mistakes", "memories", "contract", "deadline",
    "photos",
    "group", "rules", "tools", "history", "lessons", "habit", "schedule", "review", "budget", "letters", "list",
    "visit", "results", "weekend", "summer", "winter", "morning", "evening", "research", "draft", "first steps",
    "setback", "advice", "meeting", "practice", "journal", "decision", "paperwork", "shopping", "storage", "layout",
    "colours", "sound",
)  # fmt: skip
_CHINESE_NOUNS = (
    "跑步", "睡眠", "厨房", "花园", "预算", "吉他", "论文", "面包", "骑行", "报税", "合唱", "阳台", "葡语", "阅读",
    "保险", "游泳", "摄影",
    "偏头痛", "徒步", "暖气", "租房", "钢琴", "象棋", "外婆", "养蜂", "木工", "马拉松", "冥想", "储蓄", "小说",
    "陶艺", "帆船", "面试",
    "婚礼", "书法", "缝纫", "天文", "堆肥",
)  # fmt: skip
_CHINESE_ASPECTS = (
    "计划", "费用", "习惯", "问题", "书单", "朋友", "装备", "进展", "疑虑", "日程", "笔记", "老师", "课程", "旅行",
    "目标", "维修", "想法",
    "错误", "回忆", "合同", "期限", "照片", "小组", "规则", "工具", "历史", "练习", "复盘", "信件", "清单", "拜访",
    "结果", "周末", "草稿",
    "建议", "决定",
)  # fmt: skip

_SAID = (
    "I have been thinking about the {topic} again. It is going better than in spring, but I keep putting off the one "
    "thing that matters.",
    "Quick question on the {topic}: would you rather start small now or wait until the end of the month?",
    "Bob called. He says the {topic} is not worth the money, and I half agree with him.",
    "Here is where the {topic} stands:\n\n- the first part is done\n- the second waits for an answer\n- the third I "
    "would like to drop",
    "What did we say about the {topic} the last time? I remember that there was a number.",
    "Long day. The {topic} took three hours instead of one, and in the end nothing was finished. Still, I learned how "
    "it works, and that counts for something.",
    "Can you help me to put the {topic} into a few sentences that I can send to Charlie?",
    "It is settled: for the {topic} I take the cheaper one, and the rest goes into the savings.",
)
_SAID_CHINESE = (
    "我又在想{topic}的事。比春天好一些，可是最要紧的那一步还是一拖再拖。",
    "关于{topic}想问一下：是现在先从小处开始，还是等到月底再说？",
    "Bob 打电话来，说{topic}不值这个钱，我有一半同意他。",
    "{topic}现在是这样：\n\n- 第一部分做完了\n- 第二部分在等回音\n- 第三部分我想放弃",
    "上次我们说到{topic}的时候，是不是定了一个数字？",
    "今天真长。{topic}花了三个小时，最后什么也没做完。不过总算弄懂了，也不算白费。",
)
_ANSWERED = (
    "That sounds like the {topic} is past its hardest point. The thing you put off is the one with a date, so I would "
    "do it first and let the rest follow.",
    "Two things speak for starting now: you have the time this week, and what you learn from the first try changes "
    "what comes after it.\n\n1. choose the smallest piece\n2. do it on Saturday\n3. look at it again on Sunday evening",
    "He may be right about the price and wrong about the worth. What would you miss if the {topic} were gone tomorrow?",
    "You had a number in mind: **about 900**, with a little room above it. The reason you gave was that the other one "
    "would have to be replaced after two years anyway.",
    "Three hours is a lot, and still it is the kind of work that is only slow once. What would make the next hour on "
    "the {topic} easier?",
    "Here is a version you could send:\n\n> I have decided about the {topic}. The cheaper one is good enough, and I "
    "would rather keep the difference for the summer. Thank you for thinking it through with me.",
)
_ANSWERED_CHINESE = (
    "听起来{topic}最难的一段已经过去了。拖着的那件事有期限，所以先做它，别的会跟上来。",
    "现在开始有两个好处：这周你有时间，而且第一次试过之后，后面的做法会不一样。\n\n"
    "1. 选最小的一块\n2. 星期六做\n3. 星期天晚上再看一遍",
    "价钱他也许说得对，值不值就不一定了。要是明天没有了{topic}，你会想念什么？",
    "你当时想的是**九百左右**，可以再宽一点。你说的理由是，另一种两年以后反正要换。",
    "三个小时是很多，不过这种事只有第一次慢。怎样能让{topic}的下一个小时轻松一些？",
)

THOUGHTS = (
    "Alice sounds tired. First say what has been reached, then one question.",
    "She asks for a number; it was named earlier. Give it with the reason.",
    "先说已经做到的，再问一个问题。",
)


def topics(count: int) -> list[str]:
    """The first `count` topics, two of three in English; raises ValueError when there are not as many."""
    english = [*_NOUNS, *(f"{noun} {aspect}" for aspect in _ASPECTS for noun in _NOUNS)]
    chinese = [*_CHINESE_NOUNS, *(noun + aspect for aspect in _CHINESE_ASPECTS for noun in _CHINESE_NOUNS)]
    turns = zip(english[0::2], english[1::2], chinese, strict=False)
    found = list(islice((topic for three in turns for topic in three), count))
    if len(found) < count:
        raise ValueError(f"there are only {len(found)} topics")
    return found


def is_chinese(topic: str) -> bool:
    return topic[0] > "\u2e80"


def said(topic: str, chance: random.Random) -> str:
    """What the person says about a topic, one to three paragraphs."""
    return _paragraphs(_SAID_CHINESE if is_chinese(topic) else _SAID, topic, chance, at_most=2)


def answered(topic: str, chance: random.Random) -> str:
    """What the companion replies."""
    return _paragraphs(_ANSWERED_CHINESE if is_chinese(topic) else _ANSWERED, topic, chance, at_most=4)


def _paragraphs(sentences: tuple[str, ...], topic: str, chance: random.Random, *, at_most: int) -> str:
    chosen = chance.sample(sentences, chance.randint(1, at_most))
    return "\n\n".join(sentence.format(topic=topic) for sentence in chosen)
