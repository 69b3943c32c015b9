"""Where the pages of a person's memory answer."""

from django.urls import path

from memory import converters  # noqa: F401 - registers them
from memory.views import card_editing, cards, chat, export, replies, search, slices, spine, strands, timeline, watch

urlpatterns = [
    path("", chat.chat, name="chat"),
    path("elsewhere/", chat.elsewhere, name="elsewhere"),
    path("spine/", spine.spine, name="spine"),
    path("replies/<slice:slice_path>/<turn:turn_id>/", replies.reply, name="reply"),
    path("replies/<slice:slice_path>/<turn:turn_id>/stream/", watch.reply_stream, name="reply_stream"),
    path("replies/<slice:slice_path>/<turn:turn_id>/stop/", replies.reply_stop, name="reply_stop"),
    path("replies/<slice:slice_path>/<turn:turn_id>/again/", replies.reply_again, name="reply_again"),
    path("slices/<slice:slice_path>/", slices.slice_page, name="slice"),
    path("slices/<slice:slice_path>/raw/", slices.slice_raw, name="slice_raw"),
    path("slices/<slice:slice_path>/close/", slices.slice_close, name="slice_close"),
    path("timeline/", timeline.timeline, name="timeline"),
    path("timeline/<int:year>/", timeline.timeline, name="timeline_year"),
    path("timeline/<int:year>/<int:month>/", timeline.timeline_month, name="timeline_month"),
    path("strands/", strands.strands_page, name="strands"),
    path("strands/merges/", strands.merges_page, name="merges"),
    path("strands/merges/undo/", strands.merge_undo, name="merge_undo"),
    path("search/", search.search_page, name="search"),
    path("settings/export/", export.export, name="export"),
    path("card/", cards.card_page, name="card"),
    path("card/raw/", cards.card_raw, name="card_raw"),
    path("card/edit/", card_editing.card_edit, name="card_edit"),
    path("card/versions/", cards.card_versions, name="card_versions"),
    path("card/versions/<commit:commit_id>/", cards.card_version, name="card_version"),
    path("card/versions/<commit:commit_id>/restore/", cards.card_restore, name="card_restore"),
]
