"""Instants as people read them: always in the zone named, which is the slice's own or the person's."""

from datetime import datetime

from django import template
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from memory.folder.clock import local, local_day, stamp, utc_now

register = template.Library()


@register.filter
def clock(at: datetime, zone_name: str) -> str:
    """21:30"""
    return f"{local(at, zone_name):%H:%M}"


@register.filter
def instant(at: datetime) -> str:
    """The full instant, as the record has it."""
    return stamp(at)


@register.filter
def day(at: datetime, zone_name: str) -> str:
    """Monday, 10 August; with the year when it is not this one."""
    # Translators: a date with its weekday, in Django's date format letters.
    formats = pgettext("date format", "l, j F"), pgettext("date format", "l, j F Y")
    return _dated(at, zone_name, *formats)


@register.filter
def date(at: datetime, zone_name: str) -> str:
    """10 August; with the year when it is not this one."""
    return _dated(at, zone_name, pgettext("date format", "j F"), pgettext("date format", "j F Y"))


@register.filter
def short_date(at: datetime, zone_name: str) -> str:
    """10 Aug; with the year when it is not this one."""
    return _dated(at, zone_name, pgettext("date format", "j M"), pgettext("date format", "j M Y"))


@register.filter
def short_day(at: datetime, zone_name: str) -> str:
    """10 Mon"""
    return date_format(local(at, zone_name), pgettext("date format", "j D"))


@register.filter
def month(at: datetime, zone_name: str) -> str:
    """August; with the year when it is not this one."""
    return _dated(at, zone_name, pgettext("date format", "F"), pgettext("date format", "F Y"))


@register.filter
def full(at: datetime, zone_name: str) -> str:
    """Date, time and zone in full, for a title."""
    there = local(at, zone_name)
    return f"{date_format(there, pgettext('date format', 'l, j F Y'))}, {there:%H:%M:%S} ({zone_name})"


@register.filter
def ago(at: datetime, zone_name: str) -> str:
    """When something was, as one would say it: This morning, 07:45 · Yesterday, 22:10 · Monday, 10 August, 21:30."""
    there, today = local(at, zone_name), local_day(utc_now(), zone_name)
    days = (today - there.date()).days
    if days == 0:
        when = _part_of_day(there.hour)
    elif days == 1:
        when = _("Yesterday")
    else:
        when = day(at, zone_name)
    return _("%(day)s, %(time)s") % {"day": when, "time": f"{there:%H:%M}"}


def _part_of_day(hour: int) -> str:
    if hour < 5:
        return _("Last night")
    if hour < 12:
        return _("This morning")
    return _("This afternoon") if hour < 18 else _("This evening")


def _dated(at: datetime, zone_name: str, this_year: str, other_year: str) -> str:
    there = local(at, zone_name)
    return date_format(there, this_year if there.year == local_day(utc_now(), zone_name).year else other_year)
