"""From the wire to a plan: exact values, or every problem at once."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from servingplan.api.references import Kind, Reference, referenced
from servingplan.api.resolve import resolve
from servingplan.api.target import OWNED_OF_CONTAINER
from servingplan.errors import InvalidPlan
from servingplan.planning.plan import CronWindow, Lead, Objective, PoolCapacity, Rate, Reserve, Total, Window
from servingplan.planning.target import TargetRef
from support.specs import ENGINE, WORKING_DAY, document, scheduled, targeting

MIG = "nvidia.com/mig-1g.10gb"


def problems_of(plan, config=None):
    with pytest.raises(InvalidPlan) as invalid:
        resolve(plan, config or {})
    return invalid.value.problems


def only_problem(plan):
    (problem,) = problems_of(plan)
    return problem


# ---- values -----------------------------------------------------------------------------------------------


def test_the_worked_example_resolves():
    plan = resolve(document(), {})
    assert plan.key == "llm/support-chat"
    assert plan.base == Rate(requests_per_second=Decimal(2))
    assert plan.windows == (
        Window(
            name="working-day",
            days=frozenset(range(5)),
            start=time(8),
            end=time(20),
            level=Rate(requests_per_second=Decimal(18)),
        ),
    )
    assert plan.lead == Lead(declared=timedelta(minutes=10), margin=Fraction(1, 5), maximum=timedelta(minutes=30))
    assert plan.gpus_per_replica == 1
    assert plan.zone.key == "Europe/Berlin"
    assert plan.warnings == ()


def test_rates_are_as_they_were_written():
    plan = resolve(document(capacity={"requestsPerSecond": 0.1}), {})
    assert plan.capacity.points == (PoolCapacity(replicas=1, requests_per_second=Decimal("0.1")),)


def test_capacity_by_pool_size_is_ordered_whatever_the_list_is():
    sizes = [{"replicas": 8, "requestsPerSecond": 3.4}, {"replicas": 1, "requestsPerSecond": 2.4}]
    points = resolve(document(capacity={"perPoolSize": sizes}), {}).capacity.points
    assert [(point.replicas, point.requests_per_second) for point in points] == [
        (1, Decimal("2.4")),
        (8, Decimal("3.4")),
    ]


def test_a_cron_window_knows_its_wall_time():
    window = {"name": "report-run", "cron": "30 5 1 * *", "duration": "90m", "replicas": 3}
    (resolved,) = resolve(document(**scheduled(windows=[window])), {}).cron_windows
    assert resolved == CronWindow(
        name="report-run", cron="30 5 1 * *", at=time(5, 30), duration=timedelta(minutes=90), level=Total(replicas=3)
    )


def test_an_override_is_local_time_without_a_zone():
    stated = {"name": "launch", "start": "2026-12-01T07:00", "end": "2026-12-01T19:00", "requestsPerSecond": 40}
    (override,) = resolve(document(**scheduled(overrides=[stated])), {}).overrides
    assert override.start == datetime.fromisoformat("2026-12-01T07:00")
    assert override.end == datetime.fromisoformat("2026-12-01T19:00")
    assert override.start.tzinfo is None


def test_the_quiet_reserve_is_the_reserve_where_it_is_not_stated():
    assert resolve(document(reserve={"replicas": 2}), {}).reserve == Reserve(replicas=2, quiet=2)
    assert resolve(document(reserve={"quiet": 0}), {}).reserve == Reserve(replicas=1, quiet=0)


def test_a_stated_limit_of_the_lead_counts():
    lead = resolve(document(leadTime={"declared": "10m", "max": "11m"}), {}).lead
    assert lead.effective == timedelta(minutes=11)


def test_the_goodput_share_is_the_lowest_percentile_where_it_is_not_stated():
    objectives = {"ttft": {"p95": "1500ms"}, "e2el": {"p90": "30s"}}
    resolved = resolve(document(workload={"objectives": objectives}), {}).workload.objectives
    assert resolved.goodput_share == Decimal("0.9")
    assert resolved.ttft == Objective(percentile="p95", limit=timedelta(milliseconds=1500))


def test_gpus_per_replica_follow_from_the_engine_and_are_unknown_of_a_target():
    engine = {**ENGINE, "parallelism": {"tensor": 4, "pipeline": 2}}
    assert resolve(document(engine=engine), {}).gpus_per_replica == 8
    assert resolve(document(engine=engine, gpusPerReplica=8), {}).gpus_per_replica == 8
    assert resolve(document(**targeting()), {}).gpus_per_replica is None


def test_a_target_is_a_reference():
    plan = resolve(document(**targeting("StatefulSet")), {})
    assert plan.target == TargetRef(api_version="apps/v1", kind="StatefulSet", name="vllm")
    assert plan.engine is None


def test_the_models_name_is_served_where_no_other_is_stated():
    engine = resolve(document(engine={"image": "vllm:1", "model": "/models/m"}), {}).engine
    assert engine is not None
    assert engine.served_model_name == "/models/m"
    assert engine.drain_timeout == timedelta(minutes=5)


def test_resolving_twice_gives_equal_plans():
    assert resolve(document(), {}) == resolve(document(), {})


def test_the_config_maps_of_a_plan_are_those_it_names():
    calendars = [{"name": "a", "configMap": {"name": "one"}}, {"name": "b", "configMap": {"name": 2}}, "broken"]
    plan = document(**scheduled(profile={"configMap": {"name": "week"}}, calendars=calendars))
    assert referenced(plan) == {Reference(Kind.CONFIG_MAP, name) for name in ("one", "week")}
    assert referenced({"spec": "broken"}) == frozenset()


# ---- problems ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["Europe/Belin", "CEST", "+01:00", "../etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_a_problem(zone):
    problem = only_problem(document(**scheduled(timeZone=zone)))
    assert (problem.path, problem.reason) == ("spec.schedule.timeZone", "UnknownTimeZone")


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        pytest.param("0 8 31 2 *", "CronNeverFires", id="31 February"),
        pytest.param("0 8 31 4,6 *", "CronNeverFires", id="31 April and June"),
        pytest.param("0 8 * 13 *", "InvalidCron", id="month 13"),
        pytest.param("0 8 0 * *", "InvalidCron", id="day 0"),
        pytest.param("0 8 * * 9", "InvalidCron", id="weekday 9"),
        pytest.param("0 8 R * *", "InvalidCron", id="a random day"),
        pytest.param("0 8 H * *", "InvalidCron", id="a hashed day"),
        pytest.param("0 8 r(1-5) * *", "InvalidCron", id="a random day of a range"),
        pytest.param("0 8 * foo *", "InvalidCron", id="a word"),
    ],
)
def test_a_cron_that_is_none_or_never_fires_is_a_problem(cron, reason):
    window = {"name": "w", "cron": cron, "duration": "1h", "replicas": 1}
    problem = only_problem(document(**scheduled(windows=[window])))
    assert (problem.path, problem.reason) == ("spec.schedule.windows[0].cron", reason)


@pytest.mark.parametrize("cron", ["0 8 29 2 *", "0 8 L * *", "0 8 * * 1#2", "00 08 * mar fri"])
def test_a_cron_that_fires_rarely_is_fine(cron):
    window = {"name": "w", "cron": cron, "duration": "168h", "replicas": 1}
    assert resolve(document(**scheduled(windows=[window])), {}).cron_windows[0].at == time(8)


def test_an_hourly_cron_of_60_minutes_is_refused_with_the_reason():
    window = {"name": "w", "cron": "0 * * * *", "duration": "60m", "replicas": 1}
    problem = only_problem(document(**scheduled(windows=[window])))
    assert problem.reason == "HourlyCron"
    assert "at most once a local day" in problem.message


def test_an_override_on_a_date_that_does_not_exist_is_a_problem():
    stated = {"name": "x", "start": "2026-02-30T07:00", "end": "2026-04-31T07:00", "replicas": 1}
    problems = problems_of(document(**scheduled(overrides=[stated])))
    assert [(problem.path, problem.reason) for problem in problems] == [
        ("spec.schedule.overrides[0].end", "InvalidDate"),
        ("spec.schedule.overrides[0].start", "InvalidDate"),
    ]


@pytest.mark.parametrize("kind", [("DaemonSet", "apps/v1"), ("Job", "batch/v1"), ("Pod", "v1")])
def test_a_target_without_replicas_is_a_problem(kind):
    problem = only_problem(document(**targeting(*kind)))
    assert (problem.path, problem.reason) == ("spec.targetRef.kind", "NotScalable")


@pytest.mark.parametrize(
    ("field", "value", "path", "reason"),
    [
        pytest.param("extraArgs", ["-tp=2"], "extraArgs[0]", "OwnedArgument", id="an owned argument"),
        pytest.param("resources", {"claims": []}, "resources.claims", "UnknownField", id="other resources"),
        pytest.param("resources", {"limits": "4"}, "resources.limits", "WrongType", id="limits as text"),
        pytest.param(
            "resources",
            {"limits": {"nvidia.com/gpu": 2}},
            "resources.limits.nvidia.com/gpu",
            "OwnedByAPI",
            id="accelerators",
        ),
        pytest.param(
            "podTemplate",
            {"containers": []},
            "podTemplate.containers",
            "UnknownField",
            id="no spec",
        ),
        pytest.param(
            "podTemplate",
            {"spec": []},
            "podTemplate.spec",
            "WrongType",
            id="spec as a list",
        ),
        pytest.param(
            "podTemplate",
            {"spec": {"containers": {}}},
            "podTemplate.spec.containers",
            "WrongType",
            id="containers as an object",
        ),
        pytest.param(
            "podTemplate",
            {"spec": {"containers": [{}]}},
            "podTemplate.spec.containers[0]",
            "NameMissing",
            id="a container without a name",
        ),
        pytest.param(
            "podTemplate",
            {"spec": {"terminationGracePeriodSeconds": 5}},
            "podTemplate.spec.terminationGracePeriodSeconds",
            "OwnedByAPI",
            id="the grace period",
        ),
        pytest.param(
            "podTemplate",
            {"metadata": {"labels": {"servingplan.dev/serving": "x"}}},
            "podTemplate.metadata.labels.servingplan.dev/serving",
            "OwnedByAPI",
            id="our label",
        ),
        *(
            pytest.param(
                "podTemplate",
                {"spec": {"containers": [{"name": "engine", owned: {}}]}},
                f"podTemplate.spec.containers[0].{owned}",
                "OwnedByAPI",
                id=owned,
            )
            for owned in OWNED_OF_CONTAINER
        ),
    ],
)
def test_an_engine_may_not_set_what_the_api_owns(field, value, path, reason):
    problem = only_problem(document(engine={**ENGINE, field: value}))
    assert (problem.path, problem.reason) == (f"spec.engine.{path}", reason)


def test_a_pod_template_may_set_what_is_not_listed_and_nothing_that_is():
    assert set(OWNED_OF_CONTAINER) == {
        "image",
        "command",
        "args",
        "ports",
        "startupProbe",
        "readinessProbe",
        "livenessProbe",
        "lifecycle",
    }


def test_a_pod_template_may_add_environment_containers_and_tolerations():
    template = {
        "metadata": {"labels": {"team": "search"}},
        "spec": {
            "tolerations": [{"key": "gpu"}],
            "containers": [{"name": "engine", "env": [{"name": "A", "value": "b"}]}, {"name": "log", "image": "log:1"}],
        },
    }
    engine = resolve(document(engine={**ENGINE, "podTemplate": template}), {}).engine
    assert engine is not None
    assert engine.pod_template == template


def test_all_problems_come_at_once_in_the_order_of_their_paths():
    plan = document(
        name="9",
        engine={**ENGINE, "extraArgs": ["--port=1"], "maxModelLen": 0},
        bounds={"minReplicas": 3, "maxReplicas": 2},
        schedule={
            "timeZone": "Nowhere/Else",
            "base": {"requestsPerSecond": 2},
            "windows": [
                WORKING_DAY,
                {**WORKING_DAY, "name": "late", "end": "24:00"},
                {"name": "monthly", "cron": "0 8 31 2 *", "duration": "1h", "replicas": 1},
            ],
            "profile": {"configMap": {"name": "week"}},
            "calendars": [{"name": "holidays", "configMap": {"name": "holidays"}, "treatAs": "Base"}],
        },
        surprise=1,
    )
    assert [(problem.path, problem.reason) for problem in problems_of(plan)] == [
        ("metadata.name", "InvalidName"),
        ("spec.bounds.minReplicas", "BoundsReversed"),
        ("spec.engine.extraArgs[0]", "OwnedArgument"),
        ("spec.engine.maxModelLen", "OutOfRange"),
        ("spec.schedule.calendars[0].configMap.name", "ConfigMapNotFound"),
        ("spec.schedule.profile.configMap.name", "ConfigMapNotFound"),
        ("spec.schedule.timeZone", "UnknownTimeZone"),
        ("spec.schedule.windows[1].end", "InvalidTime"),
        ("spec.schedule.windows[2].cron", "CronNeverFires"),
        ("spec.surprise", "UnknownField"),
    ]


@pytest.mark.parametrize("plan", [{}, {"spec": None}, {"spec": []}, {"metadata": "x", "spec": {"engine": 1}}])
def test_a_document_that_is_no_plan_at_all_has_problems_and_no_crash(plan):
    assert problems_of(plan)


# ---- warnings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "path", "says"),
    [
        pytest.param(document(reserve={"replicas": 0}), "spec.reserve.replicas", "lost node", id="no reserve"),
        pytest.param(
            document(engine={**ENGINE, "parallelism": {"tensor": 2}, "accelerator": {"resource": MIG}}),
            "spec.engine.parallelism",
            f"spreads a replica over 2 of {MIG}",
            id="an engine over slices of a GPU",
        ),
        pytest.param(
            document(**scheduled(windows=[{**WORKING_DAY, "requestsPerSecond": 1}])),
            "spec.schedule.windows",
            "window working-day has 1 requests/s, below base's 2",
            id="a window below base",
        ),
        pytest.param(
            document(**scheduled(windows=[{**WORKING_DAY, "requestsPerSecond": 41}])),
            "spec.schedule.windows",
            "window working-day needs 10 replicas, reserve included, but bounds.maxReplicas is 8",
            id="a window beyond the bound",
        ),
        pytest.param(
            document(capacity={"requestsPerSecond": 1e-300}, **scheduled(windows=[], base={"requestsPerSecond": 1})),
            "spec.schedule.base",
            "base needs more than 10000 replicas",
            id="a capacity next to nothing",
        ),
    ],
)
def test_what_is_probably_not_meant_is_a_warning_and_no_problem(plan, path, says):
    (warning,) = resolve(plan, {}).warnings
    assert warning.path == path
    assert says in warning.message
