"""What was learned of a plan's arrivals: its usual day, and how far forecasts were off.

In: made by `planning.learning` from the last days, once a night and after a restart. Out: read by `planning.foreseen`.
Everything is in replicas: 1 is what one replica of the smallest pool serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from servingplan.planning.demand import calendars_of, weekdays_of
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason

SLOTS = 144
"""The usual day has ten minutes a slot, by the clock on the wall."""

MINUTE = timedelta(minutes=1)

LEVEL_S = 3 * 3600
"""Over how long today is compared with the usual day."""

NOW_S = (60, 120, 300)
"""Over how long the rate now is looked at; the largest counts."""

SLICE = timedelta(seconds=30)
"""The step of time of forecasts."""

BEYOND = -(-timedelta(seconds=45) // SLICE) * SLICE
"""How much longer than a start a horizon is: the decision, and readings that are some seconds old. Whole slices."""

FEWEST_DAYS = 2
"""With fewer, one day cannot be compared with another, and there is no usual day."""

_WEEKEND = frozenset({5, 6})

_GRID = timedelta(minutes=5)
"""Slots begin on it in every zone: their offsets are multiples of it."""

_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Arrivals of each minute from `start` (aware, a whole minute) on, in requests/s; NaN where nobody counted."""

    start: datetime
    rates: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRoom:
    """How far needs went beyond forecasts: by `room` times the forecast's spread.

    by_hour: the spread of each hour of the day over that of the whole day.
    """

    room: float
    by_hour: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What earlier days taught. Replaced as a whole by what the next night teaches.

    day: the local date that it was learned for, from the days before it. days: how many there were, by the minutes
    that were counted. unit: requests/s that are 1. start: how long a replica takes, which head room was learned for.
    working, off: the usual day by slot, of both kinds. trust: how far it is used, 0 to 1.
    rising: of the need one start from now; lasting: of the most until then; None where less than a day was counted.
    most: what was needed at most. recent: the minutes before it was learned.
    """

    day: date
    days: float
    unit: float
    start: timedelta
    working: Sequence[float]
    off: Sequence[float]
    trust: float
    rising: HeadRoom | None
    lasting: HeadRoom | None
    most: float
    recent: Past

    @property
    def at(self) -> datetime:
        """When it was learned, to the minute."""
        return self.recent.start + len(self.recent.rates) * MINUTE

    @property
    def has_profile(self) -> bool:
        """Whether there is a usual day that says something about the next one."""
        return self.trust > 0 and self.days >= FEWEST_DAYS

    def usual_day(self, plan: Plan, day: date) -> Sequence[float]:
        """The usual day of the date's kind, by slot."""
        return self.off if is_day_off(plan, day) else self.working

    def planned(self, plan: Plan, instant: datetime) -> float:
        """What is usual at an instant."""
        return self.planned_at(plan, (instant,))[0]

    def planned_at(self, plan: Plan, instants: Iterable[datetime]) -> list[float]:
        """What is usual at each instant. Of what kind a date is, is asked once: there may be hundreds of a day."""
        walls = [instant.astimezone(plan.zone) for instant in instants]
        days = {day: self.usual_day(plan, day) for day in {wall.date() for wall in walls}}
        return [days[wall.date()][slot_of(wall)] for wall in walls]

    def most_planned(self, plan: Plan, first: datetime, last: datetime) -> float:
        """The most that is usual from one instant to another, both included."""
        steps = (last - _EPOCH) // _GRID - (first - _EPOCH) // _GRID
        begin = _EPOCH + (first - _EPOCH) // _GRID * _GRID
        return max(self.planned_at(plan, (max(first, begin + step * _GRID) for step in range(steps + 1))))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned:
    """Why nothing could be learned, or nothing new."""

    reason: Reason
    message: str


def slot_of(wall: datetime) -> int:
    """The slot of a local time."""
    return (wall.hour * 60 + wall.minute) * SLOTS // (24 * 60)


def is_day_off(plan: Plan, day: date) -> bool:
    """Saturdays, Sundays, and dates that a calendar takes out of the working week."""
    return weekdays_of(calendars_of(plan, day), day) <= _WEEKEND
