"""The trail that whoever opens somebody's memory leaves, for the person whose memory it is."""

from datetime import datetime, timedelta

from accounts.models import MemoryOpened, Page, User

LONGEST_REASON = 300
GOES_ON = timedelta(hours=1)
"""So long after it was given a reason also stands for what is opened next."""


def note(*, who: User, whose: User, page: Page, place: str = "", reason: str | None = None, now: datetime) -> None:
    """Write down that `who` opened a page of `whose` memory. Without a reason, the one given lately goes on."""
    if reason is None:
        reason = _reason_given(who, whose, now)
    MemoryOpened.objects.create(
        who=who,
        who_called=who.called,
        whose=whose,
        page=page,
        place=place,
        reason=" ".join(reason.replace("\0", "").split())[:LONGEST_REASON],
        at=now,
    )


def _reason_given(who: User, whose: User, now: datetime) -> str:
    last = MemoryOpened.objects.filter(who=who, whose=whose, at__gt=now - GOES_ON).order_by("-at", "-pk").first()
    return last.reason if last else ""
