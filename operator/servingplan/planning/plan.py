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
from servingplan.planning.acceptance import Gate
from servingplan.planning.measured import Measured
from servingplan.planning.target import Engine, Target, TargetRef
from servingplan.planning.units import format_duration, scale_duration

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


STATED = "plan"
"""The source of a capacity that the plan itself states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCapacity:
    """Goodput of one replica, in requests/s, in a pool of `replicas`."""

    replicas: int
    requests_per_second: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Goodput of one replica by pool size, ascending; one point where it does not depend on the size.

    A tuple, because a capacity is a key of the sizing cache. source: where the number is from, `STATED` or the name of
    a benchmark. fingerprint: the digest of the engine that was measured. Both are no part of what it is.
    """

    points: tuple[PoolCapacity, ...]
    source: str = field(default=STATED, compare=False)
    fingerprint: str = field(default="", compare=False)


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
    """From the decision to the first verified token. margin: a share of it. learn: whether rises make it longer."""

    declared: timedelta
    margin: Fraction
    maximum: timedelta
    learn: bool = True

    @property
    def effective(self) -> timedelta:
        """Declared x (1 + margin), at most `maximum`."""
        return min(scale_duration(self.declared, 1 + self.margin), self.maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """A fall goes down by at most `step` replicas, at once first and then every `every`.

    stabilization: how long after the last evidence for it a replica that feedback raised is kept.
    """

    step: int
    every: timedelta
    stabilization: timedelta = timedelta(minutes=10)


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

    @property
    def share(self) -> Decimal:
        """Of the requests, that keep the limit: p95 -> 0.95."""
        return Decimal(self.percentile.removeprefix("p")) / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """What a good request is, and the share that must be good. None where no objective is stated."""

    ttft: Objective | None = None
    tpot: Objective | None = None
    e2el: Objective | None = None
    goodput_share: Decimal | None = None

    @property
    def stated(self) -> tuple[tuple[str, Objective], ...]:
        """Those that are stated, by name."""
        named = (("ttft", self.ttft), ("tpot", self.tpot), ("e2el", self.e2el))
        return tuple((name, objective) for name, objective in named if objective is not None)

    @property
    def lowest_share(self) -> Decimal | None:
        """The lowest percentile that is named: what must be good where no share is stated."""
        return min((objective.share for _, objective in self.stated), default=None)

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """All that is stated in words, by name: ``ttft`` and ``p95 1500ms``."""
        limits = tuple((name, f"{one.percentile} {format_duration(one.limit)}") for name, one in self.stated)
        return (
            limits if self.goodput_share is None else (*limits, ("goodputShare", f"{self.goodput_share.normalize():f}"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a request looks like and when it is good."""

    tokens: TokenLengths = field(default_factory=TokenLengths)
    objectives: Objectives = field(default_factory=Objectives)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusSource:
    """A Prometheus by the name that whoever installs the operator gave it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeSource:
    """The pods' own metrics: a port by name or number, and a path."""

    port: str
    path: str


class Auto(StrEnum):
    """A threshold that follows from the plan."""

    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseWhen:
    """Which signals may raise, and from which values on; None or False where one may not.

    in_flight_per_replica: requests running and waiting; AUTO is most of those at capacity, as a benchmark has it.
    waiting_per_replica: requests; AUTO is half of the queue that the TTFT objective allows. queue_time: only confirms
    what other signals say. preemption_share: of finished requests.
    """

    arrivals: bool = True
    in_flight_per_replica: Decimal | Auto | None = None
    tpot_breach: bool = True
    ttft_breach: bool = True
    waiting_per_replica: Decimal | Auto | None = Auto.AUTO
    queue_time: Objective | None = None
    preemption_share: Decimal | None = Decimal("0.05")
    rejections: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """Raises by what the last days say of the next minutes.

    miss_price: what it is worth not to miss any request, as a multiple of the replica-hours that serving them takes.
    So it means the same to plans of all sizes.
    """

    miss_price: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """The check against reality: where signals come from, what raises, by at most how many replicas.

    stale_after: readings that are older do not count. foresight: None where the past has no say.
    """

    source: PrometheusSource | ScrapeSource
    raise_when: RaiseWhen = field(default_factory=RaiseWhen)
    max_extra: int
    stale_after: timedelta = timedelta(seconds=90)
    foresight: Foresight | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A ServingPlan, validated. `warnings` are problems that do not keep it from acting.

    feedback: None where the schedule alone decides. acceptance: None where any edit of the engine is rolled out.
    measured: None where the plan states its capacity itself.
    """

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
    feedback: Feedback | None = None
    acceptance: Gate | None = None
    measured: Measured | None = None
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

    @property
    def foresight(self) -> Foresight | None:
        """What is asked of the past; None where it has no say."""
        return None if self.feedback is None else self.feedback.foresight
