"""The story of a demo: which day of a plan, and which parts of it are worth watching.

In: a plan and the present instant. Out: a `Story` with the coming rise, the fall after it, and the parts of the day
around both and all that changes in between. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from servingplan.errors import UsageError
from servingplan.planning.plan import Plan
from servingplan.reporting.local import after_days, midnight
from servingplan.reporting.outlook import Move, Outlook, coming_days, moves

DAYS = 15
"""Two weeks are looked through: a plan that rises on a Monday rises in them, unless that Monday is a holiday."""

BEFORE = timedelta(minutes=30)
"""Watched before a rise is asked for or a fall begins: what was there before is seen, and the operator is up."""

AFTER = timedelta(minutes=20)
"""Watched after a ramp has begun or a fall has ended: it is seen to hold."""

SKIPPED_FROM = timedelta(minutes=30)
"""Shorter stretches in which nothing changes are watched: a restart takes about as long."""

GRID = timedelta(minutes=15)
"""Parts begin and end at quarters of an hour."""

USUAL_FACTOR = 60
"""A minute of the day each second: slow enough to read, fast enough to wait for."""

MOST_FACTOR = 120
"""Beyond, real seconds that do not shrink (a process starts, a request is answered) become minutes of the day."""

USUAL_LENGTH = timedelta(seconds=150)
"""What the parts together may take at the usual factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of the day that is watched."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is watched. rise: the coming one. fall: the next after it, None where none comes in these days."""

    outlook: Outlook
    rise: Move
    fall: Move | None
    parts: Sequence[Part]

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.outlook.plan

    @property
    def zone(self) -> ZoneInfo:
        """Where the plan's clock is read."""
        return self.outlook.plan.zone

    @property
    def ramp_at(self) -> datetime:
        """When the rise must be ready."""
        return self.rise.ready_by or self.rise.start

    @property
    def length(self) -> timedelta:
        """What the parts take together, on the plan's clock."""
        return sum((part.end - part.start for part in self.parts), timedelta())

    @property
    def most(self) -> int:
        """The most replicas that are required or asked for while it is watched."""
        asked = self.outlook.course.asked_function
        return max(asked.values[i] for part in self.parts for i in asked.within(part.start, part.end))

    @property
    def day(self) -> Outlook:
        """The whole local day of the ramp."""
        start = midnight(self.ramp_at.astimezone(self.zone).date(), self.zone)
        return coming_days(self.plan, start, 1)

    def usual_factor(self) -> int:
        """How much faster the clock runs, unless somebody says otherwise."""
        return min(MOST_FACTOR, max(USUAL_FACTOR, math.ceil(self.length / USUAL_LENGTH)))


def tell(plan: Plan, now: datetime) -> Story:
    """The story of the first rise from tomorrow on. Raises UsageError where no rise comes within two weeks."""
    tomorrow = after_days(midnight(now.astimezone(plan.zone).date(), plan.zone), 1, plan.zone)
    outlook = coming_days(plan, tomorrow, DAYS)
    found = moves(outlook)
    first = next((i for i, move in enumerate(found) if move.after > move.before and _whole(move, tomorrow)), None)
    if first is None:
        raise UsageError(
            f"{plan.key} asks for no more replicas at any time in the coming {DAYS} days, so there is nothing to "
            "watch: servingplan plan FILE shows what it does"
        )
    falls = (i for i, move in enumerate(found) if i > first and move.after < move.before)
    last = next(falls, first)
    return Story(
        outlook=outlook,
        rise=found[first],
        fall=found[last] if last > first else None,
        parts=_parts(found[first : last + 1], plan.zone),
    )


def _whole(move: Move, start: datetime) -> bool:
    return move.start >= start + BEFORE + GRID


def _parts(found: Sequence[Move], zone: ZoneInfo) -> tuple[Part, ...]:
    parts: list[Part] = []
    for move in found:
        part = Part(
            start=_on_grid(move.start - BEFORE, zone),
            end=_on_grid(max(move.end, move.ready_by or move.end) + AFTER + GRID, zone),
        )
        if parts and part.start - parts[-1].end < SKIPPED_FROM:
            parts[-1] = Part(start=parts[-1].start, end=max(part.end, parts[-1].end))
        else:
            parts.append(part)
    return tuple(parts)


def _on_grid(instant: datetime, zone: ZoneInfo) -> datetime:
    """The quarter of an hour at or before an instant, on the local clock."""
    local = instant.astimezone(zone)
    return instant - timedelta(minutes=local.minute % 15, seconds=local.second, microseconds=local.microsecond)
