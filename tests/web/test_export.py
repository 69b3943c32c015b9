"""The export as a person gets it: a zip by one button, and a clear word when there is nothing to send."""

import asyncio
import io
import zipfile

import pytest
from django.test import AsyncClient

from memory import access
from memory.conversation.outcomes import Outcome, record_outcome
from memory.conversation.receive import receive
from memory.folder.clock import utc_now
from tests.web.pages import keep, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]


def talk(person, words):
    """A message whose reply has failed, so that it can be committed."""
    folder = access.folder_of(person)
    said = receive(folder, words, turn_id="", seen=[], person=access.person_of(person), now=utc_now())
    record_outcome(folder.state.make(), said.slice_id, said.turn_id, Outcome("failed", "cut_off", utc_now()))
    return said


def test_it_works(alice, as_person):
    said = talk(alice, "Oak or stone?")
    client = as_person(alice)
    assert 'action="/settings/export/"' in text_of(client.get("/settings/"))
    answer = client.post("/settings/export/")
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"].startswith('attachment; filename="previously-20')
    archive = zipfile.ZipFile(io.BytesIO(answer.getvalue()))
    assert archive.testzip() is None
    core = f"folder/memory/episodic/slices/{said.slice_id[:10].replace('-', '/')}/{said.slice_id[11:]}/timeline/core.md"
    assert b"Oak or stone?" in archive.read(core)
    assert archive.read("history.bundle").startswith(b"# v2 git bundle")


@pytest.mark.django_db(transaction=True)
def test_it_streams_under_asgi(alice, as_person):
    talk(alice, "Oak or stone?")
    cookies = as_person(alice).cookies

    async def fetch() -> bytes:
        client = AsyncClient()
        client.cookies = cookies
        answer = await client.post("/settings/export/")
        assert answer.is_async
        return b"".join([piece async for piece in answer])

    assert zipfile.ZipFile(io.BytesIO(asyncio.run(fetch()))).testzip() is None


@pytest.mark.parametrize("begun", [False, True])
def test_nothing_to_export_is_said(alice, as_person, begun):
    if begun:
        keep(alice, None, ("t1", "not committed", None), active=True)
    answer = as_person(alice).post("/settings/export/", follow=True)
    assert answer.redirect_chain == [("/settings/", 302)]
    assert "There is nothing to export yet" in text_of(answer)


def test_a_folder_in_the_middle_of_a_merge_is_not_exported_in_part(alice, as_person):
    talk(alice, "Oak or stone?")
    client = as_person(alice)
    client.post("/settings/export/")
    (access.folder_of(alice).root / ".git" / "MERGE_HEAD").write_text("0" * 40)
    assert "a merge is under way" in text_of(client.post("/settings/export/", follow=True))


def test_it_takes_a_post(alice, as_person):
    assert as_person(alice).get("/settings/export/").status_code == 405
