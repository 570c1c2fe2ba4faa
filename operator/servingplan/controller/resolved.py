"""Plans as resolved last: parsing a plan and its calendars is done once per change, not once per reconcile.

In: a document and what it refers to. Out: the `Plan` with the figures that follow from it alone, or every
problem. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from servingplan.api.references import References
from servingplan.api.resolve import resolve
from servingplan.controller.store import Key
from servingplan.errors import InvalidPlan, Problem
from servingplan.planning.calendar import local_date
from servingplan.planning.demand import first_instant, requirements
from servingplan.planning.plan import Plan
from servingplan.reporting.hours import GpuHours, nominal_month

COMING_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A plan and its nominal month, or, with `plan` None, its problems."""

    plan: Plan | None
    month: GpuHours | None = None
    problems: tuple[Problem, ...] = ()


class ResolvedPlans:
    """The last resolution of each plan, kept while nothing that it was made from changes."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[object, Resolved]] = {}
        self._acting: dict[Key, tuple[Resolved, Resolved]] = {}

    def get(self, key: Key, document: Mapping[str, Any], references: References) -> Resolved:
        """The plan of a document, resolved now or before."""
        made_from = (document["metadata"].get("uid"), document["metadata"].get("generation"), dict(references))
        known = self._known.get(key)
        if known is not None and known[0] == made_from:
            return known[1]
        found = _resolve(document, references)
        self._known[key] = (made_from, found)
        return found

    def acting(self, key: Key, resolved: Resolved, plan: Plan) -> Resolved:
        """The figures of the plan that is acted on, where another capacity counts than what resolved."""
        if resolved.plan is None or plan.capacity == resolved.plan.capacity:
            return resolved
        known = self._acting.get(key)
        if (
            known is None
            or known[0] is not resolved
            or known[1].plan is None
            or known[1].plan.capacity != plan.capacity
        ):
            known = (resolved, Resolved(plan=plan, month=nominal_month(plan)))
            self._acting[key] = known
        return known[1]

    def forget(self, key: Key) -> None:
        """Drop a plan that is gone."""
        self._known.pop(key, None)
        self._acting.pop(key, None)


def highest_requirement(plan: Plan, now: datetime) -> int:
    """The most replicas that the rest of the day and the week after it require: it looks further at midnights alone."""
    end = coming_midnight(plan, now) + COMING_WEEK
    return max(requirement.replicas for requirement in requirements(plan, now, end).values)


def coming_midnight(plan: Plan, now: datetime) -> datetime:
    """When the plan's next local date begins: what is counted in dates changes then."""
    return first_instant(plan, local_date(now, plan.zone) + timedelta(days=1))


def _resolve(document: Mapping[str, Any], references: References) -> Resolved:
    try:
        plan = resolve(document, references)
    except InvalidPlan as invalid:
        return Resolved(plan=None, problems=invalid.problems)
    return Resolved(plan=plan, month=nominal_month(plan))
