"""The card's pages: reading it, editing it, what changed last, earlier versions, and who may see them."""

import html
import re
from datetime import UTC, datetime

import pytest
from django.http import HttpResponse
from django.test import Client

from accounts.models import User
from memory import access, wording
from memory.conversation.settle import settle
from memory.folder import git, locks, todo
from memory.folder.card import PROBLEMS
from memory.folder.clock import utc_now
from memory.folder.paths import CARD
from memory.folder.store import MemoryFolder, Write
from memory.folder.touched import close_owner
from tests.web.pages import calls_of_git, folder_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]

BODY = """# Previously on Alice

## Identity
- Name: Alice

## Now
- Training for a half marathon — [2026/08/10/2130#mVhV2g]
"""
NO_SUCH = "1" * 40


def write(user: User, text: str | bytes, *, commit: bool = True, owner: str = "card") -> None:
    """Put a card into the folder as one of our writers does."""
    folder = folder_of(user)
    data = text.encode() if isinstance(text, str) else text
    with folder.files_lock():
        folder.apply([Write(path=CARD, found=folder.read(CARD), data=data)], owner=owner)
    if commit:
        assert settle(folder, now=utc_now()) is None


def card_file(user: User) -> bytes | None:
    return access.folder_of(user).read(CARD)


def made_from(page: str) -> str:
    """The version of the card that a form carries."""
    found = re.search(r'name="made_from" value="([^"]*)"', page)
    assert found
    return found[1]


def typed(page: str) -> str:
    """What stands in the editor."""
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found
    return html.unescape(found[1])


def edit(client: Client, text: str, begun: str, **more: str) -> HttpResponse:
    return client.post("/card/edit/", {"text": text, "made_from": begun, "do": "save"} | more)


def front(at: str = "2026-08-10T22:04:11.200Z", slice_id: str = "2026-08-10-2130") -> str:
    return f"---\nupdated: '{at}'\nslice: {slice_id}\n---\n"


def test_it_works(alice, as_person):
    write(alice, front() + BODY)
    page = text_of(as_person(alice).get("/card/"))
    for words in (
        "<bdi>Previously on Alice</bdi>",
        "<bdi>Name: Alice</bdi>",
        "<bdi>Training for a half marathon</bdi>",
        '<a class="receipt" href="/slices/2026/08/10/2130/#mVhV2g">',
        '<a href="/slices/2026/08/10/2130/">the slice of 10 August, 23:30</a>',
        "You edited your card",
        'aria-current="page">Card</a>',
    ):
        assert words in page
    assert "Undo this change" not in page


def test_a_person_without_a_folder_begins_a_card(alice, as_person):
    client = as_person(alice)
    assert "will stand here" in text_of(client.get("/card/"))
    assert not access.folder_of(alice).exists()

    page = text_of(client.get("/card/edit/"))
    assert typed(page).startswith("# Previously on Alice\n\n## Identity\n")
    answer = edit(client, typed(page).replace("## Now\n", "## Now\n- Learning to sail\n"), made_from(page))

    assert answer["Location"] == "/card/"
    page = text_of(client.get("/card/"))
    assert "<bdi>Learning to sail</bdi>" in page
    assert "Your card is saved." in page
    assert "changed just now" in page
    assert settle(access.folder_of(alice), now=utc_now()) is None
    assert "You edited your card" in text_of(client.get("/card/"))


def test_the_editor_leaves_the_front_matter_alone(alice, as_person):
    write(alice, front() + BODY)
    client = as_person(alice)
    page = text_of(client.get("/card/edit/"))
    assert typed(page) == BODY
    edit(client, BODY.replace("half ", "").replace("\n", "\r\n"), made_from(page))
    text = (card_file(alice) or b"").decode()
    assert text.endswith(BODY.replace("half ", ""))
    assert "slice: 2026-08-10-2130\n" in text
    assert "2026-08-10T22:04:11.200Z" not in text


def test_a_preview_writes_nothing(alice, as_person):
    write(alice, front() + BODY)
    before = card_file(alice)
    client = as_person(alice)
    begun = made_from(text_of(client.get("/card/edit/")))
    page = text_of(edit(client, BODY + "- <b>new</b>\r\n- — [2026/08/10/2130#x]\r\n", begun, do="preview"))
    assert "<bdi>&lt;b&gt;new&lt;/b&gt;</bdi>" in page
    assert "Line 9" in page
    assert made_from(page) == begun
    assert card_file(alice) == before


