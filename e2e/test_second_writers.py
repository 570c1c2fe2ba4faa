"""Somebody else writes replicas too: an hour of it on a real API server, everybody at once, each on a plan of its own.

The hour runs once, 120-fold; each test looks at what one of the writers met with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from e2e.support.external import ExternalCluster
from e2e.support.kinds import hpa
from e2e.support.operator import Installation, demo_clock, sleep_until
from e2e.support.shared import Run, shared_run
from e2e.support.workloads import condition, gpu_deployment
from e2e.support.writers import Record, Writer, every, recorded
from servingplan.localcluster.cluster import LocalCluster
from support.specs import document, targeting

FACTOR = 120
QUIET = timedelta(minutes=15)
STAMP = timedelta(seconds=FACTOR)
"""A time in managedFields has whole seconds, which are two minutes here."""

PLANS = ("down", "zero", "up", "dropped", "equal", "resets", "edited", "scaled-by-hpa")

WRITERS = {
    "down": "kubectl",
    "zero": "an unknown manager",
    "up": "kubectl",
    "dropped": "gitops",
    "edited": "kubectl-patch",
    "resets": "resetter",
}
"""Whom each plan's condition names. Who applies our own value beside us is nobody's rival."""


@dataclass(frozen=True, kw_only=True)
class Hour:
    """What the hour left: the record, when the writers wrote, the resets, the conditions while it lasted."""

    run: Run
    record: Record
    wrote: datetime
    resets: int
    reset_until: datetime
    during: dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def hour(
    cluster: LocalCluster | ExternalCluster, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hour]:
    """An hour of second writers in the middle of a working day, for which five replicas are asked for."""
    if not isinstance(cluster, LocalCluster):
        pytest.skip("needs simulated pods and the audit log, and SERVINGPLAN_E2E_CONTEXT names a real cluster")
    nodes = cluster.add_nodes(2, gpus=8)
    clock = demo_clock("2026-12-01T10:00:00+01:00", FACTOR)
    with (
        shared_run(cluster, installation, tmp_path_factory.mktemp("hour"), clock) as run,
        recorded(cluster.kubeconfig, run.namespace) as record,
    ):
        _settle(run)
        wrote = datetime.now(UTC)
        resetter = Writer(cluster.kubeconfig, run.namespace, "resetter")
        with every(30 / FACTOR, lambda: resetter.scale("resets", 2)) as resets:
            during = _write(run)
            sleep_until(clock, clock.from_real(wrote).isoformat(), plus=timedelta(minutes=60))
            during |= {name: _owned(run, name) for name in ("equal", "resets", "scaled-by-hpa")}
            number, reset_until = resets(), datetime.now(UTC)
        for name in PLANS[:-1]:
            run.until(name, "ReplicasOwned", "True")
            run.until_replicas(name, 5)
        yield Hour(run=run, record=record, wrote=wrote, resets=number, reset_until=reset_until, during=during)
    for node in nodes:
        cluster.remove_node(node)


def _settle(run: Run) -> None:
    """Apply all plans, and wait until each runs its five replicas."""
    run.kubectl.apply(hpa("autoscaler", "scaled-by-hpa", minimum=1, maximum=3))
    for name in PLANS:
        if name != "edited":
            run.kubectl.apply(gpu_deployment(name, replicas=2, gpus=0))
    run.kubectl.apply(
        *(document(name, run.namespace, **({} if name == "edited" else targeting(name=name))) for name in PLANS)
    )
    for name in PLANS[:-1]:
        run.until(name, "Ready", "True", "AsPlanned")
    run.until("scaled-by-hpa", "ReplicasOwned", "False")


def _write(run: Run) -> dict[str, dict[str, object]]:
    """Everybody writes, one after the other. Returns what each plan's condition said about it."""
    gitops = Writer(run.cluster.kubeconfig, run.namespace, "gitops")
    gitops.apply("equal", 5)
    gitops.apply("dropped", 7)
    during = {"dropped": dict(run.until("dropped", "ReplicasOwned", "False"))}
    gitops.apply("dropped", None)
    gitops.apply("equal", None)
    for name, replicas in (("down", 1), ("zero", 0), ("up", 8)):
        run.kubectl("scale", f"deployment/{name}", f"--replicas={replicas}")
        during[name] = dict(run.until(name, "ReplicasOwned", "False"))
    image = {"name": "engine", "image": "registry.local/other:1"}
    patch = {"spec": {"replicas": 2, "template": {"spec": {"containers": [image]}}}}
    run.kubectl("patch", "deployment/edited", "--type=strategic", f"--patch={json.dumps(patch)}")
    during["edited"] = dict(run.until("edited", "ReplicasOwned", "False"))
    return during


