"""What a trigger does against what it was meant to do, over a range of time.

In: a trigger. Out: a `Course`: when it is active, when it was meant to be, and where these differ. What is due to a
clock change stands apart: it would not differ if clocks never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from servingplan.errors import Problem
from servingplan.migrating.intended import intended_intervals
from servingplan.migrating.keda_cron import CronTrigger, active_intervals
from servingplan.migrating.spans import Spans, minus
from servingplan.planning.calendar import Interval

_NO_CHANGES = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to know about a ScaledObject. spans: when, in order. note: nothing is wrong, but it is good to know."""

    problem: Problem
    spans: Sequence[Interval] = field(default=())
    note: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a trigger differs from what was meant. usual: whatever clocks do. at_change: only where they change."""

    usual: Spans
    at_change: Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A trigger over a range: when it is active, when it was meant to be, what is too much and what is missing."""

    trigger: CronTrigger
    active: Spans
    intended: Spans
    phantom: Difference
    lost: Difference


def course(trigger: CronTrigger, start: datetime, end: datetime) -> Course:
    """The trigger on [start, end)."""
    active, intended = active_intervals(trigger, start, end), intended_intervals(trigger, start, end)
    # The same wall times, of a clock that never changes.
    steady = replace(trigger, zone=_NO_CHANGES)
    walls = [instant.astimezone(trigger.zone).replace(tzinfo=UTC) for instant in (start, end)]
    always, meant = active_intervals(steady, *walls), intended_intervals(steady, *walls)
    return Course(
        trigger=trigger,
        active=active,
        intended=intended,
        phantom=_split(trigger, minus(active, intended), minus(always, meant)),
        lost=_split(trigger, minus(intended, active), minus(meant, always)),
    )


def _split(trigger: CronTrigger, spans: Spans, usual: Spans) -> Difference:
    """Which of the spans lie, on the wall, where there is a usual one too."""
    ordinary = [span for span in spans if _on_the_wall(span, trigger, usual)]
    return Difference(usual=ordinary, at_change=[span for span in spans if span not in ordinary])


def _on_the_wall(span: Interval, trigger: CronTrigger, usual: Spans) -> bool:
    start, end = (instant.astimezone(trigger.zone).replace(tzinfo=UTC) for instant in (span.start, span.end))
    return any(other.start < end and start < other.end for other in usual)
