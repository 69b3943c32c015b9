"""The turn analyzer: one structured call that turns what was said into marks.

It has two forms. The **turn form**, after each reply, gives the turn's tags, open loops and decisions; the **close
form**, once a slice is closed, gives the marks of the whole slice. Both see the conversation as a quoted record, are
read field by field, and change nothing: they return what was found, or a Failure, and code has its floor under both.
"""

from memory.conversation.analyzer.close_form import CloseMarks, analyse_close
from memory.conversation.analyzer.turn_form import TurnMarks, analyse_turn

__all__ = ["CloseMarks", "TurnMarks", "analyse_close", "analyse_turn"]
