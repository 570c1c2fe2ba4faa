"""One plan for each rule that breaks that rule alone: the API server and ``validation`` must both refuse it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from servingplan.api import rules
from servingplan.api.rules import Rule
from support.specs import ENGINE, WORKING_DAY, document, scheduled, targeting


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A plan, the rule that it breaks and where."""

    id: str
    plan: dict[str, Any]
    rule: Rule
    path: str


def _with_window(**changes: Any) -> dict[str, Any]:
    window = {**WORKING_DAY, **changes}
    return document(**scheduled(windows=[{key: value for key, value in window.items() if value is not None}]))


def _cron(**changes: Any) -> dict[str, Any]:
    window = {"name": "report-run", "cron": "30 5 1 * *", "duration": "90m", "replicas": 3, **changes}
    return document(**scheduled(windows=[{key: value for key, value in window.items() if value is not None}]))


def _override(**changes: Any) -> dict[str, Any]:
    override = {"name": "launch", "start": "2026-12-01T07:00", "end": "2026-12-01T19:00", "requestsPerSecond": 40}
    stated = {key: value for key, value in {**override, **changes}.items() if value is not None}
    return document(**scheduled(overrides=[stated]))


def _calendar(**changes: Any) -> dict[str, Any]:
    return document(**scheduled(calendars=[{"name": "holidays", "configMap": {"name": "holidays"}, **changes}]))


def _engine(**changes: Any) -> dict[str, Any]:
    return document(engine={**ENGINE, **changes})


def _feedback(**changes: Any) -> dict[str, Any]:
    return document(feedback={"scrape": {}, **changes})


def _objectives(**objectives: Any) -> dict[str, Any]:
    return document(workload={"objectives": objectives})


def _in_flight(value: Any) -> dict[str, Any]:
    return _feedback(raiseWhen={"inFlightPerReplica": value})


def _waiting(value: Any) -> dict[str, Any]:
    return _feedback(raiseWhen={"waitingPerReplica": value})


_ACCEPTANCE = {"evaluationRef": {"name": "fp8"}}
_HPA = targeting("HorizontalPodAutoscaler", "autoscaling/v2")
_IN_FLIGHT = "spec.feedback.raiseWhen.inFlightPerReplica"
_WAITING = "spec.feedback.raiseWhen.waitingPerReplica"
_WINDOW = "spec.schedule.windows[0]"
_OVERRIDE = "spec.schedule.overrides[0]"

