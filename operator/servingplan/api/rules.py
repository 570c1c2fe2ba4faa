"""What a valid ServingPlan keeps beyond types: each rule once, as CEL, as Python and in words.

Place in the flow: the API server evaluates `Rule.cel` (``crd`` prints it), ``validation`` evaluates `Rule.holds` on the
same plain JSON with the same defaults, and both say `Rule.message`. Knows no models and reads nothing else.

A check may raise KeyError, TypeError, ValueError or AttributeError where a value it needs is malformed: the schema
has its own problem for that value, so the rule is then skipped, as the API server skips it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import prod
from typing import Any

from servingplan.planning.calendar import MAX_CRON_DURATION
from servingplan.planning.units import parse_duration

LONGEST_STALE = timedelta(minutes=5)
"""A pod that is silent for longer is heard anew, so that older readings cannot count."""

LONGEST_LEAD, LONGEST_STEP = timedelta(hours=24), timedelta(hours=1)
"""They bound how far the planning looks ahead and back, so that no plan can keep the operator busy for long."""

FLOOR_KINDS = ("HorizontalPodAutoscaler", "ScaledObject")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule on an object or value of the wire.

    cel: for the API server. holds: the same for us; None for a transition, which needs the old object.
    at: the child field that the problem belongs to; empty for the object itself.
    """

    cel: str
    message: str
    reason: str
    holds: Callable[[Any], bool] | None
    at: str = ""

    def as_validation(self) -> dict[str, str]:
        """The entry of ``x-kubernetes-validations``."""
        # The API server takes no field path into metadata: that is not in the schema.
        where = {"fieldPath": f".{self.at}"} if self.at and not self.at.startswith("metadata.") else {}
        return {"rule": self.cel, "message": self.message, **where}


def _one_of(value: Json, *names: str) -> bool:
    return sum(name in value for name in names) == 1


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _positive(text: str) -> bool:
    return parse_duration(text) > timedelta(0)


# ---- the plan ---------------------------------------------------------------------------------------------

NAME_PATTERN = "[a-z]([-a-z0-9]{0,50}[a-z0-9])?"

PLAN_NAME = Rule(
    cel=f"self.metadata.name.matches('^{NAME_PATTERN}$')",
    message="metadata.name becomes the name of a Service: use at most 52 lower-case letters, digits and '-', "
    "start with a letter and end with a letter or digit",
    reason="InvalidName",
    holds=lambda plan: _matching(NAME_PATTERN)(plan["metadata"]["name"]),
    at="metadata.name",
)

ONE_TARGET = Rule(
    cel="has(self.engine) != has(self.targetRef)",
    message="state exactly one of engine (the operator runs vLLM) and targetRef (it scales what you run)",
    reason="OneTarget",
    holds=lambda spec: _one_of(spec, "engine", "targetRef"),
)
TARGET_FORM_STAYS = Rule(
    cel="has(self.engine) == has(oldSelf.engine)",
    message="engine cannot become targetRef or the other way round: create another ServingPlan and delete this one",
    reason="Immutable",
    holds=None,
)
TARGET_REF_STAYS = Rule(
    cel="self == oldSelf",
    message="targetRef cannot change: create another ServingPlan for the other workload and delete this one",
    reason="Immutable",
    holds=None,
)
FLOOR_MINIMUM = Rule(
    cel="!has(self.targetRef) || !(self.targetRef.kind in ['HorizontalPodAutoscaler', 'ScaledObject']) "
    "|| self.bounds.minReplicas >= 1",
    message="bounds.minReplicas must be at least 1 where targetRef names an autoscaler: its minimum is never set to 0",
    reason="FloorMinimum",
    holds=lambda spec: (
        "targetRef" not in spec or spec["targetRef"]["kind"] not in FLOOR_KINDS or spec["bounds"]["minReplicas"] >= 1
    ),
)
RESERVE_FITS = Rule(
    cel="self.reserve.replicas < self.bounds.maxReplicas",
    message="reserve.replicas must be below bounds.maxReplicas, or nothing is left for the need: "
    "raise the bound or lower the reserve",
    reason="ReserveTooLarge",
    holds=lambda spec: spec["reserve"]["replicas"] < spec["bounds"]["maxReplicas"],
)
QUIET_RESERVE_FITS = Rule(
    cel="!has(self.reserve.quiet) || self.reserve.quiet < self.bounds.maxReplicas",
    message="reserve.quiet must be below bounds.maxReplicas, or nothing is left for the need: "
    "raise the bound or lower the reserve",
    reason="ReserveTooLarge",
    holds=lambda spec: "quiet" not in spec["reserve"] or spec["reserve"]["quiet"] < spec["bounds"]["maxReplicas"],
)
BOUNDS_ORDERED = Rule(
    cel="self.minReplicas <= self.maxReplicas",
    message="minReplicas must not be above maxReplicas",
    reason="BoundsReversed",
    holds=lambda bounds: bounds["minReplicas"] <= bounds["maxReplicas"],
    at="minReplicas",
)