@pytest.mark.parametrize("do", ["save", "preview"])
def test_a_broken_shape_is_told_line_by_line_and_the_text_kept(alice, as_person, do):
    write(alice, front() + BODY)
    before = card_file(alice)
    client = as_person(alice)
    text = BODY + "loose <i>words</i>\n## Plans\n- a\n"
    answer = edit(client, text, made_from(text_of(client.get("/card/edit/"))), do=do)
    page = text_of(answer)
    assert answer.status_code == (422 if do == "save" else 200)
    assert "Line 8, “loose &lt;i&gt;words&lt;/i&gt;”: this is no entry." in page
    assert "Line 9, “## Plans”: a card has no such section." in page
    assert typed(page) == text
    assert card_file(alice) == before


@pytest.mark.parametrize("code", PROBLEMS)
def test_every_problem_has_words(code):
    assert code not in wording.card_problem(code, 1, "").replace("front matter", "")


def test_too_long_a_card_is_refused_with_its_text_kept(alice, as_person):
    text = BODY + "- " + "x" * 50_000
    answer = edit(as_person(alice), text, "")
    assert answer.status_code == 422
    assert re.search(r"The card is \d+ characters too long \(of 50000\)", text_of(answer))
    assert "x" * 50_000 in text_of(answer)
    assert card_file(alice) is None


def test_the_later_of_two_tabs_is_shown_both_and_may_save_knowingly(alice, as_person):
    write(alice, front() + BODY)
    client = as_person(alice)
    first, second = (made_from(text_of(client.get("/card/edit/"))) for _ in range(2))
    edit(client, BODY + "- from the first tab\n", first)

    answer = edit(client, BODY + "- from the second tab\n", second)

    page = text_of(answer)
    assert answer.status_code == 409
    assert typed(page) == BODY + "- from the second tab\n"
    assert "- from the first tab" in page.split('id="meanwhile"')[1]
    assert b"second" not in (card_file(alice) or b"")
    assert edit(client, typed(page), made_from(page)).status_code == 302
    assert b"second" in (card_file(alice) or b"")
    assert settle(access.folder_of(alice), now=utc_now()) is None
    assert "- from the first tab" in text_of(client.get("/card/versions/"))


def test_an_edit_meets_a_close_pass_that_changed_the_card(alice, as_person):
    write(alice, front() + BODY)
    client = as_person(alice)
    begun = made_from(text_of(client.get("/card/edit/")))
    write(alice, front() + BODY + "- evolved\n", commit=False, owner=close_owner("2026-08-10-2130"))
    answer = edit(client, BODY + "- mine\n", begun)
    assert answer.status_code == 409
    assert "- evolved" in text_of(answer).split('id="meanwhile"')[1]


def test_undo_takes_the_last_change_back_as_a_new_edit(alice, as_person):
    write(alice, front() + BODY)
    write(alice, front() + BODY + "- evolved\n")
    client = as_person(alice)
    page = text_of(client.get("/card/"))
    back = re.search(r'action="(/card/versions/[0-9a-f]{40}/restore/)"', page)
    assert back
    assert '<ins><span class="mark">+</span><bdi>- evolved</bdi>' in page

    client.post(back[1], {"made_from": made_from(page)})

    assert card_file(alice) == (front() + BODY).encode()
    assert settle(access.folder_of(alice), now=utc_now()) is None
    assert len(access.folder_of(alice).repository.log(path=CARD)) == 3
    page = text_of(client.get("/card/"))
    assert "The card is put back." in page
    assert '<del><span class="mark">−</span><bdi>- evolved</bdi>' in page


def test_undo_while_a_close_pass_runs_goes_behind_what_it_wrote(alice, as_person):
    write(alice, front() + BODY)
    folder = access.folder_of(alice)
    folder.state.save_todo([todo.Work(what=todo.CLOSE, slice_id="2026-08-10-2130", step=todo.BACKFILL)])
    client = as_person(alice)
    begun = git.blob_id(card_file(alice) or b"")
    write(alice, front() + BODY + "- evolved\n", commit=False, owner=close_owner("2026-08-10-2130"))
    page = text_of(client.get("/card/"))
    assert "changed just now" in page
    back = re.search(r'action="(/card/versions/[0-9a-f]{40}/restore/)"', page)
    assert back

    told = text_of(client.post(back[1], {"made_from": begun}, follow=True))
    assert "The card has changed since you looked at it" in told
    assert b"evolved" in (card_file(alice) or b"")

    client.post(back[1], {"made_from": made_from(page)})
    assert card_file(alice) == (front() + BODY).encode()
    assert settle(folder, now=utc_now()) is None
    assert "- evolved" in text_of(client.get("/card/versions/"))


