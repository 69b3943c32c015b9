"""The format on disk: one person's memory as files in a git repository.

The nouns, used with these meanings everywhere:

- A **folder** is one person's memory: an ordinary git repository with a work tree.
- A **slice** is one stretch of conversation. Its id is the UTC minute in which it began; its core.md is the only
  source of truth about it: front matter and verbatim turns.
- A **turn** is one round of talk. Its two **entries**, the person's and the agent's, share a turn id.
- The **marks** of a slice are what its front matter says about it: focus, summary, tags, tone, open loops, decisions.
  The **floor** is the marks that code gives without a model, so no slice closes empty.
- A **boundary** is the moment a slice closes. A **dry** slice closed without focus and summary.
- A **strand** is the complete history of a tag: the paths of all slices that carry it. Tags are **woven** into strands.
- The **timeline** is the catalogue of closed slices, a file a month.
- The **card** is what is known about the person, on one page; each slice keeps the card as it stood when it closed.
- **Stray** lines stand in a core.md and are no turns; they are kept in the slice's **appendix**.

Slice files, the card and the record of strand merges are canonical: never lost, never rewritten wrongly. Strands and
timeline are derived: they can be rebuilt from the slices at any time.

Nothing here knows of the web, of settings, of a network or of a model. Time comes in as an argument.
"""

from memory.folder.errors import (
    BadId,
    BranchMoved,
    Damaged,
    FolderError,
    ForeignLock,
    ForeignOwner,
    FrontMatterError,
    GitError,
    HeadBusy,
    LockTimeout,
    NewerFormat,
    NotThere,
    Outside,
    TooBig,
)
from memory.folder.slices import Slice
from memory.folder.turns import Entry

__all__ = [
    "BadId",
    "BranchMoved",
    "Damaged",
    "Entry",
    "FolderError",
    "ForeignLock",
    "ForeignOwner",
    "FrontMatterError",
    "GitError",
    "HeadBusy",
    "LockTimeout",
    "NewerFormat",
    "NotThere",
    "Outside",
    "Slice",
    "TooBig",
]