# ---- capacity and workload --------------------------------------------------------------------------------

ONE_CAPACITY = Rule(
    cel="[has(self.requestsPerSecond), has(self.perPoolSize), has(self.benchmarkRef)].filter(x, x).size() == 1",
    message="state the capacity in exactly one form: requestsPerSecond, perPoolSize where it depends on the number of "
    "replicas, or benchmarkRef where a CapacityBenchmark measures it",
    reason="OneCapacity",
    holds=lambda capacity: _one_of(capacity, "requestsPerSecond", "perPoolSize", "benchmarkRef"),
)
CAPACITY_POSITIVE = Rule(
    cel="self > 0.0",
    message="a replica's capacity must be above 0 requests/s: measure what one replica serves at the objectives",
    reason="CapacityNotPositive",
    holds=lambda rate: rate > 0,
)
ONE_PERCENTILE = Rule(
    cel="[has(self.p50), has(self.p90), has(self.p95), has(self.p99)].filter(x, x).size() == 1",
    message="name exactly one percentile, for example p95: 1500ms",
    reason="OnePercentile",
    holds=lambda objective: _one_of(objective, "p50", "p90", "p95", "p99"),
)
QUANTILES = ("p50", "p90", "p95", "p99")
QUANTILES_ASCEND = Rule(
    cel="(!has(self.p50) || !has(self.p90) || self.p50 <= self.p90)"
    " && (!has(self.p50) || !has(self.p95) || self.p50 <= self.p95)"
    " && (!has(self.p50) || !has(self.p99) || self.p50 <= self.p99)"
    " && (!has(self.p90) || !has(self.p95) || self.p90 <= self.p95)"
    " && (!has(self.p90) || !has(self.p99) || self.p90 <= self.p99)"
    " && (!has(self.p95) || !has(self.p99) || self.p95 <= self.p99)",
    message="a higher percentile cannot have fewer tokens than a lower one: order p50, p90, p95, p99 ascending",
    reason="QuantilesReversed",
    holds=lambda tokens: all(a <= b for a, b in pairwise(tokens[q] for q in QUANTILES if q in tokens)),
)

# ---- schedule ---------------------------------------------------------------------------------------------

TIME_PATTERN = "([01][0-9]|2[0-3]):[0-5][0-9]"

WALL_TIME = Rule(
    cel=f"self.matches('^{TIME_PATTERN}$')",
    message='write a wall time from "00:00" to "23:59", two digits each; for the end of the day write "00:00", '
    "which is the midnight that ends it",
    reason="InvalidTime",
    holds=_matching(TIME_PATTERN),
)
WINDOW_FORM = Rule(
    cel="has(self.cron) ? has(self.duration) && !has(self.days) && !has(self.start) && !has(self.end)"
    " : !has(self.duration) && has(self.days) && has(self.start) && has(self.end)",
    message="a window has either days, start and end, or cron and duration",
    reason="WindowForm",
    holds=lambda window: (
        (set(window) & {"days", "start", "end", "cron", "duration"}) in ({"days", "start", "end"}, {"cron", "duration"})
    ),
)
ONE_LEVEL = Rule(
    cel="has(self.requestsPerSecond) != has(self.replicas)",
    message="state exactly one of requestsPerSecond (replicas follow from capacity and reserve) and replicas "
    "(the total, reserve included)",
    reason="OneLevel",
    holds=lambda level: _one_of(level, "requestsPerSecond", "replicas"),
)
PLAIN_CRON_PATTERN = "[0-5]?[0-9] ([01]?[0-9]|2[0-3]) [^ ]+ [^ ]+ [^ ]+"
PLAIN_CRON = Rule(
    cel=f"self.matches('^{PLAIN_CRON_PATTERN}$')",
    message="write five fields, one space between them, with a plain minute and a plain hour, for example "
    "'30 5 1 * *': a window fires at most once a local day; for several times a day write several windows, "
    "for hours in a row one longer window",
    reason="HourlyCron",
    holds=_matching(PLAIN_CRON_PATTERN),
)
CRON_DURATION = Rule(
    cel="!has(self.duration) || "
    "(duration(self.duration) > duration('0s') && duration(self.duration) <= duration('168h'))",
    message="a window's duration must be above 0 and at most 168h",
    reason="InvalidDuration",
    holds=lambda window: (
        "duration" not in window or timedelta(0) < parse_duration(window["duration"]) <= MAX_CRON_DURATION
    ),
    at="duration",
)
OVERRIDE_ORDERED = Rule(
    cel="self.start < self.end",
    message="an override must start before it ends",
    reason="OverrideReversed",
    holds=lambda override: override["start"] < override["end"],
    at="end",
)
CALENDAR_FORM = Rule(
    cel="has(self.treatAs) != has(self.requestsPerSecond)",
    message="state exactly one of treatAs (Base, or the weekday that its dates are like) and requestsPerSecond "
    "(a rate for its dates)",
    reason="CalendarForm",
    holds=lambda calendar: _one_of(calendar, "treatAs", "requestsPerSecond"),
)