def test_earlier_versions_are_listed_seen_and_put_back(alice, as_person):
    for number in range(12):
        write(alice, front() + BODY + f"- number {number}\n")
    client = as_person(alice)
    page = text_of(client.get("/card/versions/"))
    assert page.count('<details class="change"') == 10
    earlier = re.search(r'<a href="(/card/versions/\?before=[0-9a-f]{40})">', page)
    assert earlier
    older = text_of(client.get(earlier[1]))
    assert older.count('<details class="change"') == 2
    oldest = re.findall(r'<a href="(/card/versions/[0-9a-f]{40}/)">', older)[-1]

    version = text_of(client.get(oldest))
    assert "<bdi>number 0</bdi>" in version
    client.post(f"{oldest}restore/", {"made_from": made_from(version)})
    assert (card_file(alice) or b"").endswith(b"- number 0\n")


def test_a_damaged_card_is_shown_raw_and_repaired_in_the_editor(alice, as_person):
    write(alice, "---\nupdated: [\n---\n# Mine <script>alert(1)</script>\n")
    client = as_person(alice)
    page = text_of(client.get("/card/"))
    assert CARD in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    editor = text_of(client.get("/card/edit/"))
    assert typed(editor).startswith("---\nupdated: [\n---\n")
    assert "cannot be read. Mend it, or delete it" in editor
    assert edit(client, BODY, made_from(editor)).status_code == 302
    assert "<bdi>Name: Alice</bdi>" in text_of(client.get("/card/"))


def test_a_card_whose_shape_is_not_right_is_shown_and_told(alice, as_person):
    write(alice, front() + BODY + "no entry\n")
    page = text_of(as_person(alice).get("/card/"))
    assert "<bdi>no entry</bdi>" in page
    assert "Line 8, “no entry”: this is no entry." in page


@pytest.mark.parametrize(
    "hostile",
    [
        "<img src=x onerror=alert(1)>",
        "[go](javascript:alert(1))",
        "\u202egnp.exe\u2066",
        "![x](http://example.invalid/p.png?d=secret)",
        ">" * 5_000,
        "[" * 5_000,
        "x" * 600_000,
        '"><svg/onload=alert(1)>',
    ],
)
def test_hostile_text_is_text_on_every_page(alice, as_person, hostile):
    write(alice, front() + BODY)
    write(alice, front() + BODY + f"- {hostile}\n## {hostile[:2000]}\n")
    client = as_person(alice)
    newest = access.folder_of(alice).repository.log(path=CARD, limit=1)[0].id
    for path in ("/card/", "/card/edit/", "/card/versions/", f"/card/versions/{newest}/"):
        page = text_of(client.get(path))
        for tag in ("<img", "<script>", "<svg/", 'href="javascript', "style="):
            assert tag not in page
        if "\u202e" in hostile and path != "/card/edit/":
            assert re.findall(r"(?<!<bdi>- )(?<!<bdi>## )(?<!<bdi>)\u202e", page.split('<pre class="raw"')[0]) == []


def test_a_card_of_many_megabytes_opens(alice, as_person):
    write(alice, front() + BODY + "- line\n" * 400_000)
    client = as_person(alice)
    for path in ("/card/", "/card/edit/", "/card/versions/"):
        assert client.get(path).status_code == 200
    assert "far too long for a card" in text_of(client.get("/card/"))


def test_a_symbolic_link_in_place_of_the_card_is_not_followed(alice, as_person, tmp_path):
    write(alice, front() + BODY)
    (tmp_path / "secret").write_text("secret")
    (access.folder_of(alice).root / CARD).unlink()
    (access.folder_of(alice).root / CARD).symlink_to(tmp_path / "secret")
    client = as_person(alice)
    for path in ("/card/", "/card/edit/", "/card/raw/"):
        assert client.get(path).status_code == 404
    assert edit(client, BODY, "").status_code == 404


