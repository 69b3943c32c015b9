"""Where an administrator finds things of one person: every page only shows."""

from datetime import date
from typing import Any

from django.urls import reverse

from memory.views.links import OwnLinks, with_query


class ReaderLinks(OwnLinks):
    """The pages of one person's memory as an administrator reads them."""

    own = False

    def __init__(self, person: Any) -> None:
        self.person = person

    def person_url(self) -> str:
        """How the person's memory is, without a word of it."""
        return self._url("person")

    def slice_url(self, slice_path: str, **query: str) -> str:
        return with_query(self._url("slice", slice_path), **query)

    def download_url(self, slice_path: str) -> str:
        return self._url("slice_raw", slice_path)

    def card_url(self) -> str:
        return self._url("card")

    def card_versions_url(self, **query: str) -> str:
        return with_query(self._url("card_versions"), **query)

    def card_version_url(self, commit_id: str) -> str:
        return self._url("card_version", commit_id)

    def strands_url(self, **query: str) -> str:
        return with_query(self._url("strands"), **query)

    def merges_url(self) -> str:
        return self._url("merges")

    def timeline_url(self) -> str:
        """The newest year of the timeline."""
        return self._url("timeline")

    def year_url(self, year: int, **query: str) -> str:
        return with_query(self._url("timeline_year", year), **query)

    def month_url(self, month: date, **query: str) -> str:
        return with_query(self._url("timeline_month", month.year, month.month), **query)

    def _url(self, name: str, *arguments: Any) -> str:
        return reverse(f"admin:memory_{name}", args=[self.person.pk, *arguments])
