"""Bad input through the running operator: it says what, where and what to do, and keeps the replicas; others go on."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.plans import deployments, edit, plan, pods, status, until_condition, until_ready
from e2e.support.shared import Run, shared_run
from e2e.support.workloads import condition, gpu_deployment
from servingplan.localcluster.failures import KubectlFailed
from servingplan.localcluster.kubectl import Kubectl
from servingplan.localcluster.matching import FAILS_LABEL, Failure
from servingplan.rendering.metadata import CONFIG_LABEL
from support.specs import ENGINE, config_map, document, scheduled, targeting

NOON = "2026-12-01T12:00:00+01:00"
"""A Tuesday: five replicas, and no change for hours."""

HEALTHY = "healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """How a plan that runs is broken: by an edit of its schedule, or of the ConfigMaps that it reads.

    says: where it is wrong, what is wrong, and what to do; all of it must be in the message.
    """

    id: str
    schedule: Mapping[str, Any] | None = None
    config: Mapping[str, str] | None = None
    says: tuple[str, ...]


BREAKS = (
    Break(
        id="unknown-zone",
        schedule={"timeZone": "Europe/Atlantis"},
        says=("spec.schedule.timeZone", "'Europe/Atlantis' is no time zone", "write for example Europe/Berlin"),
    ),
    Break(
        id="impossible-cron",
        schedule={"windows": [{"name": "never", "cron": "30 5 31 2 *", "duration": "90m", "replicas": 3}]},
        says=("spec.schedule.windows[0].cron", "'30 5 31 2 *' never fires", "correct day and month"),
    ),
    Break(
        id="missing-config-map",
        schedule={"profile": {"configMap": {"name": "nowhere"}}},
        says=("spec.schedule.profile.configMap.name", "'nowhere' does not exist", "create it with the key profile.csv"),
    ),
    Break(
        id="empty-config-map",
        config={"dates": ""},
        says=("spec.schedule.calendars[0].configMap.name", "key dates", "is empty", "fill it"),
    ),
    Break(
        id="config-map-without-its-key",
        config={"holidays": "2026-12-25"},
        says=("has no key calendar.ics or dates", "keys there: holidays"),
    ),
    Break(
        id="unreadable-dates",
        config={"dates": "2026-12-25\n2026-13-45\n"},
        says=("line 2", "'2026-13-45'", "write"),
    ),
    Break(
        id="unreadable-calendar",
        config={"calendar.ics": "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nSUMMARY:no date\n"},
        says=("calendar.ics of ConfigMap 'unreadable-calendar'",),
    ),
)


def calendar_of(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    """A labelled ConfigMap of a plan's own, so that an edit acts at once."""
    found = config_map(name, data)
    return {**found, "metadata": {"name": name, "labels": {CONFIG_LABEL: "true"}}}


def running_plan(name: str) -> dict[str, Any]:
    """A plan for a Deployment of the same name; its calendar has one date, which is not today."""
    calendar = {"name": "holidays", "configMap": {"name": name}, "treatAs": "Base"}
    found = document(name, **targeting(name=name), **scheduled(calendars=[calendar]))
    return {**found, "metadata": {"name": name}}


def as_json(*manifests: Mapping[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})


RUNNING = (HEALTHY, "expired", *(each.id for each in BREAKS))