def test_the_download_is_the_file(alice, as_person):
    assert as_person(alice).get("/card/raw/").status_code == 404
    write(alice, front() + BODY)
    download = as_person(alice).get("/card/raw/")
    assert download.content == card_file(alice)
    assert download["Content-Disposition"] == 'attachment; filename="previously.md"'
    assert download["X-Content-Type-Options"] == "nosniff"


def test_others_see_their_own_card_and_none_of_hers(alice, charlie, dana, as_person, client):
    write(alice, front() + BODY)
    commit = access.folder_of(alice).repository.log(path=CARD)[0].id
    for other in (charlie, dana):
        theirs = as_person(other)
        for path in ("/card/", "/card/edit/", "/card/versions/"):
            assert "half marathon" not in text_of(theirs.get(path))
        assert theirs.get("/card/raw/").status_code == 404
        assert theirs.get(f"/card/versions/{commit}/").status_code == 404
        assert theirs.post(f"/card/versions/{commit}/restore/", {"made_from": ""}).status_code == 404
        assert not access.folder_of(other).exists()
    for path in ("/card/", "/card/raw/", "/card/edit/", "/card/versions/", f"/card/versions/{commit}/"):
        assert client.get(path)["Location"].startswith("/accounts/login/")
    for path in ("/card/edit/", f"/card/versions/{commit}/restore/"):
        assert client.post(path)["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("commit", [NO_SUCH, "HEAD", "main", "0" * 39, "..", "%2e%2e"])
def test_only_a_commit_that_holds_the_card_is_a_version(alice, as_person, commit):
    write(alice, front() + BODY)
    client = as_person(alice)
    assert client.get(f"/card/versions/{commit}/").status_code == 404
    assert client.post(f"/card/versions/{commit}/restore/").status_code == 404
    assert client.get("/card/versions/", {"before": commit}).status_code == 404


def test_what_changes_the_card_is_posted_with_a_token(alice):
    write(alice, front() + BODY)
    commit = access.folder_of(alice).repository.log(path=CARD)[0].id
    before = card_file(alice)
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert edit(client, BODY + "- forged\n", git.blob_id(before or b"")).status_code == 403
    assert client.post(f"/card/versions/{commit}/restore/").status_code == 403
    assert client.get(f"/card/versions/{commit}/restore/").status_code == 405
    assert card_file(alice) == before


def test_a_page_asks_the_database_and_git_the_same_however_much_there_is(
    alice, as_person, django_assert_num_queries, monkeypatch
):
    ran = calls_of_git(monkeypatch)
    client = as_person(alice)
    for times in (1, 25):
        for number in range(times):
            write(alice, front() + BODY + f"- {times} {number}\n")
        commit = access.folder_of(alice).repository.log(path=CARD)[0].id
        for path in ("/card/", "/card/edit/", "/card/versions/", f"/card/versions/{commit}/"):
            ran.clear()
            with django_assert_num_queries(2):
                client.get(path)
            assert len(ran) == (0 if path == "/card/edit/" else 1)


def test_pages_hold_no_inline_script_and_no_inline_style(alice, as_person):
    write(alice, front() + BODY)
    client = as_person(alice)
    for path in ("/card/", "/card/edit/", "/card/versions/"):
        page = text_of(client.get(path))
        assert " style=" not in page
        assert re.findall(r"<script(?![^>]*src=)", page) == []


def test_a_busy_folder_keeps_the_text(alice, as_person, monkeypatch):
    write(alice, front() + BODY)
    client = as_person(alice)
    begun = made_from(text_of(client.get("/card/edit/")))
    folder = access.folder_of(alice)
    lock = folder.state.make() / "files.lock"
    monkeypatch.setattr(MemoryFolder, "files_lock", lambda self: locks.held(lock, timeout=0.05))
    with locks.held(lock, timeout=1):
        answer = edit(client, BODY + "- mine\n", begun)
    assert answer.status_code == 503
    assert "Your folder is busy" in text_of(answer)
    assert typed(text_of(answer)) == BODY + "- mine\n"


def test_times_are_the_persons(bob, as_person):
    write(bob, front(datetime(2026, 8, 10, 22, 4, tzinfo=UTC).isoformat().replace("+00:00", ".000Z")) + BODY)
    page = text_of(as_person(bob).get("/card/"))
    assert 'datetime="2026-08-10T21:30:00.000Z"' in page
    assert "05:30" in page
