"""Local time: wall times, dates and cron fires become intervals of instants.

In: wall times of a zone. Out: instants in UTC. The rules for clock changes live here alone: a wall time that
is missing is the end of the gap; one that comes twice is the first for a start and the last for an end.
What is required is tested against these intervals, never derived from "next fire" times.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

from servingplan.planning.plan import CronWindow, Override, Window

MAX_CRON_DURATION = timedelta(days=7)
"""No cron window may last longer: it bounds how far back an instance can have started."""


class Edge(Enum):
    """Which end of an interval a wall time is."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The instants from `start` up to, not including, `end`."""

    start: datetime
    end: datetime

    def __contains__(self, instant: datetime) -> bool:
        """Half-open: the start belongs, the end does not."""
        return self.start <= instant < self.end

    @property
    def empty(self) -> bool:
        """True where nothing lies inside, as for a window wholly inside a gap."""
        return self.end <= self.start


def resolve_wall(wall: datetime, zone: ZoneInfo, edge: Edge) -> datetime:
    """The instant of a naive wall time. Missing: the end of the gap. Doubled: first for START, last for END."""
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if first == second:
        return first
    if second < first:
        # In a gap, fold 0 reads the wall time with the offset before it and lands behind the change.
        return _offset_change(second, first, zone)
    return first if edge is Edge.START else second


def _offset_change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The instant between `before` and `after` (UTC) at which the zone's offset changes, to the second."""
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


@lru_cache(maxsize=4096)
def offset_changes(day: date, zone: ZoneInfo) -> tuple[datetime, ...]:
    """The instants (UTC) around a local date at which the zone's offset changes; nearly always none."""
    noon = datetime.combine(day, time(12), tzinfo=zone)
    edges = [noon.astimezone(UTC) + timedelta(hours=h) for h in (-24, 0, 24)]
    pairs = itertools.pairwise(edges)
    return tuple(
        _offset_change(a, b, zone) for a, b in pairs if a.astimezone(zone).utcoffset() != b.astimezone(zone).utcoffset()
    )


def slot_edges(day: date, slots: int, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Where the slots of a local date begin, equally long on the wall, and where the last one ends."""
    midnight = datetime.combine(day, time())
    whole = timedelta(days=1)
    if not offset_changes(day, zone):
        first = resolve_wall(midnight, zone, Edge.START)
        return tuple(first + i * whole / slots for i in range(slots + 1))
    return tuple(resolve_wall(midnight + i * whole / slots, zone, Edge.START) for i in range(slots + 1))


def window_instance(window: Window, day: date, zone: ZoneInfo) -> Interval:
    """The instance of a window that starts on a local date; the end lies on the next date if not after start."""
    end_day = day if window.end > window.start else day + timedelta(days=1)
    return Interval(
        start=resolve_wall(datetime.combine(day, window.start), zone, Edge.START),
        end=resolve_wall(datetime.combine(end_day, window.end), zone, Edge.END),
    )


@lru_cache(maxsize=16384)
def cron_fires_on(cron: str, at: time, day: date) -> bool:
    """Does the expression fire on that local date? It is read on naive wall time, without any zone."""
    return bool(croniter.match(cron, datetime.combine(day, at)))


def cron_instance(window: CronWindow, day: date, zone: ZoneInfo) -> Interval | None:
    """The instance that a fire on a local date starts; None where there is no fire."""
    if not cron_fires_on(window.cron, window.at, day):
        return None
    start = resolve_wall(datetime.combine(day, window.at), zone, Edge.START)
    return Interval(start=start, end=start + window.duration)


def override_interval(override: Override, zone: ZoneInfo) -> Interval:
    """The instants that an override covers."""
    return Interval(
        start=resolve_wall(override.start, zone, Edge.START), end=resolve_wall(override.end, zone, Edge.END)
    )


def local_date(instant: datetime, zone: ZoneInfo) -> date:
    """The date that a clock on the wall shows at `instant`."""
    return instant.astimezone(zone).date()


def dates_between(first: date, last: date) -> tuple[date, ...]:
    """All dates from `first` to `last`, both included."""
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))
