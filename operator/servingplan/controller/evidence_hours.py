"""When evidence may be gathered: always, or only in the quiet hours of a plan.

In: the plan that evidence keeps to. Out: `Hours`: whether now is the time, until when, and the words for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from servingplan.api.references import referenced
from servingplan.api.resolve import resolve
from servingplan.controller.clock import Clock
from servingplan.controller.observe import Observer
from servingplan.controller.store import Key
from servingplan.errors import InputError
from servingplan.planning.plan import Plan
from servingplan.planning.quiet import quiet
from servingplan.planning.units import parse_duration
from servingplan.rendering.times import local_time

Object = Mapping[str, Any]

ANY_CAPACITY = {"requestsPerSecond": 1}
"""Quiet hours do not depend on it, and the plan's own may be what is measured here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Whether it is time. until: when that changes, None where the clock alone changes nothing."""

    quiet: bool
    until: datetime | None = None
    words: str = ""


ALWAYS = Hours(quiet=True)


class QuietHours:
    """Knows the quiet hours of plans."""

    def __init__(self, *, observer: Observer, clock: Clock) -> None:
        self._observer = observer
        self._clock = clock

    async def of(self, namespace: str, name: str | None, plans: Mapping[str, Object | None]) -> Hours:
        """The hours of the plan of that name; always where there is none. Raises ClusterError."""
        document = None if name is None else plans.get(name)
        if document is None:
            return ALWAYS
        document = {**document, "spec": {**document["spec"], "capacity": ANY_CAPACITY}}
        references = await self._observer.references(Key(namespace, str(name)), referenced(document))
        try:
            plan = resolve(document, references)
        except InputError as error:
            words = (
                f"the quiet hours of ServingPlan {name} are not known, since it does not resolve: {error.problems[0]}"
            )
            return Hours(quiet=False, words=words)
        return self._hours(plan, _lead(plan, document))

    def _hours(self, plan: Plan, lead: timedelta) -> Hours:
        found = quiet(plan, lead, self._clock.now())
        until = local_time(found.until, plan.zone)
        words = "" if found.now else f"ServingPlan {plan.name} is busy, or about to be, until {until}"
        return Hours(quiet=found.now, until=found.until, words=words)


def _lead(plan: Plan, document: Object) -> timedelta:
    """The longest that counts: as the plan states it, or as its rises taught."""
    learned = document.get("status", {}).get("leadTime", {}).get("effective")
    return plan.lead.effective if learned is None else max(plan.lead.effective, parse_duration(learned))
