"""Foresight on a real control plane: a Prometheus that remembers the last days, and an operator that learns from them.

What the past alone knows is ready before it comes; without a past everything is as before; a restart writes nothing;
and without the field what it raised goes again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e.support.eventually import eventually
from e2e.support.listening import feedback, notes, served, trail, until_trail
from e2e.support.operator import demo_clock, sleep_until
from e2e.support.past import past_of
from e2e.support.plans import deployments, scaled_at, status, until_condition, until_ready, until_status
from e2e.support.prometheus import PROGRAM

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs prometheus on the PATH")

FACTOR = 10
"""A minute of arrivals is six seconds, and a machine that stalls for some of them is heard without a pause."""

BERLIN = ZoneInfo("Europe/Berlin")
QUIET, BUSY, CAPACITY = 1, 20, 5
RISE = datetime.fromisoformat("2026-12-01T08:00:00+01:00")
"""On a Tuesday; the schedule knows nothing of it."""

START = timedelta(minutes=12)
"""The plans' lead, with its margin."""


KEPT = "10m"
"""What was raised stays as long: nothing falls while the test looks who holds it."""


def office(instant: datetime) -> float:
    """Requests/s of the days before, working days and days off alike."""
    return BUSY if 8 <= instant.astimezone(BERLIN).hour < 18 else QUIET


def looking_ahead(name, namespace):
    at_once = {"step": 5, "every": "1m", "stabilization": KEPT}
    foresight = feedback() | {"foresight": {}}
    return served(name, namespace, base=QUIET, capacity=CAPACITY, scaleDown=at_once, feedback=foresight)


def replicas(kubectl, name):
    return deployments(kubectl)[name]["spec"]["replicas"]


def writes(local_cluster, namespace, since):
    """What the operator wrote after an instant of the real clock, but for when a raise was last wanted."""
    return [
        f"{write.verb} {write.resource}/{write.subresource} {write.name}"
        for write in local_cluster.audit.entries(since=since)
        if write.namespace == namespace
        and write.user_agent.startswith("servingplan")
        and write.resource != "leases"
        and (write.subresource, write.name) != ("status", "seen")
    ]


def test_a_rise_that_only_the_past_knows_is_ready_when_it_comes(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    clock = demo_clock("2026-12-01T07:42:00+01:00", FACTOR)
    past = past_of("seen", namespace, clock, 5, office)
    loop = start_loop(clock, gpus=28, past=past)
    kubectl.apply(looking_ahead("seen", namespace), looking_ahead("new", namespace))
    for name in ("seen", "new"):
        loop.demand(name, QUIET)
    options = f"--sources-file={loop.sources_file()}"
    operator = run_operator(options, clock=clock)
    until_ready(kubectl, 2, "seen", "new")
    until_condition(kubectl, "seen", "MetricsAvailable", "True", "MetricsHeard")
    until_condition(kubectl, "new", "MetricsAvailable", "True", "HistoryShort")
    assert clock.now() < RISE - START, "this machine is too slow for this clock"
    assert replicas(kubectl, "seen") < 5

    raised = until_status(kubectl, "seen", lambda s: s["desiredReplicas"] >= 5, what="a raise", timeout_s=120)
    assert datetime.fromisoformat(raised["lastScale"]["time"]) < RISE
    assert raised["lastScale"]["because"] == "feedback: foresight"
    assert raised["floorReplicas"] == 2
    step = until_trail(kubectl, "seen", "foresight", "Foreseen")
    assert step["message"].startswith("usual ")
    sleep_until(clock, RISE.isoformat())
    assert status(kubectl, "seen")["readyReplicas"] >= 5
    assert replicas(kubectl, "new") == 2
    assert trail(status(kubectl, "new"), "foresight")["reason"] == "HistoryShort"

    # The office does not open today. What was raised stays all the same, also with an operator that has just started.
    before = replicas(kubectl, "seen")
    assert operator.stop() == 0
    restarted = datetime.now(UTC)
    operator = run_operator(options, clock=clock)
    again = f'servingplan_foresight_learned_days{{name="seen",namespace="{namespace}"}}'
    eventually(lambda: operator.get("/metrics"), lambda text: again in text, what="a past that is learned again")
    sleep_until(clock, clock.now().isoformat(), plus=timedelta(minutes=5))
    assert replicas(kubectl, "seen") == before
    assert writes(local_cluster, namespace, restarted) == []

    without = '[{"op": "remove", "path": "/spec/feedback/foresight"}]'
    kubectl("patch", "servingplan", "seen", "--type=json", "-p", without)
    eventually(lambda: replicas(kubectl, "seen"), (2).__eq__, what="the schedule's replicas alone", timeout_s=180)
    assert "raised" not in until_status(kubectl, "seen", lambda s: "raised" not in s, what="no raise")
    assert notes(kubectl, "seen", "ScaledUp")[-1].endswith("feedback: foresight (demo clock)")
    assert len(scaled_at(local_cluster.audit, namespace, "new", clock)) == 1
