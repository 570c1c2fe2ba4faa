"""The plan: a ServingPlan's spec as validated values.

In: made by ``api.resolve`` alone (and by builders in tests). Out: read by demand, sizing, timeline, decision
and rendering. After this there is no ``.get()``, no optional that has a default, no unparsed string.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from zoneinfo import ZoneInfo

from servingplan.errors import Problem
from servingplan.planning.target import Engine, Target, TargetRef
from servingplan.planning.units import scale_duration

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""Weekday names of the API, in the order of ``date.weekday()``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A demand in requests/s; replicas follow from capacity and reserve."""

    requests_per_second: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A stated total of replicas that must be ready, reserve included."""

    replicas: int


Level = Rate | Total


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A weekly window; `end` at or before `start` is on the next date. Wall times of the plan's zone."""

    name: str
    days: frozenset[int]
    start: time
    end: time
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class CronWindow:
    """A window that a cron expression starts, at most once a local day, for an elapsed `duration`."""

    name: str
    cron: str
    at: time
    duration: timedelta
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A one-off level; naive wall times of the plan's zone, half-open."""

    name: str
    start: datetime
    end: datetime
    level: Level


class TreatAs(StrEnum):
    """What a calendar date is treated as, beside a weekday or a rate."""

    BASE = "Base"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Dates that are not ordinary: `treat_as` is `TreatAs.BASE`, a weekday (0 = Monday) or a rate.

    valid_until: the last date that the calendar knows of; None where it does not say.
    """

    name: str
    dates: frozenset[date]
    treat_as: TreatAs | int | Rate
    valid_until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The week by its busiest five minutes: requests/s, Monday 00:00 first.

    rates: 168 entries (an hour each) or 1,008 (ten minutes each).
    """

    rates: Sequence[Decimal]

    @property
    def slot(self) -> timedelta:
        """How much wall time one entry covers."""
        return timedelta(days=7) / len(self.rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCapacity:
    """Goodput of one replica, in requests/s, in a pool of `replicas`."""

    replicas: int
    requests_per_second: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Goodput of one replica by pool size, ascending; one point where it does not depend on the size.

    A tuple, because a capacity is a key of the sizing cache.
    """

    points: tuple[PoolCapacity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Replicas beyond the need; `quiet` in quiet hours."""

    replicas: int
    quiet: int

    @property
    def smallest(self) -> int:
        """What is always there: rolling updates and disruptions may take no more."""
        return min(self.replicas, self.quiet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """From the decision to the first verified token. margin: a share of `declared`."""

    declared: timedelta
    margin: Fraction
    maximum: timedelta

    @property
    def effective(self) -> timedelta:
        """Declared x (1 + margin), at most `maximum`."""
        return min(scale_duration(self.declared, 1 + self.margin), self.maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """A fall goes down by at most `step` replicas, at once first and then every `every`."""

    step: int
    every: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of everything that is decided."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLengths:
    """Token quantiles per request, by quantile name (``p50``) ascending; empty where not stated."""

    input: tuple[tuple[str, int], ...] = ()
    output: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A latency objective: the per-request `limit` that the named percentile keeps."""

    percentile: str
    limit: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """What a good request is, and the share that must be good. None where no objective is stated."""

    ttft: Objective | None = None
    tpot: Objective | None = None
    e2el: Objective | None = None
    goodput_share: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a request looks like and when it is good."""

    tokens: TokenLengths = field(default_factory=TokenLengths)
    objectives: Objectives = field(default_factory=Objectives)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A ServingPlan, validated. `warnings` are problems that do not keep it from acting."""

    namespace: str
    name: str
    suspend: bool
    target: Target
    gpus_per_replica: int | None
    workload: Workload
    capacity: Capacity
    reserve: Reserve
    zone: ZoneInfo
    base: Rate
    windows: Sequence[Window]
    cron_windows: Sequence[CronWindow]
    profile: Profile | None
    calendars: Sequence[Calendar]
    overrides: Sequence[Override]
    lead: Lead
    scale_down: ScaleDown
    bounds: Bounds
    warnings: Sequence[Problem] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def engine(self) -> Engine | None:
        """The owned engine, where there is one."""
        return self.target if isinstance(self.target, Engine) else None

    @property
    def target_ref(self) -> TargetRef | None:
        """The named target, where there is one."""
        return self.target if isinstance(self.target, TargetRef) else None
