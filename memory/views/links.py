"""Where a reader finds things: the person on their own pages, the administration on pages that only show."""

from datetime import date
from urllib.parse import urlencode

from django.urls import reverse


class OwnLinks:
    """The person's own pages. Whoever shows a memory to somebody else gives an object with the same methods.

    `own` tells the templates whether anything may be changed from the page.
    """

    own = True

    def slice_url(self, slice_path: str, **query: str) -> str:
        """One slice, by its slice path."""
        return with_query(reverse("slice", args=[slice_path]), **query)

    def turn_url(self, slice_path: str, turn_id: str) -> str:
        """One turn in the conversation of its slice."""
        return f"{self.slice_url(slice_path)}#{turn_id}"

    def download_url(self, slice_path: str) -> str:
        """The file of a slice, to keep."""
        return reverse("slice_raw", args=[slice_path])

    def card_url(self) -> str:
        """The card."""
        return reverse("card")

    def card_versions_url(self, **query: str) -> str:
        """The earlier versions of the card."""
        return with_query(reverse("card_versions"), **query)

    def card_version_url(self, commit_id: str) -> str:
        """The card as one commit left it."""
        return reverse("card_version", args=[commit_id])

    def strand_url(self, name: str, **more: str) -> str:
        """One strand; the name is only ever a value in the query."""
        return with_query(self.strands_url(), name=name, **more)

    def strands_url(self, **query: str) -> str:
        """The list of strands."""
        return with_query(reverse("strands"), **query)

    def merges_url(self) -> str:
        """The list of merges."""
        return reverse("merges")

    def year_url(self, year: int, **query: str) -> str:
        """A year of the timeline."""
        return with_query(reverse("timeline_year", args=[year]), **query)

    def month_url(self, month: date, **query: str) -> str:
        """A month of the timeline."""
        return with_query(reverse("timeline_month", args=[month.year, month.month]), **query)


def with_query(url: str, **query: str) -> str:
    """The URL with those parameters that are not empty."""
    given = urlencode({name: value for name, value in query.items() if value})
    return f"{url}?{given}" if given else url
