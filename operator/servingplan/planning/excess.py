"""Excess: by how much arrivals are above the plan, since when, and what to write into the plan.

In: what the arrivals' rule says, and what was remembered. Out: `Excess`, which moves only in coarse steps so that a
condition can state it, and the change of the schedule that would hold against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any

from servingplan.planning.demand import Requirement, Source
from servingplan.planning.evidence import Case, Verdict, planned_rate
from servingplan.planning.observation import Excess
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Signals
from servingplan.planning.sizing import need
from servingplan.planning.units import rate_number

_EPOCH = datetime.fromtimestamp(0, UTC)

_LISTS = {Reason.WINDOW: "windows", Reason.OVERRIDE: "overrides", Reason.CALENDAR: "calendars"}
"""Where in spec.schedule a source is found by its name."""


def rounded_up(instant: datetime, grain: timedelta) -> datetime:
    """The next instant on a grid of `grain`; the instant itself where there is none."""
    return instant if not grain else _EPOCH - (_EPOCH - instant) // grain * grain


def complete(signals: Signals) -> bool:
    """Only who hears everybody, for long enough to know the arrivals, may say that less is needed."""
    return signals.arrivals_2m is not None and not signals.missing


def excess_after(case: Case, arrivals: Verdict, before: Excess | None, grain: timedelta) -> Excess | None:
    """What is remembered of arrivals above the plan. It ends when there were none for the stabilization."""
    if before is None and not arrivals.wants:
        return None
    required, at = case.required.at(case.now), case.signals.at
    planned, source, seen_at = planned_rate(case.plan, required), str(required.source), rounded_up(at, grain)
    known = before or Excess(since=at, seen_at=seen_at, rate=planned, planned=planned, source=source)
    if (known.source, known.planned) != (source, planned):
        known = replace(known, rate=planned, planned=planned, source=source)
    seen_before = min(known.seen_at, seen_at)
    if arrivals.keeps:
        return replace(known, seen_at=seen_at, rate=max(known.rate, _coarse(max_rate(case))))
    if complete(case.signals) and case.now >= seen_before + case.plan.scale_down.stabilization:
        return None
    return replace(known, seen_at=seen_before)


def max_rate(case: Case) -> float:
    """The larger of the two- and ten-minute rates."""
    windows = (case.signals.arrivals_2m, case.signals.arrivals_10m)
    return max((lasting.value for lasting in windows if lasting is not None), default=0.0)


def _coarse(rate: float) -> Decimal:
    """Two significant digits, rounded up: what a person would write into a plan, and what rarely changes."""
    exact = Decimal(str(rate))
    if not exact:
        return exact
    return exact.quantize(Decimal((0, (1,), exact.adjusted() - 1)), rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would hold against an excess: the number, and a JSON merge patch of the ServingPlan that writes it.

    patch: None where the demand is not in the plan itself (a profile's ConfigMap).
    """

    rate: Decimal
    replicas: int
    patch: Mapping[str, Any] | None


def change(plan: Plan, required: Requirement, rate: Decimal, schedule: Mapping[str, Any]) -> Change:
    """The change of the part of the schedule that asks for `required`, so that it holds against `rate` requests/s.

    schedule: the plan's ``spec.schedule`` as it was written; a merge patch replaces lists as a whole, so the others of
    a list are repeated from it. A stated total stays one: need plus reserve.
    """
    replicas = need(rate, plan.capacity, plan.bounds.maximum).unbounded + plan.reserve.replicas
    level = {"requestsPerSecond": rate_number(rate)} if required.rate is not None else {"replicas": replicas}
    part = _changed(required.source, level, schedule)
    patch = None if part is None else {"spec": {"schedule": part}}
    return Change(rate=rate, replicas=replicas, patch=patch)


def _changed(source: Source, level: Mapping[str, Any], schedule: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if source.reason is Reason.BASE:
        return {"base": dict(level)}
    name = _LISTS.get(source.reason)
    entries = schedule.get(name or "", ())
    if name is None or not any(entry.get("name") == source.name for entry in entries):
        return None
    return {name: [{**entry, **level} if entry.get("name") == source.name else {**entry} for entry in entries]}
