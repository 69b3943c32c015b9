"""The pages, asked of Django in this process: server time and queries, and the framework's own share of a POST."""

from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import include, path

from memory import access
from memory.folder.paths import new_turn_id, newest_slice_ids, path_of
from memory.views.signed_in import signed_in
from tests.benchmarks.measure import Samples, ms, repeated
from tests.benchmarks.table import Row, size

TIMES = 15


@signed_in
def nothing(request: HttpRequest) -> HttpResponse:
    """A view that does nothing, behind everything that stands before ours."""
    return HttpResponse(b"")


urlpatterns = [path("nothing/", nothing), path("", include("previously_site.urls"))]


def pages(user: Any, slices: int) -> tuple[list[Row], dict[str, int]]:
    """The pages that exist, with their number of queries by name."""
    client = _client(user)
    folder = access.folder_of(user)
    newest = newest_slice_ids(folder.root, 40)
    asked = {
        "chat page": "/",
        "slice page, newest": f"/slices/{path_of(newest[0])}/",
        "slice page, an older one": f"/slices/{path_of(newest[-1])}/",
        "spine, further up": f"/spine/?before={newest[-1]}",
    }
    rows, queries = [], {}
    for name, where in asked.items():
        taken = repeated(lambda where=where: _ok(client.get(where)), TIMES)  # type: ignore[misc]
        with CaptureQueriesContext(connection) as captured:
            client.get(where)
        queries[name] = len(captured)
        rows.append(
            Row(
                what=name,
                slices=size(slices),
                measured=f"server time {ms(taken.wall)}, CPU {ms(taken.cpu)}, {len(captured)} queries",
                limit="≤ 100 ms",
                held=taken.wall <= 0.1,
            )
        )
    return rows, queries


def constant_queries(found: dict[int, dict[str, int]]) -> Row:
    """Whether every page asks the database as often at each size."""
    counts = {tuple(queries.items()) for queries in found.values()}
    return Row(
        what="queries a page",
        slices=", ".join(map(size, sorted(found))),
        measured="the same at each size" if len(counts) == 1 else f"differ: {sorted(counts)}",
        limit="constant",
        held=len(counts) == 1,
    )


def posts(user: Any, slices: int) -> list[Row]:
    """An empty POST through the whole framework, and a message, both with CSRF check, session and user."""
    client = _client(user)
    with override_settings(ROOT_URLCONF=__name__):
        empty = repeated(lambda: _ok(_post(client, "/nothing/", [("text", "x")])), TIMES)
    shown: list[str] = []

    def say() -> None:
        turn_id = new_turn_id()
        form = [("text", "I will tell you tomorrow how it went."), ("turn", turn_id)]
        _ok(_post(client, "/", form + [("seen", one) for one in shown]))
        shown.append(turn_id)

    said = repeated(say, TIMES)
    return [
        _row("the framework's own empty POST", slices, empty),
        _row("POST of a message, its HTML included", slices, said),
    ]


def _post(client: Client, where: str, form: list[tuple[str, str]]) -> Any:
    """Send a form as htmx sends it."""
    kind = "application/x-www-form-urlencoded"
    return client.post(where, urlencode(form), content_type=kind, headers={"HX-Request": "true"})


def _row(what: str, slices: int, taken: Samples) -> Row:
    return Row(what=what, slices=size(slices), measured=f"CPU {ms(taken.cpu)}, wall {ms(taken.wall)}")


def _client(user: Any) -> Client:
    client = Client(enforce_csrf_checks=True, headers={"Host": "localhost"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    client.cookies["csrftoken"] = "b" * 32
    client.defaults["HTTP_X_CSRFTOKEN"] = "b" * 32
    return client


def _ok(response: Any) -> None:
    if response.status_code != 200:
        raise AssertionError(f"{response.status_code}: {response.content[:500]!r}")