def _owned(run: Run, name: str) -> dict[str, object]:
    found = condition(run.plan(name), "ReplicasOwned")
    assert found is not None
    return dict(found)


@pytest.mark.parametrize(("name", "manager"), WRITERS.items())
def test_a_second_writer_is_named(hour: Hour, name: str, manager: str) -> None:
    found = hour.during[name]
    assert (found["status"], found["reason"]) == ("False", "SecondWriter")
    assert str(found["message"]).startswith(f"{manager} wrote replicas too")


@pytest.mark.parametrize(("name", "below"), [("down", 1), ("zero", 0), ("edited", 2)])
def test_a_scale_down_by_somebody_else_is_undone_by_one_write(hour: Hour, name: str, below: int) -> None:
    assert hour.record.values(name, since=hour.wrote) == [below, 5]


@pytest.mark.parametrize(("name", "above"), [("up", 8), ("dropped", 7)])
def test_a_scale_up_by_somebody_else_stands_for_a_quarter_of_an_hour_and_then_falls_by_the_schedule(
    hour: Hour, name: str, above: int
) -> None:
    assert hour.record.values(name, since=hour.wrote) == list(range(above, 4, -1))
    written = hour.record.first(name, above, since=hour.wrote)
    lowered = hour.record.first(name, above - 1, since=hour.wrote)
    assert (lowered - written) * FACTOR >= QUIET - STAMP


def test_our_value_that_another_manager_applied_too_stays_when_it_drops_the_field(hour: Hour) -> None:
    assert hour.during["equal"]["reason"] == "SoleWriter"
    assert set(hour.record.values("equal", since=hour.wrote)) <= {5}
    assert hour.run.replicas("equal") == 5


def test_what_somebody_else_edited_of_an_owned_deployment_is_put_right(hour: Hour) -> None:
    pod = hour.run.kubectl.json("get", "deployment", "edited")["spec"]["template"]["spec"]
    assert [container["image"] for container in pod["containers"]] == [
        hour.run.plan("edited")["spec"]["engine"]["image"]
    ]


def test_an_hour_of_resets_costs_at_most_eight_writes_and_each_is_told(hour: Hour) -> None:
    assert hour.resets >= 60, "the machine was too slow for a reset every 30 s"
    writes = [w for w in hour.run.writes("resets", resource="deployments") if hour.wrote <= w.time <= hour.reset_until]
    done = [write for write in writes if write.code == 200]
    assert 3 <= len(done) <= 8, writes
    assert {write.code for write in writes} <= {200, 409}
    assert hour.run.operator.log.count("/resets: replicas 2 to 5") > len(done)
    events = hour.run.kubectl.json("get", "events.events.k8s.io")["items"]
    told = [event for event in events if event["regarding"]["name"] == "resets" and event["reason"] == "ScaledUp"]
    assert sorted(event["type"] for event in told) == ["Normal", "Warning"], "the first takeover, and the contest"


def test_nothing_is_lowered_while_somebody_resets(hour: Hour) -> None:
    values = hour.record.values("resets", since=hour.wrote)
    assert set(values) == {2, 5}
    written = [write for write in hour.run.writes("resets", resource="deployments") if write.code == 200]
    assert {write.subresource for write in written} == {"scale"}


def test_a_deployment_that_an_autoscaler_scales_is_left_alone(hour: Hour) -> None:
    found = hour.during["scaled-by-hpa"]
    assert (found["status"], found["reason"]) == ("False", "ScaledByHPA")
    name = f"HorizontalPodAutoscaler {hour.run.namespace}/autoscaler"
    assert f"Point spec.targetRef of a new plan at {name}" in str(found["message"])
    assert hour.run.writes("scaled-by-hpa", resource="deployments") == []
    assert hour.record.values("scaled-by-hpa") == [2]


def test_the_autoscaler_taken_away_the_plan_acts(hour: Hour) -> None:
    hour.run.kubectl("delete", "hpa", "autoscaler")
    assert hour.run.until_replicas("scaled-by-hpa", lambda replicas: replicas != 2) == 5
    assert hour.run.until("scaled-by-hpa", "ReplicasOwned", "True")["reason"] == "SoleWriter"
