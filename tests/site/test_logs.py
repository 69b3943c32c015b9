"""The log: a line can be found by its request, and no line holds a word of what people say."""

import json
import re
import sqlite3
import time
import urllib.request

import pytest

from memory.folder.paths import core_file, slice_ids
from tests.model_server.answers import Answer, Rule
from tests.served import Served
from tests.site.test_backup import send, signed_in

WORD = "saxifrage"
KEY = "sk-never-in-a-log"


def wait_for(condition, seconds=30.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_it_works(client, db):
    first, second = client.get("/healthz"), client.get("/healthz")
    assert re.fullmatch(r"[0-9a-f]{16}", first["X-Request-ID"])
    assert first["X-Request-ID"] != second["X-Request-ID"]


@pytest.mark.parametrize("given", ["4f1c2d3e-0b7a-4c55-9a2f-6f1f2f3f4f5f", "abcdefgh"])
def test_a_proxy_s_number_is_kept(client, db, given):
    assert client.get("/healthz", headers={"X-Request-ID": given})["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["short", "x" * 37, "with space", 'a"},{"b', "<script>alert(1)", "abcdefgh\u0661"])
def test_any_other_text_is_not(client, db, given):
    assert client.get("/healthz", headers={"X-Request-ID": given})["X-Request-ID"] != given


def test_not_a_word_of_what_people_say(serve, model_server):
    echo = {"error": {"message": f"you said {WORD}", "type": "invalid_request_error"}}
    model_server.rules(
        Rule(answers=[Answer(status=400, body=echo)], user="refused"),
        Rule(answers=[Answer(status=500, body=f"<html>{WORD}</html>")], user="garbage"),
    )
    served: Served = serve(
        PREVIOUSLY_LOG_FORMAT="json",
        PREVIOUSLY_MODEL_URL=model_server.url,
        PREVIOUSLY_MODEL_KEY=KEY,
        PREVIOUSLY_MODEL="talker",
        PREVIOUSLY_DEBUG="off",
    )
    jar = signed_in(served)
    for words in (f"Tell me of {WORD}.", f"This is refused: {WORD}", f"/close {WORD}", "\x00\ud7ff" + WORD):
        send(served, jar, words)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    assert browser.open(f"{served.url}search/?q={WORD}", timeout=20).status == 200
    [root] = (served.data_dir / "folders").iterdir()
    newest = list(slice_ids(root))[-1]
    wait_for(lambda: (root / core_file(newest)).read_text().count("(agent)") >= 1)
    (root / core_file(newest)).write_text(f"---\nfocus: [{WORD}\n---\n")  # somebody breaks it by hand
    send(served, jar, f"And now {WORD}?")
    with sqlite3.connect(served.data_dir / "database.sqlite3") as database:
        database.execute("ALTER TABLE memory_workerseen RENAME TO gone")
    assert served.stop() == 0
    assert WORD not in served.output
    assert KEY not in served.output
    lines = [json.loads(line) for line in served.output.splitlines() if line.startswith("{")]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert WORD not in (served.data_dir / "database.sqlite3").read_bytes().decode("latin-1")


def test_a_line_carries_its_request(serve):
    served: Served = serve(PREVIOUSLY_LOG_FORMAT="json")
    jar = signed_in(served)
    send(served, jar, "Hello")
    [root] = (served.data_dir / "folders").iterdir()
    wait_for(lambda: any("(agent)" in path.read_text() for path in root.rglob("core.md")))
    (root / ".git" / "config").write_text("[previously]\n\tformat = 99\n")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    request = urllib.request.Request(f"{served.url}strands/merges/undo/", headers={"X-Request-ID": "abcdefgh-1234"})
    with pytest.raises(urllib.error.HTTPError) as error:
        browser.open(request, timeout=20)
    assert error.value.headers["X-Request-ID"] == "abcdefgh-1234"
    with pytest.raises(urllib.error.HTTPError):
        send(served, jar, "Nobody takes this")
    wait_for(lambda: "was not taken" in served.output)
    taken = [json.loads(line) for line in served.output.splitlines() if "was not taken" in line]
    assert re.fullmatch(r"[0-9a-f]{16}", taken[0]["request"])
    assert "trace" in taken[0]
