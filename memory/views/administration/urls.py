"""Where these pages answer, below the list of people in the administration."""

from django.urls import path

from memory import converters  # noqa: F401 - registers them

from . import overview, reading

urlpatterns = [
    path("health/", overview.server, name="memory_health"),
    path("<uuid:person_id>/", overview.person, name="memory_person"),
    path("<uuid:person_id>/timeline/", reading.read_timeline, name="memory_timeline"),
    path("<uuid:person_id>/timeline/<int:year>/", reading.read_timeline, name="memory_timeline_year"),
    path("<uuid:person_id>/timeline/<int:year>/<int:month>/", reading.read_month, name="memory_timeline_month"),
    path("<uuid:person_id>/slices/<slice:slice_path>/", reading.read_slice, name="memory_slice"),
    path("<uuid:person_id>/slices/<slice:slice_path>/raw/", reading.read_slice_raw, name="memory_slice_raw"),
    path("<uuid:person_id>/strands/", reading.read_strands, name="memory_strands"),
    path("<uuid:person_id>/strands/merges/", reading.read_merges, name="memory_merges"),
    path("<uuid:person_id>/card/", reading.read_card, name="memory_card"),
    path("<uuid:person_id>/card/versions/", reading.read_card_versions, name="memory_card_versions"),
    path("<uuid:person_id>/card/versions/<commit:commit_id>/", reading.read_card_version, name="memory_card_version"),
]