_CASES: tuple[tuple[str, dict[str, Any], Rule, str], ...] = (
    ("a name that starts with a digit", document(name="3-chat"), rules.PLAN_NAME, "metadata.name"),
    ("a name longer than a Service's", document(name="a" * 53), rules.PLAN_NAME, "metadata.name"),
    ("a name with a dot", document(name="support.chat"), rules.PLAN_NAME, "metadata.name"),
    ("neither engine nor targetRef", document(engine=None), rules.ONE_TARGET, "spec"),
    ("engine and targetRef", document(targetRef=targeting()["targetRef"]), rules.ONE_TARGET, "spec"),
    (
        "acceptance of a target",
        document(**targeting(), acceptance=_ACCEPTANCE),
        rules.ACCEPTANCE_OF_ENGINE,
        "spec.acceptance",
    ),
    ("another number of GPUs", document(gpusPerReplica=2), rules.GPUS_AGREE, "spec.gpusPerReplica"),
    (
        "an autoscaler's minimum of 0",
        document(**_HPA, bounds={"minReplicas": 0, "maxReplicas": 4}),
        rules.FLOOR_MINIMUM,
        "spec",
    ),
    ("a reserve as large as the bound", document(reserve={"replicas": 8}), rules.RESERVE_FITS, "spec"),
    ("a quiet reserve as large as the bound", document(reserve={"quiet": 8}), rules.QUIET_RESERVE_FITS, "spec"),
    (
        "bounds reversed",
        document(bounds={"minReplicas": 9, "maxReplicas": 8}),
        rules.BOUNDS_ORDERED,
        "spec.bounds.minReplicas",
    ),
    ("no capacity", document(capacity={}), rules.ONE_CAPACITY, "spec.capacity"),
    (
        "two capacities",
        document(capacity={"requestsPerSecond": 5, "perPoolSize": [{"replicas": 1, "requestsPerSecond": 5}]}),
        rules.ONE_CAPACITY,
        "spec.capacity",
    ),
    (
        "a number and a benchmark",
        document(capacity={"requestsPerSecond": 5, "benchmarkRef": {"name": "l40s"}}),
        rules.ONE_CAPACITY,
        "spec.capacity",
    ),
    (
        "a capacity of 0",
        document(capacity={"requestsPerSecond": 0}),
        rules.CAPACITY_POSITIVE,
        "spec.capacity.requestsPerSecond",
    ),
    (
        "a capacity of 0 at a pool size",
        document(capacity={"perPoolSize": [{"replicas": 1, "requestsPerSecond": 0}]}),
        rules.CAPACITY_POSITIVE,
        "spec.capacity.perPoolSize[0].requestsPerSecond",
    ),
    ("no percentile", _objectives(ttft={}), rules.ONE_PERCENTILE, "spec.workload.objectives.ttft"),
    (
        "two percentiles",
        _objectives(tpot={"p50": "40ms", "p95": "60ms"}),
        rules.ONE_PERCENTILE,
        "spec.workload.objectives.tpot",
    ),
    (
        "quantiles reversed",
        document(workload={"tokens": {"output": {"p50": 600, "p99": 180}}}),
        rules.QUANTILES_ASCEND,
        "spec.workload.tokens.output",
    ),
    ("an hour with one digit", _with_window(start="8:00"), rules.WALL_TIME, f"{_WINDOW}.start"),
    ("24:00", _with_window(end="24:00"), rules.WALL_TIME, f"{_WINDOW}.end"),
    ("a window without an end", _with_window(end=None), rules.WINDOW_FORM, _WINDOW),
    ("a window with days and cron", _with_window(cron="30 5 1 * *"), rules.WINDOW_FORM, _WINDOW),
    ("a cron window without a duration", _cron(duration=None), rules.WINDOW_FORM, _WINDOW),
    ("a window without a level", _with_window(requestsPerSecond=None), rules.ONE_LEVEL, _WINDOW),
    ("a window with both levels", _with_window(replicas=3), rules.ONE_LEVEL, _WINDOW),
    ("an hourly cron", _cron(cron="0 * * * *", duration="60m"), rules.PLAIN_CRON, f"{_WINDOW}.cron"),
    ("a cron every ten minutes", _cron(cron="*/10 8 * * *"), rules.PLAIN_CRON, f"{_WINDOW}.cron"),
    ("a cron with a range of hours", _cron(cron="0 8-10 * * *"), rules.PLAIN_CRON, f"{_WINDOW}.cron"),
    ("a cron with seconds", _cron(cron="0 0 8 * * 1"), rules.PLAIN_CRON, f"{_WINDOW}.cron"),
    ("a cron word", _cron(cron="@daily"), rules.PLAIN_CRON, f"{_WINDOW}.cron"),
    ("a cron hour beyond 23", _cron(cron="0 24 * * *"), rules.PLAIN_CRON, f"{_WINDOW}.cron"),
    ("a duration of 0", _cron(duration="0m"), rules.CRON_DURATION, f"{_WINDOW}.duration"),
    ("a duration beyond a week", _cron(duration="168h1ms"), rules.CRON_DURATION, f"{_WINDOW}.duration"),
    (
        "an override that ends when it starts",
        _override(end="2026-12-01T07:00"),
        rules.OVERRIDE_ORDERED,
        f"{_OVERRIDE}.end",
    ),
    ("an override with both levels", _override(replicas=3), rules.ONE_LEVEL, _OVERRIDE),
    ("a calendar without a meaning", _calendar(), rules.CALENDAR_FORM, "spec.schedule.calendars[0]"),
    (
        "a calendar with two",
        _calendar(treatAs="Sun", requestsPerSecond=1),
        rules.CALENDAR_FORM,
        "spec.schedule.calendars[0]",
    ),
    (
        "a lead's limit below the lead",
        document(leadTime={"declared": "10m", "max": "9m59s"}),
        rules.LEAD_MAX,
        "spec.leadTime.max",
    ),
    (
        "a lead of more than a day",
        document(leadTime={"declared": "24h1s"}),
        rules.LEAD_LIMIT,
        "spec.leadTime.declared",
    ),
    (
        "a fall of more than an hour a step",
        document(scaleDown={"every": "61m"}),
        rules.EVERY_LIMIT,
        "spec.scaleDown.every",
    ),
    (
        "a fall without time between steps",
        document(scaleDown={"every": "0s"}),
        rules.POSITIVE_DURATION,
        "spec.scaleDown.every",
    ),
    ("no time to drain", _engine(drainTimeout="0s"), rules.POSITIVE_DURATION, "spec.engine.drainTimeout"),
    ("no time to start", _engine(startTimeout="0m"), rules.POSITIVE_DURATION, "spec.engine.startTimeout"),
    (
        "an objective of 0",
        _objectives(ttft={"p95": "0ms"}),
        rules.POSITIVE_DURATION,
        "spec.workload.objectives.ttft.p95",
    ),
    ("feedback from nowhere", document(feedback={}), rules.ONE_SIGNAL_SOURCE, "spec.feedback"),
    ("feedback from two places", _feedback(prometheus={}), rules.ONE_SIGNAL_SOURCE, "spec.feedback"),
    ("foresight of pods", _feedback(foresight={}), rules.FORESIGHT_HAS_A_PAST, "spec.feedback.foresight"),
    ("fewer than none waiting", _waiting(-1), rules.AUTO_OR_NUMBER, _WAITING),
    ("more waiting than there can be", _waiting(100_001), rules.AUTO_OR_NUMBER, _WAITING),
    ("a word other than auto", _waiting("automatic"), rules.AUTO_OR_NUMBER, _WAITING),
    ("a limit of none in flight", _in_flight(0), rules.AUTO_OR_AMOUNT, _IN_FLIGHT),
    ("a word for what is in flight", _in_flight("automatic"), rules.AUTO_OR_AMOUNT, _IN_FLIGHT),
    ("readings of six minutes", _feedback(staleAfter="6m"), rules.STALE_LIMIT, "spec.feedback.staleAfter"),
    ("readings of no age", _feedback(staleAfter="0s"), rules.POSITIVE_DURATION, "spec.feedback.staleAfter"),
    (
        "a queue time of two percentiles",
        _feedback(raiseWhen={"queueTime": {"p50": "1s", "p95": "2s"}}),
        rules.ONE_PERCENTILE,
        "spec.feedback.raiseWhen.queueTime",
    ),
    (
        "what was raised stays for two hours",
        document(scaleDown={"stabilization": "2h"}),
        rules.EVERY_LIMIT,
        "spec.scaleDown.stabilization",
    ),
    (
        "a cache that cannot be written",
        _engine(cacheVolume={"persistentVolumeClaim": {"claimName": "cache", "readOnly": True}}),
        rules.CACHE_WRITABLE,
        "spec.engine.cacheVolume",
    ),
)

VIOLATIONS = tuple(Violation(id=name, plan=plan, rule=rule, path=path) for name, plan, rule, path in _CASES)