# ---- how replicas follow, and the engine ------------------------------------------------------------------

ACCEPTANCE_OF_ENGINE = Rule(
    cel="!has(self.acceptance) || has(self.engine)",
    message="acceptance is of variants of spec.engine: what a targetRef runs is not the plan's to hold; leave it out",
    reason="AcceptanceWithoutEngine",
    holds=lambda spec: "acceptance" not in spec or "engine" in spec,
    at="acceptance",
)
POSITIVE_DURATION = Rule(
    cel="duration(self) > duration('0s')",
    message="must be longer than 0s",
    reason="InvalidDuration",
    holds=_positive,
)
LEAD_LIMIT = Rule(
    cel="duration(self) <= duration('24h')",
    message="must be at most 24h: a replica that takes a day to be ready is a fault to look at, not one to plan for",
    reason="InvalidDuration",
    holds=lambda text: parse_duration(text) <= LONGEST_LEAD,
)
EVERY_LIMIT = Rule(
    cel="duration(self) <= duration('1h')",
    message="must be at most 1h: replicas that nobody needs would stay for days; lower it, or raise bounds.minReplicas",
    reason="InvalidDuration",
    holds=lambda text: parse_duration(text) <= LONGEST_STEP,
)
LEAD_MAX = Rule(
    cel="!has(self.max) || duration(self.max) >= duration(self.declared)",
    message="leadTime.max must not be below leadTime.declared: raise it, or leave it out for three times "
    "the declared lead",
    reason="LeadReversed",
    holds=lambda lead: "max" not in lead or parse_duration(lead["max"]) >= parse_duration(lead["declared"]),
    at="max",
)
GPUS_AGREE = Rule(
    cel="!has(self.engine) || !has(self.gpusPerReplica) || self.gpusPerReplica == "
    "self.engine.parallelism.tensor * self.engine.parallelism.pipeline * self.engine.parallelism.data",
    message="gpusPerReplica is derived for an engine, as tensor x pipeline x data: leave it out or state that product",
    reason="GPUsDiffer",
    holds=lambda spec: (
        "engine" not in spec
        or "gpusPerReplica" not in spec
        or spec["gpusPerReplica"]
        == prod(spec["engine"]["parallelism"][size] for size in ("tensor", "pipeline", "data"))
    ),
    at="gpusPerReplica",
)
CACHE_WRITABLE = Rule(
    cel="!has(self.cacheVolume) || !self.cacheVolume.persistentVolumeClaim.readOnly",
    message="cacheVolume must be writable: the engine stores its compile caches there; leave readOnly out",
    reason="CacheReadOnly",
    holds=lambda engine: "cacheVolume" not in engine or not engine["cacheVolume"]["persistentVolumeClaim"]["readOnly"],
    at="cacheVolume",
)


# ---- feedback ---------------------------------------------------------------------------------------------

ONE_SIGNAL_SOURCE = Rule(
    cel="has(self.prometheus) != has(self.scrape)",
    message="state exactly one of prometheus (a source that the operator's installation defines) and scrape "
    "(the pods' own metrics)",
    reason="OneSignalSource",
    holds=lambda feedback: _one_of(feedback, "prometheus", "scrape"),
)
FORESIGHT_HAS_A_PAST = Rule(
    cel="!has(self.foresight) || has(self.prometheus)",
    message="foresight learns from what a Prometheus remembers of the last days, and pods remember nothing: state "
    "prometheus in the place of scrape, or leave foresight out",
    reason="ForesightWithoutPast",
    holds=lambda feedback: "foresight" not in feedback or "prometheus" in feedback,
    at="foresight",
)
AUTO_OR_NUMBER = Rule(
    cel="type(self) == int ? self >= 0 && self <= 100000 : self == 'auto'",
    message="write auto, or a number of requests from 0 to 100000",
    reason="NotAutoOrNumber",
    holds=lambda value: value == "auto" or (type(value) is int and 0 <= value <= 100_000),
)
AUTO_OR_AMOUNT = Rule(
    cel="type(self) == int ? self >= 1 && self <= 100000 : self == 'auto'",
    message="write auto, or a number of requests from 1 to 100000",
    reason="NotAutoOrAmount",
    holds=lambda value: value == "auto" or (type(value) is int and 1 <= value <= 100_000),
)
STALE_LIMIT = Rule(
    cel="duration(self) <= duration('5m')",
    message="staleAfter must be at most 5m: a pod that is silent for longer is heard anew",
    reason="StaleTooLong",
    holds=lambda text: parse_duration(text) <= LONGEST_STALE,
)


RULES: Mapping[str, Rule] = {rule.cel: rule for rule in list(globals().values()) if isinstance(rule, Rule)}
"""Every rule by its CEL text, which is how a schema refers to it."""
