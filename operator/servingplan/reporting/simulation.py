"""A simulation as people and programs get it: the contract of ``simulate -o json``.

In: a `Comparison`, and where its requests are from. Out: a `Simulated`, and its JSON document. Tables and pages are
views of it. Times are instants in UTC, shares 0 to 1, hours GPU-hours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from servingplan.planning.plan import WEEKDAYS, Plan
from servingplan.rendering.times import wire_time
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.comparison import CLAIRVOYANT_ATTAINMENT, Comparison, Result
from servingplan.simulation.scenarios.scene import Scene
from servingplan.simulation.standing import Excess, Standing
from servingplan.simulation.tokens_played import TokenStanding
from servingplan.simulation.trace import Drawing, Trace
from servingplan.simulation.world import RATE_STEP_S

Document = dict[str, Any]

_SHARE_DIGITS, _HOUR_DIGITS = 6, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where requests are from. files: as typed; none where the plan's own demand is played. notes: how they were read.

    drawing: how requests inside a step were drawn; None where each one's own time is known.
    """

    files: Sequence[str] = ()
    drawing: Drawing | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A comparison, where its requests are from, and what one GPU-hour costs; None where it is not said.

    tokens: what the plan's replicas attain token by token; None where that was not asked, or no request counts.
    """

    comparison: Comparison
    origin: Origin
    gpu_hour: Decimal | None = None
    tokens: TokenStanding | None = None

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.comparison.world.plan

    @property
    def trace(self) -> Trace:
        """What came."""
        return self.comparison.world.trace

    @property
    def start(self) -> datetime:
        """The first instant that everybody is judged by."""
        return self.comparison.world.judged_from

    @property
    def busiest(self) -> float:
        """The most requests/s in any ten minutes that count."""
        window = RATE_STEP_S // SLICE_S
        sums = np.concatenate([[0.0], np.cumsum(self.trace.requests * self.comparison.world.judged)])
        window = min(window, len(sums) - 1)
        return float((sums[window:] - sums[:-window]).max()) / (window * SLICE_S)

    @property
    def mean(self) -> float:
        """Requests/s on average."""
        return float(self.trace.requests[self.comparison.world.judged].mean()) / SLICE_S

    def over_reference(self, standing: Standing) -> float | None:
        """GPU-hours without the reserve, over those of a fleet that knows all arrivals."""
        reference = self.comparison.reference
        return None if not reference else (standing.hours - standing.reserve) / reference

    def over_bound(self, standing: Standing) -> float:
        """The same over divisible replicas that are always full."""
        return (standing.hours - standing.reserve) / self.comparison.bound

    def cost(self, standing: Standing) -> float | None:
        """What the GPU-hours cost."""
        return None if self.gpu_hour is None else float(self.gpu_hour) * standing.hours


def simulation_document(found: Simulated) -> Document:
    """The contract; docs/reference/simulation.schema.json is its schema."""
    comparison, trace = found.comparison, found.trace
    return {
        "plan": {"namespace": found.plan.namespace, "name": found.plan.name},
        "timeZone": found.plan.zone.key,
        "from": wire_time(found.start),
        "to": wire_time(trace.end),
        "tunedUntil": None if comparison.tuned_until is None else wire_time(comparison.tuned_until),
        "requests": {
            "files": list(found.origin.files),
            "notes": list(found.origin.notes),
            "count": round(comparison.plan.recorded.requests),
            "meanPerSecond": _rounded(found.mean, 4),
            "busiestTenMinutesPerSecond": _rounded(found.busiest, 4),
            "stepSeconds": trace.step_s,
            "drawn": _drawn(found.origin.drawing),
        },
        "assumptions": _assumptions(found),
        "reference": {
            "clairvoyantGpuHours": _rounded(comparison.reference, _HOUR_DIGITS),
            "clairvoyantAttainment": CLAIRVOYANT_ATTAINMENT,
            "fluidBoundGpuHours": _rounded(comparison.bound, _HOUR_DIGITS),
        },
        "abovePlan": _above(comparison.scenes[0], comparison.above[comparison.scenes[0].key]),
        "scenarios": [
            {
                "scenario": scene.key,
                "what": scene.words,
                "abovePlan": _above(scene, comparison.above[scene.key]),
            }
            for scene in comparison.scenes[1:]
        ],
        "policies": [_policy(found, result) for result in comparison.results],
        "tokenByToken": None if found.tokens is None else _tokens(found.tokens),
    }


def _tokens(standing: TokenStanding) -> Document:
    return {
        "requests": standing.requests,
        "replicaRequestsPerSecond": _rounded(standing.capacity, 4),
        "attainment": _rounded(standing.attainment, _SHARE_DIGITS),
        "preempted": _rounded(standing.preempted, _SHARE_DIGITS),
        "p95Seconds": {
            "ttft": _rounded(standing.ttft_s, 4),
            "tpot": _rounded(standing.tpot_s, 4),
            "e2el": _rounded(standing.e2el_s, 4),
        },
    }


def _drawn(drawing: Drawing | None) -> Document | None:
    return None if drawing is None else {"seed": drawing.seed, "dispersion": drawing.dispersion}


def _assumptions(found: Simulated) -> Document:
    plan, rules = found.plan, found.comparison.world.rules
    return {
        "model": "fluid",
        "sliceSeconds": SLICE_S,
        "startSeconds": rules.start_s,
        "drainSeconds": rules.drain_s,
        "waitLimitSeconds": rules.wait_limit_s,
        "patienceSeconds": rules.patience_s,
        "gpusPerReplica": plan.gpus_per_replica or 1,
        "capacity": [
            {"replicas": point.replicas, "requestsPerSecond": float(point.requests_per_second)}
            for point in plan.capacity.points
        ],
    }


def _above(scene: Scene, above: Excess) -> Document:
    most = None
    if above.most is not None:
        index, rate, planned = above.most
        most = {
            "time": wire_time(scene.world.trace.at(index)),
            "requestsPerSecond": _rounded(rate, 4),
            "plannedPerSecond": _rounded(planned, 4),
        }
    return {"share": _rounded(above.share, _SHARE_DIGITS), "count": round(above.requests), "most": most}


def _policy(found: Simulated, result: Result) -> Document:
    recorded = result.recorded
    return {
        "policy": result.entrant.key,
        "title": result.entrant.title,
        "settings": result.words,
        "setting": result.setting,
        **_standing(recorded),
        "worstHour": _worst_hour(recorded),
        "overClairvoyant": _rounded(found.over_reference(recorded), 4),
        "overFluidBound": _rounded(found.over_bound(recorded), 4),
        "cost": _rounded(found.cost(recorded), 2),
        "weekly": [None if math.isnan(share) else _rounded(share, _SHARE_DIGITS) for share in recorded.weekly.tolist()],
        "scenarios": {
            scene.key: {
                **_standing(result.standings[scene.key]),
                "attainmentAsRecorded": _rounded(result.calm[scene.key], _SHARE_DIGITS),
            }
            for scene in found.comparison.scenes[1:]
        },
    }


def _standing(standing: Standing) -> Document:
    kinds = ("serving", "reserve", "starting", "draining")
    return {
        "attainment": _rounded(standing.attainment, _SHARE_DIGITS),
        "attainmentInRises": _rounded(standing.rising, _SHARE_DIGITS),
        "missed": round(standing.missed),
        "gpuHours": {
            "total": _rounded(standing.hours, _HOUR_DIGITS),
            **{kind: _rounded(getattr(standing, kind), _HOUR_DIGITS) for kind in kinds},
        },
    }


def _worst_hour(standing: Standing) -> Document | None:
    hour = standing.worst_hour
    if hour is None:
        return None
    share = _rounded(float(standing.weekly[hour]), _SHARE_DIGITS)
    return {"weekday": WEEKDAYS[hour // 24], "hour": hour % 24, "attainment": share}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
