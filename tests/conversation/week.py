"""A week of Alice's talk, in the two languages she thinks in, and what a good model would make of each part of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.folder.paths import path_of, slice_id_at
from memory.folder.slices import render
from tests.conversation.filled import CountedTalk, added, filled, form
from tests.conversation.folders import a_slice, utc
from tests.model_server.answers import Rule


@dataclass(frozen=True, kw_only=True)
class Told:
    """One slice: when it began, what Alice said with the turn ids her page carried, its marks, its card changes."""

    at: datetime
    turns: Sequence[tuple[str, str]]
    marks: dict[str, Any]
    card: Sequence[dict[str, Any]] = ()
    evolution: str = ""

    @property
    def slice_id(self) -> str:
        return slice_id_at(self.at)


def _marks(focus: str, summary: str, *tags: str, tone: str = "neutral", **more: list[str]) -> dict[str, Any]:
    return {"focus": focus, "summary": summary, "tags": list(tags), "emotional_tone": tone, **more}


STALE = Told(
    at=utc(2026, 7, 28, 9, 12),
    turns=[("pPh001", "I need new passport photos before Friday.")],
    marks=_marks("Passport photos before Friday", "A machine at the station will do.", "passport photos"),
)

WEEK = (
    Told(
        at=utc(2026, 8, 17, 9, 5),
        turns=[
            ("mNda01", "I signed up for the half marathon in Lisbon. #running"),
            ("mNda02", "Bob wants to run it with me."),
        ],
        marks=_marks(
            "Signing up for the half marathon in Lisbon", "Bob may come along.",
            "half marathon", "running", "bob", tone="positive", open_loops=["Whether Bob signs up"],
        ),
        card=[added("2026/08/17/0905", "mNda01", "half marathon in Lisbon", "Trains for the half marathon in Lisbon")],
        evolution="You train for a half marathon in Lisbon.",
    ),
    Told(
        at=utc(2026, 8, 17, 20, 41),
        turns=[("mNnt01", "厨房要重新装修了，台面用橡木还是石英石？"), ("mNnt02", "预算两万左右。")],
        marks=_marks(
            "厨房台面选橡木还是石英石", "预算两万左右，还没定。", "厨房装修", "台面", "预算",
            open_loops=["台面用什么材料"],
        ),
    ),
    Told(
        at=utc(2026, 8, 18, 7, 30),
        turns=[("tUes01", "Slept badly again, four hours."), ("tUes02", "Perhaps too much coffee in the evening.")],
        marks=_marks(
            "A fourth bad night", "Coffee in the evening may be to blame.",
            "sleep", "coffee", "evenings", tone="negative",
        ),
    ),
    Told(
        at=utc(2026, 8, 18, 21, 2),
        turns=[("tUnt01", "今天半程马拉松的训练跑了12公里，膝盖有点疼。")],
        marks=_marks("半马训练跑了12公里", "膝盖有点疼，先休息两天。", "半程马拉松", "膝盖", tone="mixed"),
    ),
    Told(
        at=utc(2026, 8, 19, 8, 15),
        turns=[("wEds01", "The joiner sent an offer for the kitchen renovation: 900 euros for oak.")],
        marks=_marks(
            "The joiner's offer for oak", "900 euros.",
            "kitchen renovation", "joiner", "worktop", decisions=["Oak"],
        ),
    ),
    Told(
        at=utc(2026, 8, 19, 19, 50),
        turns=[("wEnt01", "Kitchen renovaton again: the tiles are late."), ("wEnt02", "Two weeks, they say.")],
        marks=_marks(
            "The tiles are late", "Two weeks more.", "kitchen renovaton", "tiles", "deliveries", tone="negative"
        ),
    ),
    Told(
        at=utc(2026, 8, 20, 12, 0),
        turns=[("tHur01", "Mother's birthday is on Sunday. What could I give her?")],
        marks=_marks("A present for her mother", "A fountain pen, perhaps.", "mother", "birthdays", "fountain pens"),
    ),
    Told(
        at=utc(2026, 8, 20, 22, 18),
        turns=[("tHnt01", "读完了《三体》，想聊聊黑暗森林。"), ("tHnt02", "也想重看一遍电视剧。")],
        marks=_marks("聊《三体》的黑暗森林", "书读完了，想再看一遍电视剧。", "三体", "科幻", "电视剧", tone="positive"),
    ),
    Told(
        at=utc(2026, 8, 21, 9, 33),
        turns=[
            ("fRid01", "My manager asked whether I want to lead the data team."),
            ("fRid02", "I said I would think."),
        ],
        marks=_marks(
            "Whether to lead the data team", "She will think about it.",
            "data team", "career", "manager", "leadership", tone="mixed", open_loops=["Whether to lead the data team"],
        ),
        card=[added("2026/08/21/0933", "fRid01", "lead the data team", "Was asked to lead the data team")],
        evolution="You were asked to lead the data team.",
    ),
    Told(
        at=utc(2026, 8, 21, 20, 20),
        turns=[("fRnt01", "学了四个葡萄牙语动词，去里斯本用得上。")],
        marks=_marks("学葡萄牙语动词", "为里斯本之行准备。", "葡萄牙语", "里斯本", "旅行", "动词"),
    ),
    Told(
        at=utc(2026, 8, 22, 10, 10),
        turns=[("sAtu01", "Long run today for the HM, 16 km, the knee held."), ("sAtu02", "New shoes, too.")],
        marks=_marks(
            "A long run of 16 km", "The knee held.", "marathon training", "running shoes", "膝盖", tone="positive"
        ),
    ),
    Told(
        at=utc(2026, 8, 23, 11, 45),
        turns=[("sUnd01", "Mother loved the fountain pen."), ("sUnd02", "I decided to lead the data team.")],
        marks=_marks(
            "The pen was right, and she will lead the team", "Two good decisions.",
            "mother", "fountain pens", "data team", "family lunch", "cake", "tea",
            tone="positive", decisions=["To lead the data team"],
        ),
        card=[
            {
                "op": "replace", "section": "Now", "old": "Was asked to lead the data team",
                "text": "Is going to lead the data team", "past": "",
                "receipts": [{"receipt": "2026/08/23/1145#sUnd02", "quote": "I decided to lead the data team"}],
            }
        ],
        evolution="You decided to lead the data team.",
    ),
)  # fmt: skip

OLD = (
    ("2026-05-03-0800", "Half marathon or not?", _marks("Whether to run at all", "Undecided.", "half marathon")),
    ("2026-05-11-1930", "想学一门外语。", _marks("想学一门外语", "还没选。", "葡萄牙语")),
    ("2026-06-02-0715", "The bicycle has a flat tyre.", _marks("A flat tyre", "Mended.", "bicycle")),
    ("2026-06-20-2210", "Nothing much today.", _marks("A quiet day", "Nothing much.")),
)
"""Slices that were put into the folder by hand, closed and without marks: id, words, what a model makes of them."""

MERGES = [
    {"from": "半程马拉松", "to": "half marathon"},
    {"from": "marathon training", "to": "half marathon"},
    {"from": "kitchen renovaton", "to": "kitchen renovation"},
    {"from": "台面", "to": "worktop"},
    {"from": "coffee", "to": "no such strand"},
]


def model() -> list[Rule]:
    """The answers of a good model to each form, whenever it is asked."""
    rules = []
    for told in (STALE, *WEEK):
        words = told.turns[0][1]
        evolve = form("evolve_card", operations=list(told.card), evolution_summary=told.evolution)
        for kind in ("close", "backfill"):
            rules.append(filled(kind, form(kind, **told.marks), user=words))
        rules.append(filled("evolve_card", evolve, user=words))
        rules += [filled("turn", form("turn", worth_remembering=True), user=said) for _, said in told.turns]
    rules += [filled("backfill", form("backfill", **marks), user=words) for _, words, marks in OLD]
    return [*rules, filled("merge", form("merge", merges=MERGES))]


def live(talk: CountedTalk, told: Told) -> None:
    """Alice says what she said in this slice, on a page of her own; what had been open closes behind it."""
    talk.clock = told.at
    talk.reload()
    for turn_id, words in told.turns:
        taken = talk.receive(words, turn_id=turn_id)
        if taken.closed:
            talk.close_pass(taken.closed.slice_id)
        talk.later(seconds=4)
        talk.answer(taken)
        talk.work()
        talk.later(minutes=2)


def lay_old(talk: CountedTalk) -> None:
    """Put the old slices into the folder by hand."""
    for slice_id, words, _ in OLD:
        path = talk.core(slice_id)
        path.parent.mkdir(parents=True)
        path.write_text(render(a_slice(slice_id, (words, "I see."), timezone="Asia/Shanghai")))


def written(talk: CountedTalk) -> dict[str, str]:
    """What the week comes to, by file name: card, strands, merges, months, and the marks of each slice."""
    memory = talk.folder.root / "memory"
    files = [memory / "previously.md", *(memory / "episodic").glob("*.json"), *(memory / "episodic/timeline").glob("*")]
    kept = {path.name: path.read_text() for path in files}
    for slice_id in (*(each[0] for each in OLD), STALE.slice_id, *(told.slice_id for told in WEEK)):
        core = (memory / "episodic/slices" / path_of(slice_id) / "timeline/core.md").read_text()
        kept[f"{slice_id}.yaml"] = core.split("\n---\n")[0].removeprefix("---\n") + "\n"
    return kept
