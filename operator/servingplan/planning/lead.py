"""The lead that learns: how long before a ramp replicas are asked for, from how long earlier rises took.

In: the lead that a plan declares, and the rises remembered in its status. Out: the lead to plan with, what was learned,
and in which stage the time went. A rise is one decision up to the *last* of its replicas verified, not one start:
replicas that load from one volume together are slower than one alone. `planning.rises` makes the samples. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from statistics import median_low

from servingplan.planning.plan import Lead
from servingplan.planning.units import format_duration, scale_duration

RISES_KEPT = 19
"""How many rises are remembered: of so few, the 95th percentile by nearest rank is the slowest one, and one slow rise
is forgotten after 19 others."""

PERCENTILE = 95

AGE_STEPS = 10
"""A rise that is still running counts at its age in steps of a tenth of the declared lead, or every look would be a
new lead."""

SHORTEST_STEP = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Where the time of a rise went, on the way of the replica that was verified last.

    scheduling: decision to a node. pulling: to the containers' start. engine: to verified.
    """

    scheduling: timedelta = timedelta()
    pulling: timedelta = timedelta()
    engine: timedelta = timedelta()

    @property
    def total(self) -> timedelta:
        """How long all of it took."""
        return self.scheduling + self.pulling + self.engine


STAGES = tuple(field.name for field in fields(Stages))
"""Names of the stages, in their order; the words of `observation.Stage`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiseSample:
    """A rise that is complete."""

    decided: datetime
    stages: Stages

    @property
    def took(self) -> timedelta:
        """Decision to the last of its replicas verified."""
        return self.stages.total


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRise:
    """A rise whose replicas are not all verified yet."""

    decided: datetime
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rises:
    """What is remembered of rises, oldest first.

    fingerprint: of the engine that they started; what another one took does not count.
    """

    fingerprint: str = ""
    samples: tuple[RiseSample, ...] = ()
    running: tuple[RunningRise, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveLead:
    """The lead in effect. `wanted`: what complete rises ask for, before `leadTime.max` capped it.

    proven: the lead without rises that are still running; a replica that is not verified after it is stuck (measured
    against `lead`, which grows with the age of a late rise, nothing would ever be). learned: the 95th percentile of
    rises; None where nothing was learned. rises: of how many complete ones. slowest: the stage that grew, or, of a
    single rise, the longest. again_at: when the age of a running rise makes the lead longer.
    """

    lead: timedelta
    proven: timedelta
    wanted: timedelta
    learned: timedelta | None = None
    rises: int = 0
    slowest: str | None = None
    again_at: datetime | None = None

    @property
    def capped(self) -> bool:
        """True where `leadTime.max` is what limits it (LeadCapped)."""
        return self.wanted > self.lead

    @property
    def cap_message(self) -> str:
        """What a condition says about a lead that is capped: absolute values, nothing that moves by itself."""
        stage = f", most of it in {self.slowest}" if self.slowest is not None else ""
        cause = (
            "the declared lead" if self.learned is None else f"rises take {format_duration(self.learned)}{stage}, which"
        )
        return (
            f"{cause} with its margin needs {format_duration(self.wanted)}; leadTime.max allows "
            f"{format_duration(self.lead)}. Find out what became slower, or raise leadTime.max"
        )


def effective_lead(lead: Lead, rises: Rises, now: datetime) -> EffectiveLead:
    """The larger of the declared lead and what was learned, with the margin, at most `lead.maximum`.

    Formula: serving-rules, "Start and lead". Where the plan does not learn, the declared lead alone.
    """
    samples = rises.samples[-RISES_KEPT:] if lead.learn else ()
    known = [sample.took for sample in samples]
    settled = max([lead.declared, *_percentile(known)])
    step = max(lead.declared / AGE_STEPS, SHORTEST_STEP)
    running = rises.running if lead.learn else ()
    ages = [age for rise in running if (age := _counted_age(rise, step, now)) > settled]
    learned = next(iter(_percentile([*known, *ages][-RISES_KEPT:])), None)
    effective = min(_with_margin(lead, max(lead.declared, learned or lead.declared)), lead.maximum)
    return EffectiveLead(
        lead=effective,
        proven=min(_with_margin(lead, settled), lead.maximum),
        wanted=_with_margin(lead, settled),
        learned=learned,
        rises=len(samples),
        slowest=slowest_stage(samples),
        again_at=None if effective == lead.maximum else _grows_at(running, settled, step, now),
    )


def slowest_stage(samples: Sequence[RiseSample]) -> str | None:
    """The stage in which the slowest rise lost most against the median of all; of one rise, the longest stage."""
    if not samples:
        return None
    worst = max(samples, key=lambda sample: (sample.took, sample.decided))

    def loss(stage: str) -> tuple[timedelta, timedelta]:
        took: timedelta = getattr(worst.stages, stage)
        return took - median_low([getattr(sample.stages, stage) for sample in samples]), took

    return max(STAGES, key=loss)


def _percentile(values: Sequence[timedelta]) -> Sequence[timedelta]:
    """The percentile by nearest rank; nothing of nothing."""
    rank = -(-PERCENTILE * len(values) // 100)
    return sorted(values)[rank - 1 : rank] if values else ()


def _with_margin(lead: Lead, duration: timedelta) -> timedelta:
    return scale_duration(duration, 1 + lead.margin)


def _counted_age(rise: RunningRise, step: timedelta, now: datetime) -> timedelta:
    """How long a rise has been running, rounded up to the next step."""
    return (max(now - rise.decided, timedelta()) // step + 1) * step


def _grows_at(running: Sequence[RunningRise], settled: timedelta, step: timedelta, now: datetime) -> datetime | None:
    """When the next step of a running rise's age counts: not before it is longer than what is known."""
    counts_from = settled // step * step
    instants = [rise.decided + max(counts_from, _counted_age(rise, step, now)) for rise in running]
    return min(instants, default=None)
