"""What keeps replicas from being ready is named as long as it does: a lost node, a start that hangs, slow starts."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e.support.eventually import eventually
from e2e.support.listening import day, feedback, notes, served, trail, until_heard, until_trail
from e2e.support.operator import demo_clock
from e2e.support.plans import edit, events, pods, scaled_at, status, until_condition, until_ready, until_status
from e2e.support.prometheus import PROGRAM
from e2e.support.workloads import condition
from servingplan.localcluster.stages import Span
from servingplan.rendering.metadata import PLAN_LABEL
from support.specs import ENGINE

FACTOR, FASTER = 20, 30
"""A lead of twelve minutes is 36 seconds, or 24."""

STAYS = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12}
    for taint in ("unreachable", "not-ready")
]
"""Pods stay on a lost node for twelve seconds, in Kubernetes for five minutes: long enough to be seen there."""

ENDLESS = Span(at_least=3600, at_most=3600)


def until_said(kubectl, name, kind, *words):
    """Waits until the message of a plan's condition has all of these words; returns the message."""

    def message(found):
        return (condition({"status": found}, kind) or {}).get("message", "")

    found = until_status(
        kubectl, name, lambda s: all(each in message(s) for each in words), what=f"{kind}: {' ... '.join(words)}"
    )
    return message(found)


@pytest.mark.skipif(PROGRAM is None, reason="needs prometheus on the PATH")
def test_the_reserve_absorbs_a_lost_node_and_the_plan_says_what_is_missing_and_why(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    clock = demo_clock("2026-12-01T10:00:00+01:00", FACTOR)
    loop = start_loop(clock, gpus=4, each=1)
    # Four replicas have 8 in flight each: within the limit. Three have more, which asks for a step.
    engine = ENGINE | {"podTemplate": {"spec": {"tolerations": STAYS}}}
    kubectl.apply(served("chat", namespace, base=9, capacity=3, engine=engine, feedback=feedback(inFlightPerReplica=9)))
    loop.demand("chat", 8)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 4, "chat")
    until_heard(kubectl, "chat")
    until_condition(kubectl, "chat", "ReserveIntact", "True", "ReserveReady")
    lost = min(pods(kubectl, "chat"), key=lambda pod: pod["metadata"]["name"])
    name, node = lost["metadata"]["name"], lost["spec"]["nodeName"]

    local_cluster.stop_node(node)

    until_condition(kubectl, "chat", "ReserveIntact", "False", "ReserveMissing")
    *_, below = eventually(lambda: notes(kubectl, "chat", "BelowRequired"), lambda told: name in told[-1], what="news")
    assert f"3 of 4 ready, 4 required now. {name}: NodeNotReady: node {node} is not ready." in below
    said = until_said(kubectl, "chat", "ReserveIntact", "in stage scheduling", "Unschedulable")
    assert said.startswith("0 of 1 in reserve: 3 of 4 ready; 1 in stage scheduling. chat-")
    assert "nodes are available" in said
    assert until_trail(kubectl, "chat", "extra", "Starting")["message"] == "1 starting: they count as present"
    found = status(kubectl, "chat")
    assert (found["desiredReplicas"], found["readyReplicas"], trail(found, "desired")["value"]) == (4, 3, "4")

    local_cluster.start_node(node)

    until_condition(kubectl, "chat", "ReserveIntact", "True", "ReserveReady")
    until_ready(kubectl, 4, "chat")
    again = [event["note"] for event in events(kubectl, "chat") if event["reason"] == "AsPlanned"]
    assert again[-1].startswith("Ready is True: at least the 4 required now are ready")
    assert name not in {pod["metadata"]["name"] for pod in pods(kubectl, "chat")}
    assert len(scaled_at(local_cluster.audit, namespace, "chat", clock)) == 1
    assert not notes(kubectl, "chat", "DemandAbovePlan")


def test_a_start_that_hangs_is_named_while_it_does_and_starts_that_are_slower_than_allowed_are_too(
    local_cluster, kubectl, namespace, run_operator, gpu_nodes
):
    gpu_nodes(1, gpus=4)
    clock = demo_clock("2026-12-01T08:30:00+01:00", FASTER)
    hangs, is_slow = {PLAN_LABEL: "stuck"}, {PLAN_LABEL: "capped"}
    five_minutes = timedelta(minutes=5).total_seconds() / FASTER
    local_cluster.set_start_time(load=ENDLESS, selector=hangs)
    local_cluster.set_start_time(load=Span(at_least=five_minutes, at_most=five_minutes), selector=is_slow)
    alone = {"feedback": None, "reserve": {"replicas": 0}, "base": 3, "capacity": 3}
    kubectl.apply(
        # A start that hangs makes a lead that learns longer, as slow as it may come to be: here the ramp comes first.
        served("stuck", namespace, leadTime={"declared": "10m", "learn": False}, **alone),
        served("capped", namespace, leadTime={"declared": "2m", "max": "3m"}, **alone),
    )
    run_operator(clock=clock)

    (started,) = eventually(
        lambda: [pod for pod in pods(kubectl, "stuck") if pod["status"]["phase"] == "Running"], what="a pod that runs"
    )
    name = started["metadata"]["name"]
    local_cluster.set_start_time(selector=hangs)
    slow = until_condition(kubectl, "capped", "ReadyByNextRamp", "False", "LeadCapped")
    assert "most of it in engine, which with its margin needs" in slow["message"]
    assert "leadTime.max allows 3m" in slow["message"]
    edit(kubectl, "capped", leadTime={"declared": "2m", "max": "30m"})
    until_condition(kubectl, "capped", "ReadyByNextRamp", "True", "NoRampDue")

    words = f"{name} (engine) not verified, the first since Tue 1 Dec 08:3"
    until_said(kubectl, "stuck", "Ready", words)
    ramp = (clock.now() + timedelta(minutes=15)).astimezone(ZoneInfo("Europe/Berlin"))
    edit(kubectl, "stuck", schedule=day(("ramp", f"{ramp:%H:%M}", "12:00", 6), base=3))
    told, *_ = eventually(lambda: notes(kubectl, "stuck", "StartStuck"), what="a start that is stuck")
    assert f"for the ramp at Tue 1 Dec {ramp:%H:%M} CET" in told
    assert words in told

    kubectl("delete", "pod", name, "--wait=false")

    until_condition(kubectl, "stuck", "ReadyByNextRamp", "True")
    until_ready(kubectl, 2, "stuck")
    assert name not in until_said(kubectl, "stuck", "Ready", "required now are ready")
