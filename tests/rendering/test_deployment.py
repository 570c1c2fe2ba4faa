import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.errors import Problem
from servingplan.planning.acceptance import Gate, Missing
from servingplan.planning.measured import Fingerprint, Measured
from servingplan.planning.plan import (
    Bounds,
    Calendar,
    Capacity,
    CronWindow,
    Lead,
    Objectives,
    Override,
    PoolCapacity,
    Profile,
    Rate,
    Reserve,
    ScaleDown,
    TokenLengths,
    Total,
    TreatAs,
    Workload,
)
from servingplan.planning.target import Parallelism, TargetRef, Volume
from servingplan.rendering.deployment import deployment, pod_template
from servingplan.rendering.metadata import Owner, plan_pods
from servingplan.rendering.objects import template_hash
from support.plans import a_capacity, a_full_engine, a_plan, a_window, an_engine
from support.signals import a_feedback

OWNER = Owner(uid="u-1", api_version="servingplan.dev/v1alpha1", kind="ServingPlan", name="support-chat")


def spec_of(**changes):
    return deployment(a_plan(**changes), OWNER, None)["spec"]


def pod_of(engine):
    return pod_template(plan_pods("support-chat"), engine)["spec"]


def container_of(engine, name="engine"):
    (found,) = [container for container in pod_of(engine)["containers"] if container["name"] == name]
    return found


