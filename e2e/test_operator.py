"""The main job, end to end: a plan is applied, and its replicas are ready before the ramp and fall back at night."""

from __future__ import annotations

from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock, sleep_until
from e2e.support.workloads import condition
from servingplan.localcluster.stages import Span
from support.specs import document

FACTOR = 120
MINUTE = 60 / FACTOR


def a_plan(namespace, **changes):
    return document(namespace=namespace, **changes)


def status(kubectl, name="support-chat"):
    return kubectl.json("get", "servingplan", name).get("status", {})


def test_a_plan_runs_its_day(local_cluster, kubectl, namespace, run_operator, gpu_nodes):
    gpu_nodes(8)
    local_cluster.set_start_time(load=Span(at_least=6 * MINUTE, at_most=11 * MINUTE))
    clock = demo_clock("2026-12-01T07:20:00+01:00", FACTOR)
    operator = run_operator(clock=clock)
    kubectl.apply(a_plan(namespace))
    sleep_until(clock, "2026-12-01T07:40:00+01:00")
    assert (status(kubectl)["desiredReplicas"], status(kubectl)["readyReplicas"]) == (2, 2)
    sleep_until(clock, "2026-12-01T08:00:00+01:00")
    deployment = kubectl.json("get", "deployment", "support-chat")
    assert deployment["status"]["readyReplicas"] == 5, operator.log
    sleep_until(clock, "2026-12-01T08:01:00+01:00")
    ready = eventually(
        lambda: kubectl.json("get", "servingplan", "support-chat"),
        lambda plan: plan["status"]["window"] == "working-day",
        what="the working day in status",
    )
    assert condition(ready, "Ready")["status"] == "True"
    assert status(kubectl)["nextChange"]["summary"] == "2 at Tue 20:00 CET"
    assert operator.stop() == 0
