"""Rises as a reconcile sees them: of which engine they are, and how exact the cluster's timestamps are.

In: what one reconcile saw and wrote. Out: what to remember of rises, for the same write of status that carries
``lastScale``. The rules are ``planning.rises``; nothing is kept in memory.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from servingplan.controller.clock import Clock
from servingplan.controller.pods import TIMESTAMP_GRAIN
from servingplan.controller.targets import TargetView
from servingplan.planning.lead import Rises
from servingplan.planning.observation import Observation, Scale
from servingplan.planning.plan import Plan
from servingplan.planning.rises import advance
from servingplan.rendering.engine import engine_hash
from servingplan.rendering.metadata import stable_hash


def fingerprint(plan: Plan, view: TargetView) -> str:
    """Of what an engine's start depends on: ``spec.engine``, or the pod template of a named target.

    What has no template of its own, as an autoscaler, is known by its name alone.
    """
    if plan.engine is not None:
        return engine_hash(plan.engine)
    template = view.live["spec"].get("template") if view.live is not None else None
    return stable_hash(str(view.ref) if template is None else template)


def track(
    rises: Rises,
    plan: Plan,
    view: TargetView,
    *,
    remembered: Scale | None,
    last_scale: Scale | None,
    written: bool,
    observation: Observation,
    clock: Clock,
    now: datetime,
) -> Rises:
    """What to remember of rises after a reconcile.

    remembered: ``lastScale`` of the status that was read; last_scale: the one to be noted; written: this reconcile made
    that change. observation: as it is after the writes. Where a target cannot be observed nothing is tracked,
    and status forgets what was running.
    """
    return advance(
        rises,
        fingerprint=fingerprint(plan, view),
        remembered=remembered,
        last_scale=last_scale,
        written=written,
        observation=observation,
        now=now,
        grain=_grain(clock, now),
    )


def _grain(clock: Clock, now: datetime) -> timedelta:
    """A second of the cluster's time, on the plan's clock."""
    return clock.from_real(clock.to_real(now) + TIMESTAMP_GRAIN) - now
