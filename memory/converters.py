"""What stands in the URLs of a memory. A path that is no real slice, turn or commit is no page."""

from django.urls import register_converter

from memory.folder.paths import parse_slice_path, parse_turn_id


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


class CommitId:
    regex = "[0-9a-f]{40}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(CommitId, "commit")
register_converter(SlicePath, "slice")
register_converter(TurnId, "turn")
