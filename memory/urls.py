"""Where the pages of a person's memory answer. A path that is no real slice or turn is no page."""

from django.urls import path, register_converter

from memory.folder.paths import parse_slice_path, parse_turn_id
from memory.views import chat, replies, slices, spine, watch


class SlicePath:
    """`2026/08/10/2130`: only a real minute, given to the view as it stands."""

    regex = "[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9]{4}"

    def to_python(self, value: str) -> str:
        parse_slice_path(value)
        return value

    def to_url(self, value: str) -> str:
        return value


class TurnId:
    regex = "[A-Za-z0-9_-]{1,16}"

    def to_python(self, value: str) -> str:
        return parse_turn_id(value)

    def to_url(self, value: str) -> str:
        return value


register_converter(SlicePath, "slice")
register_converter(TurnId, "turn")

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
]