@pytest.mark.parametrize(
    ("reserve", "rolling_update"),
    [
        pytest.param(Reserve(replicas=1, quiet=1), {"maxSurge": 0, "maxUnavailable": 1}, id="within one"),
        pytest.param(Reserve(replicas=3, quiet=2), {"maxSurge": 0, "maxUnavailable": 2}, id="within the quiet one"),
        pytest.param(Reserve(replicas=1, quiet=2), {"maxSurge": 0, "maxUnavailable": 1}, id="within the smaller"),
        pytest.param(Reserve(replicas=2, quiet=0), {"maxSurge": 1, "maxUnavailable": 0}, id="none at night: a spare"),
        pytest.param(Reserve(replicas=0, quiet=0), {"maxSurge": 1, "maxUnavailable": 0}, id="none: a spare GPU"),
    ],
)
def test_replicas_are_renewed_within_the_reserve(reserve, rolling_update):
    assert spec_of(reserve=reserve)["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling_update}


def test_without_a_number_the_field_replicas_is_absent():
    assert "replicas" not in spec_of()


@pytest.mark.parametrize("replicas", [0, 1, 5])
def test_a_number_of_replicas_is_all_that_differs(replicas):
    with_number = deployment(a_plan(), OWNER, replicas)
    assert with_number["spec"].pop("replicas") == replicas
    assert with_number == deployment(a_plan(), OWNER, None)


def test_a_stuck_deployment_is_said_five_minutes_after_the_start_timeout():
    engine = an_engine(start_timeout=timedelta(minutes=30))
    assert spec_of(target=engine)["progressDeadlineSeconds"] == 35 * 60


def test_a_plan_without_an_engine_has_no_deployment():
    plan = a_plan(target=TargetRef(api_version="apps/v1", kind="Deployment", name="vllm"))
    with pytest.raises(ValueError, match="llm/support-chat has no engine"):
        deployment(plan, OWNER, None)


def test_the_selector_is_the_plans_label_alone_and_matches_the_pods():
    spec = spec_of()
    assert spec["selector"] == {"matchLabels": {"servingplan.dev/plan": "support-chat"}}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["servingplan.dev/plan"] == "support-chat"
    assert labels["servingplan.dev/serving"] == "true"


def test_a_replica_takes_all_its_gpus():
    engine = an_engine(
        parallelism=Parallelism(tensor=2, pipeline=2, data=2),
        resources={"requests": {"cpu": "4"}, "limits": {"memory": "48Gi"}},
    )
    assert container_of(engine)["resources"] == {
        "requests": {"cpu": "4"},
        "limits": {"memory": "48Gi", "nvidia.com/gpu": "8"},
    }


def test_replicas_spread_over_nodes_but_never_wait_for_one():
    (constraint,) = pod_of(an_engine())["topologySpreadConstraints"]
    assert constraint["whenUnsatisfiable"] == "ScheduleAnyway"
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert constraint["matchLabelKeys"] == ["pod-template-hash"]


def test_no_service_of_the_namespace_reaches_the_engines_environment():
    assert pod_of(an_engine())["enableServiceLinks"] is False


def test_an_engine_has_no_credentials_for_the_cluster():
    assert pod_of(an_engine())["automountServiceAccountToken"] is False


def test_the_grace_period_is_that_of_the_drain():
    assert pod_of(an_engine(drain_timeout=timedelta(minutes=5)))["terminationGracePeriodSeconds"] == 15 + 300 + 15


@pytest.mark.parametrize(
    ("change", "name", "source", "mount"),
    [
        pytest.param(
            {"model_volume": Volume(claim_name="models", read_only=True)},
            "model",
            {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
            {"mountPath": "/models", "readOnly": True},
            id="models, read only",
        ),
        pytest.param(
            {"cache_volume": Volume(claim_name="caches", read_only=False)},
            "cache",
            {"persistentVolumeClaim": {"claimName": "caches"}},
            {"mountPath": "/cache"},
            id="caches on a claim",
        ),
        pytest.param({}, "cache", {"emptyDir": {}}, {"mountPath": "/cache"}, id="caches that outlive a crash"),
        pytest.param(
            {"parallelism": Parallelism(tensor=8)},
            "shared-memory",
            {"emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}},
            {"mountPath": "/dev/shm"},  # noqa: S108 - where POSIX shared memory lives
            id="shared memory by GPUs",
        ),
    ],
)
def test_volumes(change, name, source, mount):
    engine = an_engine(**change)
    assert {"name": name} | source in pod_of(engine)["volumes"]
    assert {"name": name} | mount in container_of(engine)["volumeMounts"]


def test_without_a_model_volume_nothing_is_mounted_over_the_images_models():
    assert "/models" not in [mount["mountPath"] for mount in container_of(an_engine())["volumeMounts"]]


def test_every_mount_has_its_volume():
    pod = pod_of(a_full_engine())
    mounted = {mount["name"] for mount in container_of(a_full_engine())["volumeMounts"]}
    assert mounted <= {volume["name"] for volume in pod["volumes"]}


def test_the_plans_pod_template_is_laid_over_ours_by_name():
    engine = a_full_engine()
    container = container_of(engine)
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "runAsUser": 1000}
    assert {"name": "HF_HUB_OFFLINE", "value": "1"} in container["env"]
    assert "VLLM_CACHE_ROOT" in [item["name"] for item in container["env"]]
    assert "/adapters" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert container_of(engine, "log-shipper")["image"] == "registry.local/shipper:1"
    assert len(pod_of(engine)["tolerations"]) == 2


@pytest.mark.parametrize(
    ("resource", "keys"),
    [
        ("nvidia.com/gpu", ["nvidia.com/gpu"]),
        ("amd.com/gpu", ["amd.com/gpu"]),
        ("nvidia.com/mig-1g.10gb", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu"]),
    ],
)
def test_a_replica_goes_onto_nodes_that_are_tainted_with_its_accelerator(resource, keys):
    tolerations = pod_of(an_engine(accelerator_resource=resource))["tolerations"]
    assert [each["key"] for each in tolerations] == keys


def test_a_pod_template_cannot_take_pods_out_of_the_service_or_the_replica_set():
    labels = {"servingplan.dev/plan": "other", "servingplan.dev/serving": "false", "team": "support"}
    engine = an_engine(pod_template={"metadata": {"labels": labels}})
    rendered = pod_template(plan_pods("support-chat"), engine)["metadata"]["labels"]
    assert rendered["servingplan.dev/plan"] == "support-chat"
    assert rendered["servingplan.dev/serving"] == "true"
    assert rendered["team"] == "support"


def test_rendering_changes_nothing_of_the_plan():
    engine = a_full_engine()
    before = json.dumps([engine.pod_template, engine.resources])
    deployment(a_plan(target=engine), OWNER, 3)
    assert json.dumps([engine.pod_template, engine.resources]) == before


RATES = st.builds(lambda n: Rate(requests_per_second=Decimal(n)), st.integers(0, 1000))
LEVELS = st.one_of(RATES, st.builds(lambda n: Total(replicas=n), st.integers(0, 50)))
COUNTS = st.integers(0, 5)
MINUTES = st.integers(1, 240).map(lambda n: timedelta(minutes=n))
OUTSIDE_THE_ENGINE = {
    "suspend": st.booleans(),
    "gpus_per_replica": st.sampled_from([None, 1, 8]),
    "workload": st.sampled_from(
        [
            Workload(tokens=TokenLengths(), objectives=Objectives()),
            Workload(tokens=TokenLengths(output=(("p50", 4000),)), objectives=Objectives()),
        ]
    ),
    "capacity": st.one_of(
        st.integers(1, 90).map(a_capacity),
        st.just(Capacity(points=tuple(PoolCapacity(replicas=n, requests_per_second=Decimal(n)) for n in (1, 8)))),
    ),
    "reserve": st.builds(lambda a, b: Reserve(replicas=a, quiet=b), COUNTS, COUNTS),
    "zone": st.sampled_from([ZoneInfo("Asia/Kolkata"), ZoneInfo("UTC")]),
    "base": LEVELS,
    "windows": st.lists(st.builds(lambda level: a_window(level=level), LEVELS), max_size=2).map(tuple),
    "cron_windows": st.just(
        (
            CronWindow(
                name="report",
                cron="30 5 1 * *",
                at=time(5, 30),
                duration=timedelta(minutes=90),
                level=Total(replicas=3),
            ),
        )
    ),
    "profile": st.sampled_from([None, Profile(rates=(Decimal(1),) * 168)]),
    "calendars": st.just((Calendar(name="holidays", dates=frozenset({date(2026, 12, 25)}), treat_as=TreatAs.BASE),)),
    "overrides": st.just(
        (
            Override(
                name="launch",
                start=datetime(2026, 12, 1, 7),  # noqa: DTZ001 - an override's times are the plan's wall times
                end=datetime(2026, 12, 1, 19),  # noqa: DTZ001 - as above
                level=Total(replicas=8),
            ),
        )
    ),
    "lead": st.builds(lambda d: Lead(declared=d, margin=Fraction(1, 5), maximum=3 * d), MINUTES),
    "scale_down": st.builds(lambda every, step: ScaleDown(step=step, every=every), MINUTES, st.integers(1, 5)),
    "bounds": st.builds(lambda low, more: Bounds(minimum=low, maximum=low + more), COUNTS, COUNTS),
    "feedback": st.none() | st.builds(lambda extra: a_feedback(max_extra=extra), COUNTS),
    "acceptance": st.none() | st.just(Gate(evaluation="fp8", found=Missing.ABSENT)),
    "measured": st.none() | st.just(Measured(benchmark="l40s", fingerprint=Fingerprint(digest="sha256:d"))),
    "warnings": st.just((Problem(path="spec", reason="Warning", message="text"),)),
}


def test_every_field_of_a_plan_is_drawn_but_its_name_and_its_engine():
    assert set(OUTSIDE_THE_ENGINE) | {"namespace", "name", "target"} == set(a_plan().__dataclass_fields__)


@given(changes=st.fixed_dictionaries({}, optional=OUTSIDE_THE_ENGINE), replicas=st.one_of(st.none(), COUNTS))
def test_an_edit_outside_the_engine_never_changes_the_pod_template(changes, replicas):
    engine = a_full_engine()
    before = deployment(a_plan(target=engine), OWNER, None)
    after = deployment(a_plan(target=engine, **changes), OWNER, replicas, "other")
    assert after["spec"]["template"] == before["spec"]["template"]
    assert template_hash(after) == template_hash(before)
    engine_annotation = "servingplan.dev/engine"
    assert after["metadata"]["annotations"][engine_annotation] == before["metadata"]["annotations"][engine_annotation]


@pytest.mark.parametrize(
    "change",
    [{"max_num_seqs": 64}, {"port": 9000}, {"start_timeout": timedelta(minutes=1)}, {"resources": {}}],
    ids=lambda change: next(iter(change)),
)
def test_an_edit_of_the_engine_changes_the_pod_template(change):
    before, after = (
        deployment(a_plan(target=engine), OWNER, None) for engine in (a_full_engine(), a_full_engine(**change))
    )
    assert template_hash(after) != template_hash(before)


def test_the_same_plan_gives_the_same_bytes():
    one, two = (json.dumps(deployment(a_plan(target=a_full_engine()), OWNER, None)) for _ in range(2))
    assert one == two
