"""What is known to have been promised before a process died, and what of it is found broken afterwards."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory.conversation.due import due, nothing_due, owed, recent_slices
from memory.conversation.outcomes import outcome
from memory.folder import cognition, derived, gitlocks
from memory.folder.errors import LockTimeout
from memory.folder.paths import STRANDS, appendix_file, slice_ids
from memory.folder.slices import Slice
from memory.folder.store import MemoryFolder
from memory.folder.strands import render_strands
from memory.folder.turns import clean

_MARKER = re.compile(r"\bm\d+-\d+\b")


@dataclass(frozen=True)
class Said:
    """A message that was acknowledged: where it was said to be."""

    slice_id: str
    turn_id: str
    text: str


@dataclass
class Ledger:
    """Everything promised in one folder, over all its trials."""

    said: list[Said] = field(default_factory=list)
    never_asked: set[str] = field(default_factory=set)
    """Markers of messages whose reply was stopped before it began."""
    commits: set[str] = field(default_factory=set)


def marker_of(text: str) -> str:
    """The marker of a message, '' when there is none."""
    found = _MARKER.search(text)
    return found[0] if found else ""


def asked(requests: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How often the model was asked to reply to each message; analyses ask for JSON and are not counted."""
    replies = [request["messages"] for request in requests if "response_format" not in request]
    last = [next(each["content"] for each in reversed(messages) if each["role"] == "user") for messages in replies]
    return Counter(map(marker_of, last))


def ended_markers(folder: MemoryFolder) -> set[str]:
    """The markers of the messages that have a reply or an outcome now: the model must not be asked again."""
    return {
        marker_of(entry.content)
        for found in slices_of(folder)
        for entry in found.person_entries
        if found.entry(entry.turn_id, "agent") or outcome(folder.state.directory, found.slice_id, entry.turn_id)
    }


def slices_of(folder: MemoryFolder) -> list[Slice]:
    """Every slice there is; raises Damaged, which no crash may cause."""
    return [folder.slice(slice_id) for slice_id in slice_ids(folder.root)]


def commits_of(folder: MemoryFolder) -> set[str]:
    """The ids of all commits behind HEAD."""
    return {commit.id for commit in folder.repository.log(limit=1_000_000)}


def unmarked_work(folder: MemoryFolder, now: datetime) -> list[str]:
    """Right after a crash: work that no sweep would find, because the marker is missing."""
    if folder.exists() and not nothing_due(folder, now) and not folder.state.pending.exists():
        return ["work is due and there is no pending marker"]
    return []


def broken_promises(folder: MemoryFolder, ledger: Ledger, now: datetime, *, derived_too: bool) -> list[str]:
    """After recovery: everything that does not hold. `derived_too` when a close pass was the last thing done."""
    if not folder.exists():
        return ["the folder is gone"] if ledger.said else []
    slices = slices_of(folder)
    return [
        *_messages(slices, ledger),
        *_doubles(folder, slices),
        *_commits(folder, ledger),
        *_locks(folder),
        *_leftovers(folder),
        *(f"owed: {answer}" for answer in owed(recent_slices(folder, now), folder, now)),
        *(f"still due: {job}" for job in due(folder, now)),
        *(f"uncommitted: {path}" for path in folder.state.touched()),
        *_marker(folder, now),
        *(_derived(folder) if derived_too else []),
    ]


def _marker(folder: MemoryFolder, now: datetime) -> list[str]:
    """The marker stays as long as something waits for its time, such as an analysis that is tried again later."""
    there, needed = folder.state.pending.exists(), not nothing_due(folder, now)
    return [] if there == needed else [f"the pending marker is {'there' if there else 'missing'}"]


def _messages(slices: Sequence[Slice], ledger: Ledger) -> list[str]:
    found = Counter((one.slice_id, each.turn_id, each.content) for one in slices for each in one.person_entries)
    whole = Counter(each.content for one in slices for each in one.person_entries)
    bad = []
    for said in ledger.said:
        if (count := found[said.slice_id, said.turn_id, clean(said.text)]) != 1:
            bad.append(f"{marker_of(said.text)} is there {count} times in {said.slice_id} {said.turn_id}")
        if (count := whole[clean(said.text)]) != 1:
            bad.append(f"the words of {marker_of(said.text)} are there {count} times")
    return bad


def _doubles(folder: MemoryFolder, slices: Sequence[Slice]) -> list[str]:
    bad = []
    keys = Counter(entry.key for found in slices for entry in found.entries)
    bad += [f"entry {key} is there {count} times" for key, count in keys.items() if count > 1]
    for found in slices:
        text = folder.agent_text(found.slice_id)
        blocks = cognition.parse_blocks(text)
        counted = Counter((block.turn_id, block.at) for block in blocks)
        bad += [f"block {key} is there {count} times" for key, count in counted.items() if count > 1]
        # Each attempt that broke off leaves what had come of it; the one that ended well leaves one block.
        whole = Counter(
            block.turn_id
            for block in blocks
            if found.entry(block.turn_id, "agent") and cognition.UNFINISHED_REPLY not in dict(block.sections)
        )
        bad += [f"turn {turn_id} has {count} blocks" for turn_id, count in whole.items() if count > 1]
        appendix = (folder.read(appendix_file(found.slice_id)) or b"").decode("utf-8", "replace")
        headings = Counter(line for line in appendix.splitlines() if line.startswith("## Turn "))
        bad += [f"{line!r} is {count} times in an appendix" for line, count in headings.items() if count > 1]
        bad += [f"{found.slice_id} has lines that are no turns"] if found.stray else []
    return bad


def _commits(folder: MemoryFolder, ledger: Ledger) -> list[str]:
    log = folder.repository.log(limit=1_000_000)
    lost = ledger.commits - {commit.id for commit in log}
    bad = [f"commit {commit} is lost" for commit in sorted(lost)]
    turns = Counter(
        words[1].rstrip(":,") for commit in log if (words := commit.subject.split())[0] in ("turn", "recovered")
    )
    bad += [f"turn {turn_id} has {count} commits" for turn_id, count in turns.items() if count > 1]
    bad += [f"a hand edit that nobody made: {commit.subject}" for commit in log if commit.subject.startswith("edited")]
    bad += [f"fsck: {line}" for line in folder.repository.fsck()]
    bad += [f"status: {line}" for line in folder.repository.status()]
    return bad


def _locks(folder: MemoryFolder) -> list[str]:
    bad = [f".git/{name} stays" for name in gitlocks.existing(folder.root / ".git")]
    for take in (folder.files_lock, folder.reply_lock, folder.work_lock):
        try:
            with take(timeout=1.0):
                pass
        except LockTimeout as error:
            bad.append(str(error))
    return bad


def _leftovers(folder: MemoryFolder) -> list[str]:
    state = folder.state.directory
    left = [*(folder.root / ".git" / "previously").glob("*"), *state.glob(".*-*")]
    left += [path for name in ("hand", "prompts", "replies") for path in (state / name).glob("*-*") if not path.suffix]
    return [f"left behind: {path.name} in {path.parent.name}" for path in left]


def _derived(folder: MemoryFolder) -> list[str]:
    made = derived.rebuild(folder)
    bad = [f"{month} differs from its rebuild" for month in made.months]
    if (folder.read(STRANDS) or b"{}\n") != render_strands(made.strands).encode():
        bad.append("strands.json differs from its rebuild")
    return bad
