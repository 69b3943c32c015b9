"""Model and effort, among those that the administrator allows; what is chosen is what answers."""

import pytest

from accounts.models import User
from memory import tasks

pytestmark = pytest.mark.django_db

CHOICES = {
    "called": "Alice",
    "timezone": "Europe/Berlin",
    "language": "en",
    "theme": "system",
    "slice_minutes": "30",
    "slice_turns": "50",
}


@pytest.fixture
def models(previously):
    tasks.model_server.cache_clear()
    previously(
        model="talker", model_url="http://127.0.0.1:9/v1", model_analyst="analyst", models_allowed=("talker", "thinker")
    )
    yield
    tasks.model_server.cache_clear()


def test_it_works(alice, as_person, models):
    client = as_person(alice)
    page = client.get("/settings/").content.decode()
    assert '<option value="" selected>The one of this server (talker)</option>' in page
    assert '<option value="thinker">thinker</option>' in page
    answer = client.post("/settings/", CHOICES | {"model": "thinker", "effort": "high"})
    assert answer.status_code == 302
    alice.refresh_from_db()
    assert (alice.model, alice.effort) == ("thinker", "high")
    companion = tasks.companion(alice)
    assert (companion.model.settings.model, companion.model.settings.analyst) == ("thinker", "analyst")
    assert companion.effort == "high"


def test_people_with_one_model_share_its_connections(alice, bob, models):
    assert tasks.companion(alice).model is tasks.companion(bob).model
    bob.model = "thinker"
    assert tasks.companion(alice).model is not tasks.companion(bob).model


@pytest.mark.parametrize("choice", [{"model": "dearest"}, {"effort": "extreme"}])
def test_only_what_is_allowed_can_be_chosen(alice, as_person, models, choice):
    assert as_person(alice).post("/settings/", CHOICES | choice).status_code == 422
    after = User.objects.get(pk=alice.pk)
    assert (after.model, after.effort) == ("", "")


def test_a_model_that_is_allowed_no_more_gives_way_to_the_servers(alice, as_person, models, previously):
    alice.model = "thinker"
    alice.save()
    previously(models_allowed=("talker", "other"))
    assert tasks.companion(alice).model.settings.model == "talker"
    assert '<option value="" selected>' in as_person(alice).get("/settings/").content.decode()


def test_with_nothing_to_choose_nothing_is_asked(alice, as_person, previously):
    page = as_person(alice).get("/settings/").content.decode()
    assert 'name="model"' not in page
    assert 'name="effort"' not in page
    previously(model="talker", model_url="http://127.0.0.1:9/v1", models_allowed=("talker",))
    page = as_person(alice).get("/settings/").content.decode()
    assert 'name="model"' not in page
    assert 'name="effort"' in page
    assert as_person(alice).post("/settings/", CHOICES).status_code == 302
    assert tasks.companion(alice).model.settings.model == "talker"
    tasks.model_server.cache_clear()