@pytest.fixture(scope="module")
def ward(cluster: Any, installation: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One operator at noon and many plans that run five replicas each; every test breaks one of them."""
    if not hasattr(cluster, "add_nodes"):
        pytest.skip("needs simulated nodes")
    nodes = cluster.add_nodes(1, gpus=0)

    def prepare(kubectl: Kubectl) -> None:
        kubectl.apply(*(gpu_deployment(name, replicas=1, gpus=0) for name in RUNNING))
        kubectl.apply(*(calendar_of(name, {"dates": "2026-12-25"}) for name in RUNNING))
        kubectl.apply(*(running_plan(name) for name in RUNNING))

    with shared_run(
        cluster, installation, tmp_path_factory.mktemp("ward"), demo_clock(NOON, 1), prepare=prepare
    ) as run:
        until_ready(run.kubectl, 5, *RUNNING)
        for name in RUNNING:
            until_condition(run.kubectl, name, "Ready", "True", "AsPlanned")
        yield run
    for node in nodes:
        cluster.remove_node(node)


@pytest.fixture
def untouched(ward: Run) -> Iterator[None]:
    """The healthy plan and its Deployment are the same before and after the test, to the last write."""

    def state() -> tuple[object, object]:
        return plan(ward.kubectl, HEALTHY)["status"]["conditions"], deployments(ward.kubectl)[HEALTHY]["metadata"]

    before = state()
    yield
    assert state() == before


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.id)
def test_a_broken_plan_keeps_its_replicas_and_says_what_to_mend(ward, broken):
    kubectl, name = ward.kubectl, broken.id
    before = deployments(kubectl)[name]["metadata"]["generation"]
    if broken.schedule is not None:
        edit(kubectl, name, schedule=broken.schedule)
    else:
        kubectl("replace", "-f", "-", stdin=as_json(calendar_of(name, broken.config)))
    invalid = until_condition(kubectl, name, "PlanValid", "False", "Invalid")
    for words in (*broken.says, "The replicas stay as they are"):
        assert words in invalid["message"]
    ready, stalled = (condition(plan(kubectl, name), kind) for kind in ("Ready", "Stalled"))
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "Invalid", invalid["message"])
    assert stalled["status"] == "True"
    assert status(kubectl, name)["desiredReplicas"] == 5
    found = deployments(kubectl)[name]
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (5, before)

    kubectl("replace", "-f", "-", stdin=as_json(calendar_of(name, {"dates": "2026-12-25"})))
    edit(kubectl, name, schedule={"profile": None, **running_plan(name)["spec"]["schedule"]})
    until_condition(kubectl, name, "Ready", "True", "AsPlanned")
    assert condition(plan(kubectl, name), "Stalled") is None
    assert deployments(kubectl)[name]["metadata"]["generation"] == before


@pytest.mark.usefixtures("untouched")
def test_a_calendar_that_has_run_out_is_said_and_the_plan_acts_on(ward):
    kubectl = ward.kubectl
    expired = calendar_of("expired", {"dates": "2026-11-02", "validUntil": "2026-11-30"})
    kubectl("replace", "-f", "-", stdin=as_json(expired))
    said = until_condition(kubectl, "expired", "PlanValid", "Unknown", "CalendarExpired")
    assert "holidays ended on 2026-11-30" in said["message"]
    assert "Extend it and its validUntil" in said["message"]
    assert condition(plan(kubectl, "expired"), "Ready")["status"] == "True"
    edit(kubectl, "expired", reserve={"replicas": 2})
    until_ready(kubectl, 6, "expired")


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("target", "says"),
    [
        (targeting(name="nowhere"), ("nowhere", "Create it, or correct spec.targetRef in a new plan")),
        (
            targeting("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"),
            ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "Create it, or correct spec.targetRef in a new plan"),
        ),
    ],
    ids=["no-such-object", "no-such-kind"],
)
def test_a_target_that_is_missing_is_named(ward, request, target, says):
    name = request.node.callspec.id
    ward.kubectl.apply({**document(name, **target), "metadata": {"name": name}})
    unresolved = until_condition(ward.kubectl, name, "TargetResolved", "False", "TargetNotFound")
    for words in says:
        assert words in unresolved["message"]
    ready = until_condition(ward.kubectl, name, "Ready", "False", "TargetNotFound")
    assert ready["message"] == unresolved["message"]
    ward.kubectl("delete", "servingplan", name)


def test_a_kind_that_cannot_be_scaled_is_refused_with_those_that_can(ward):
    found = document("odd", **targeting("DaemonSet", "apps/v1", "agents"))
    with pytest.raises(KubectlFailed) as refusal:
        ward.kubectl.apply({**found, "metadata": {"name": "odd"}})
    assert 'targetRef names a DaemonSet of group "apps"' in refusal.value.stderr
    assert "apps/Deployment" in refusal.value.stderr


def test_a_target_that_comes_later_is_taken(ward):
    ward.kubectl.apply({**document("late", **targeting(name="late")), "metadata": {"name": "late"}})
    until_condition(ward.kubectl, "late", "TargetResolved", "False", "TargetNotFound")
    ward.kubectl.apply(gpu_deployment("late", replicas=1, gpus=0))
    until_ready(ward.kubectl, 5, "late")
    taken = until_condition(ward.kubectl, "late", "TargetResolved", "True")
    assert (taken["reason"], taken["message"]) == (
        "TargetFound",
        f"Deployment {ward.namespace}/late is held by this plan",
    )


# ---- what holds a ramp up ----


@pytest.fixture
def other_namespace(local_cluster: Any) -> Iterator[str]:
    """A second namespace, for a quota that no other plan meets."""
    name = f"e2e-{secrets.token_hex(4)}"
    local_cluster.kubectl("create", "namespace", name)
    yield name
    local_cluster.kubectl("delete", "namespace", name, "--wait=false")


def engine_on(pool: str, **labels: str) -> dict[str, Any]:
    """The engine on the nodes of one pool, with labels on its pods."""
    template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": {"pool": pool}}}
    return {"engine": {**ENGINE, "podTemplate": template}}


def until_held_up(kubectl: Kubectl, name: str, reason: str, *says: str) -> str:
    """Waits until the coming ramp is held up for a reason, in these words, and returns all of them."""
    found = eventually(
        lambda: condition(plan(kubectl, name), "ReadyByNextRamp") or {},
        lambda held: held.get("reason") == reason and all(words in held["message"] for words in says),
        what=f"ReadyByNextRamp {reason} of {name}, saying {says}",
    )
    assert found["status"] == "False"
    assert "for the ramp at Tue 1 Dec 08:00 CET" in found["message"]
    message: str = found["message"]
    return message


def test_what_holds_a_ramp_up_is_named_with_pod_and_stage(
    gpu_nodes, local_cluster, kubectl, namespace, run_operator, other_namespace
):
    gpu_nodes(3, gpus=8, labels={"pool": "large"})
    gpu_nodes(1, gpus=3, labels={"pool": "small"})
    elsewhere = local_cluster.kubectl.with_options(f"--namespace={other_namespace}")
    elsewhere("create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=3")
    kubectl.apply(
        document("fine", namespace, **engine_on("large")),
        document("no-gpu", namespace, **engine_on("small")),
        document("pull", namespace, **engine_on("large", **{FAILS_LABEL: Failure.IMAGE_PULL.value})),
        document("crash", namespace, **engine_on("large", **{FAILS_LABEL: Failure.CRASH.value})),
    )
    elsewhere.apply(document("quota", other_namespace, **engine_on("large")))
    clock = demo_clock("2026-12-01T07:45:00+01:00", 12)
    run_operator(f"--namespaces={namespace},{other_namespace}", clock=clock)

    no_gpu = until_held_up(
        kubectl, "no-gpu", "Unschedulable", "3 of 5 ready; 2 in stage scheduling", "Insufficient nvidia.com/gpu"
    )
    capacity = until_condition(kubectl, "no-gpu", "GPUCapacitySufficient", "False", "GPUsMissing")["message"]
    assert named_pods(no_gpu, kubectl, "no-gpu")
    assert named_pods(capacity, kubectl, "no-gpu")
    pull = until_held_up(kubectl, "pull", "ImagePull", "0 of 5 ready; 5 in stage pulling", "Correct the image")
    assert named_pods(pull, kubectl, "pull")
    crash = until_held_up(kubectl, "crash", "EngineCrash", "0 of 5 ready; 5 in stage engine", "exit code", "--previous")
    assert named_pods(crash, kubectl, "crash")
    until_held_up(
        elsewhere, "quota", "QuotaRefused", "3 of 5 ready", "exceeded quota: gpus", "Raise the namespace's quota"
    )
    for name, reason in (("pull", "ImagePull"), ("crash", "EngineCrash")):
        below = until_condition(kubectl, name, "Ready", "False", "BelowRequired")
        assert reason in below["message"]
    assert condition(plan(kubectl, "fine"), "ReadyByNextRamp")["reason"] == "RampReady"
    assert condition(plan(kubectl, "fine"), "Ready")["reason"] == "AsPlanned"


def named_pods(message: str, kubectl: Kubectl, name: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(kubectl, name) if pod["metadata"]["name"] in message]
