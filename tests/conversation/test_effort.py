"""How much the model is to think: asked for when the person has chosen it, and otherwise left to the model."""

import pytest

from memory.conversation.companion import Companion
from tests.conversation.talk import Talk


@pytest.mark.parametrize(("effort", "sent"), [("high", "high"), ("", None)])
def test_it_works(tmp_path, connect, model_server, effort, sent):
    talk = Talk(tmp_path, Companion(model=connect(), effort=effort))
    talk.say("Hello")
    assert model_server.requests("talker")[0].get("reasoning_effort") == sent
