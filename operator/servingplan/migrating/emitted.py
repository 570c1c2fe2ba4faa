"""What is emitted: manifests, and what to know about them; with what holds for every way out.

In: a plan and its weeks. Out: notes on how to leave without two writers, and without losing what runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from servingplan.planning.plan import Plan
from servingplan.planning.series import StepFunction
from servingplan.planning.target import DeletionPolicy
from servingplan.rendering.times import local_time

Manifest = dict[str, Any]

UNTIL = "servingplan.dev/emitted-until"
"""Annotation: the instant up to which a manifest does what the plan does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weeks:
    """A plan, and what is wanted of it on [start, end): by the minute, known from well before to well after."""

    plan: Plan
    wanted: StepFunction[int]
    start: datetime
    end: datetime

    @property
    def within(self) -> StepFunction[int]:
        """What is wanted on [start, end) alone."""
        return self.wanted.since(self.start).until(self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """Manifests, and what to know about them."""

    manifests: Sequence[Manifest]
    notes: Sequence[str]


def leaving(weeks: Weeks) -> Iterator[str]:
    """What to do beside applying the manifests, whatever they are."""
    plan = weeks.plan
    yield f"does what the plan does until {local_time(weeks.end, plan.zone)}; emit it anew before"
    yield "suspend the plan (spec.suspend) before you apply this, or two write replicas, and delete it after"
    if plan.engine is not None and plan.engine.deletion_policy is not DeletionPolicy.RETAIN:
        yield "set spec.engine.deletionPolicy: Retain before you delete the plan, or its Deployment goes with it"
    if plan.feedback is not None:
        yield "feedback is not part of it: nothing adds replicas when more comes than planned"
