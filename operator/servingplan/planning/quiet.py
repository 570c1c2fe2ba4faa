"""Quiet hours of a plan: when nothing is scheduled that somebody's measuring could disturb.

In: a plan, its lead, the clock's time. Out: whether it is quiet now, and when that changes. Capacity plays no part:
what is stated for a time is busy, and so is a profile above the base.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from servingplan.planning.demand import claims_between, requirements
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.series import StepFunction, step_function

HANDOVER = timedelta(minutes=2)
"""Before the lead of a rise begins: what was measured with is gone, and its accelerators are free."""

LOOKS_AHEAD = timedelta(days=8)
"""A week and a day: whatever comes every week is seen, and what is rarer at the next look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Whether it is quiet, and until when: from then on it is not, or it is to be looked at again."""

    now: bool
    until: datetime


def quiet(plan: Plan, lead: timedelta, now: datetime) -> Quiet:
    """Quiet(t): nothing is busy in [t, t + lead + `HANDOVER`]. lead: the one in effect."""
    ahead = lead + HANDOVER
    end = now + LOOKS_AHEAD
    busy = _busy(plan, now, end + ahead + timedelta(seconds=1))
    instants = {now, *busy.times, *(time - ahead for time in busy.times)}
    states = [(time, _is_quiet(busy, time, ahead)) for time in sorted(instants) if now <= time < end]
    is_quiet = states[0][1]
    return Quiet(now=is_quiet, until=next((time for time, state in states if state != is_quiet), end))


def _is_quiet(busy: StepFunction[bool], instant: datetime, ahead: timedelta) -> bool:
    return not any(busy.values[index] for index in busy.within(instant, instant + ahead))


def _busy(plan: Plan, start: datetime, end: datetime) -> StepFunction[bool]:
    required = requirements(plan, start, end)
    claims = [claim.interval for claim in claims_between(plan, start, end)]
    base = plan.base.requests_per_second

    def busy(time: datetime) -> bool:
        wanted = required.at(time)
        above = wanted.source.reason is Reason.PROFILE and (wanted.rate is None or wanted.rate > base)
        return above or any(claim.start <= time < claim.end for claim in claims)

    edges = {edge for claim in claims for edge in (claim.start, claim.end) if start <= edge < end}
    return step_function([(time, busy(time)) for time in sorted({*required.times, *edges})], end=end)
