"""The main job: a plan is applied, its replicas are ready before the ramp, and they fall back at night."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock, sleep_until
from e2e.support.plans import (
    deployments,
    edit,
    events,
    pods,
    scaled_at,
    status,
    uids,
    until_condition,
    until_ready,
    until_status,
)
from servingplan.localcluster.stages import Span
from support.specs import document

FACTOR = 20
"""For mornings: the minute that is left between the slowest start and the lead is three seconds of this machine."""

FASTER, FASTEST = 40, 60
"""Where more is left."""

SOON = timedelta(minutes=4)
"""What the operator may take on the faster clock: some seconds of a machine with other things to do."""

NAMES = tuple(f"chat-{number}" for number in range(1, 8))
MORNINGS = {
    "a Monday": "2026-11-30T08:00:00+01:00",
    "the Monday after the spring change": "2026-03-30T08:00:00+02:00",
    "a leap day": "2028-02-29T08:00:00+01:00",
}


def minutes(at_least: int, at_most: int, factor: int) -> Span:
    """How long starts take, in minutes of a clock of that speed."""
    return Span(at_least=at_least * 60 / factor, at_most=at_most * 60 / factor)


def shown(margin: timedelta | None) -> str:
    return "missed" if margin is None else str(margin).partition(".")[0]


def ramp_margins(metrics: str) -> dict[str, timedelta]:
    """The margin that the operator measured for each plan."""
    lines = re.findall(r'^servingplan_ramp_margin_seconds\{.*\bname="([^"]+)".*\} (\S+)$', metrics, re.MULTILINE)
    return {name: timedelta(seconds=float(seconds)) for name, seconds in lines}


@pytest.mark.parametrize("start", MORNINGS.values(), ids=MORNINGS)
def test_all_replicas_are_ready_before_the_ramp(
    gpu_nodes, local_cluster, kubectl, namespace, run_operator, tell, request, start
):
    gpu_nodes(5, gpus=7)
    kubectl.apply(*(document(name, namespace) for name in NAMES))
    ramp = datetime.fromisoformat(start)
    clock = demo_clock((ramp - timedelta(minutes=17)).isoformat(), FACTOR)
    operator = run_operator("--workers=8", clock=clock)
    until_ready(kubectl, 2, *NAMES)
    local_cluster.set_start_time(load=minutes(6, 11, FACTOR))
    assert clock.now() < ramp - timedelta(minutes=12), "this machine is too slow for a clock of this speed"
    sleep_until(clock, start)
    ready = {name: found["status"].get("readyReplicas") for name, found in deployments(kubectl).items()}
    found = ramp_margins(operator.get("/metrics"))
    tell(f"ready before 08:00 by, {request.node.callspec.id}: {', '.join(shown(found.get(name)) for name in NAMES)}")
    assert ready == dict.fromkeys(NAMES, 5)
    assert set(found) == set(NAMES)
    assert all(timedelta() < margin < timedelta(minutes=6) for margin in found.values())


def test_starts_that_take_too_long_are_named_at_risk_before_the_ramp(
    gpu_nodes, local_cluster, kubectl, namespace, run_operator
):
    gpu_nodes(5)
    clock = demo_clock("2026-12-01T07:40:00+01:00", FASTER)
    kubectl.apply(document(namespace=namespace))
    operator = run_operator(clock=clock)
    until_ready(kubectl, 2, "support-chat")
    local_cluster.set_start_time(load=minutes(15, 15, FASTER))
    at_risk = until_condition(kubectl, "support-chat", "ReadyByNextRamp", "False", "RampAtRisk")
    assert clock.now() < datetime.fromisoformat("2026-12-01T08:00:00+01:00")
    assert at_risk["message"].startswith("2 of 5 ready; 3 in stage engine for the ramp at Tue 1 Dec 08:00 CET")
    assert status(kubectl)["ramp"]["needed"] == 5
    missed = until_condition(kubectl, "support-chat", "ReadyByNextRamp", "False", "RampMissed")
    assert "for the ramp that began at Tue 1 Dec 08:00 CET" in missed["message"]
    below = until_condition(kubectl, "support-chat", "Ready", "False", "BelowRequired")
    assert "2 of 5" in below["message"]
    until_condition(kubectl, "support-chat", "Ready", "True", "AsPlanned")
    until_condition(kubectl, "support-chat", "ReadyByNextRamp", "True", "NoRampDue")
    assert timedelta(minutes=-6) < ramp_margins(operator.get("/metrics"))["support-chat"] < timedelta(minutes=-2)
    told = eventually(
        lambda: [event["reason"] for event in events(kubectl)],
        lambda reasons: {"AsPlanned", "NoRampDue"} <= set(reasons[-3:]),
        what="events for the end of the missed ramp",
    )
    assert [reason for reason in told if reason in {"RampAtRisk", "RampMissed"}] == ["RampAtRisk", "RampMissed"]


def test_a_morning_in_which_people_step_in(gpu_nodes, local_cluster, kubectl, namespace, run_operator):
    gpu_nodes(3, gpus=5)
    long_lead = {"declared": "25m", "margin": "20%"}
    kubectl.apply(
        document("by-hand", namespace), document("grown", namespace), document("shrunk", namespace, leadTime=long_lead)
    )
    clock = demo_clock("2026-12-01T07:32:00+01:00", FASTEST)
    operator = run_operator(clock=clock)
    until_ready(kubectl, 2, "by-hand", "grown")
    until_ready(kubectl, 5, "shrunk")
    local_cluster.set_start_time(load=minutes(6, 9, FASTEST))
    before = {name: uids(pods(kubectl, name)) for name in ("grown", "shrunk")}
    sleep_until(clock, "2026-12-01T07:40:00+01:00")
    kubectl("scale", "deployment", "by-hand", "--replicas=1")
    sleep_until(clock, "2026-12-01T07:45:00+01:00")
    edit(kubectl, "grown", leadTime={"declared": "20m"})
    edit(kubectl, "shrunk", leadTime={"declared": "5m"})
    sleep_until(clock, "2026-12-01T08:00:00+01:00")
    ready = {name: found["status"].get("readyReplicas") for name, found in deployments(kubectl).items()}
    assert ready == {"by-hand": 5, "grown": 5, "shrunk": 5}, operator.log
    _, rise = scaled_at(local_cluster.audit, namespace, "grown", clock)
    assert rise < datetime.fromisoformat("2026-12-01T07:48:00+01:00")  # a longer lead is asked for at once
    assert uids(pods(kubectl, "grown")) > before["grown"]
    assert uids(pods(kubectl, "shrunk")) == before["shrunk"]
    assert status(kubectl, "by-hand")["contested"]["manager"] == "kubectl"
    sleep_until(clock, "2026-12-01T08:10:00+01:00")
    fewer = {"name": "fewer", "start": "2026-12-01T08:00", "end": "2026-12-01T12:00", "replicas": 3}
    edit(kubectl, "grown", schedule={"overrides": [fewer]})
    edited = clock.now()
    until_ready(kubectl, 3, "grown")
    *_, fourth, third = scaled_at(local_cluster.audit, namespace, "grown", clock)
    assert fourth < edited + SOON
    assert timedelta(minutes=2) <= third - fourth


def test_the_evening_falls_in_steps_and_never_early(gpu_nodes, local_cluster, kubectl, namespace, run_operator):
    gpu_nodes(5)
    clock = demo_clock("2026-12-01T19:51:00+01:00", FASTER)
    kubectl.apply(document(namespace=namespace))
    operator = run_operator(clock=clock)
    until_ready(kubectl, 5, "support-chat")
    until_status(kubectl, until=lambda s: s.get("window") == "working-day", what="the working day")
    assert status(kubectl)["nextChange"]["summary"] == "2 at Tue 20:00 CET"
    until_ready(kubectl, 2, "support-chat")
    created, *falls = scaled_at(local_cluster.audit, namespace, "support-chat", clock)
    evening = datetime.fromisoformat("2026-12-01T20:00:00+01:00")
    assert created < evening
    assert len(falls) == 3
    expected = [evening + timedelta(minutes=2 * step) for step in range(3)]
    assert all(due <= fell for due, fell in zip(expected, falls, strict=True)), falls
    assert all(later - fell >= timedelta(minutes=2) for fell, later in pairwise(falls)), falls
    assert falls[0] < evening + SOON
    notes = [event["note"] for event in events(kubectl) if event["reason"] == "ScaledDown"]
    assert notes[0].startswith("replicas 5 to 4: window working-day ends")
    night = until_status(kubectl, until=lambda s: s["window"] == "base", what="the night")
    assert night["gpuHours"] == {"monthPlanned": 2267, "monthFlat": 3650}
    assert operator.stop() == 0


def test_the_month_of_the_worked_example_is_shown_with_lead_and_trail_apart(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text(json.dumps(document()))
    command = [sys.executable, "-m", "servingplan", "plan", str(file), "--from=2026-12-01", "--days=14"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    months = dict(re.findall(r"^(required|\+ lead|\+ trail|= planned|flat peak) +\S+ +(\S+)", shown, re.MULTILINE))
    assert months == {
        "required": "2,252.0",
        "+ lead": "13.2",
        "+ trail": "2.2",
        "= planned": "2,267.4",
        "flat peak": "3,650.0",
    }
