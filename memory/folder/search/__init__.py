"""Recall's first stage: search over the record, without a model.

`SearchIndex` is the public face. A question in any language finds slices with their best turns, or turns. It is
answered in two stages: SQLite's full-text index brings a few dozen candidate slices by the question's rarest words and
by the dates it names; then words, neighbours and dates are scored together. The words of a text are the business of
`tokens`, of index and question alike, and no text of a person's ever reaches the full-text index's query language.
"""

from memory.folder.search.answering import EntryRef, Hit, SecondScorer, TurnHit, Unit
from memory.folder.search.building import Progress
from memory.folder.search.index import NoIndex, SearchIndex
from memory.folder.search.snippets import Snippet

__all__ = ["EntryRef", "Hit", "NoIndex", "Progress", "SearchIndex", "SecondScorer", "Snippet", "TurnHit", "Unit"]
