"""The closed loop: real Prometheus, a simulated engine per pod, and the operator between them.

What engines say raises replicas by the right number or, with a reason, not at all; what is silent changes nothing;
falls drain; and the lead learns from rises.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e.support.eventually import eventually
from e2e.support.listening import day, feedback, notes, served, trail, until_heard, until_running, until_trail
from e2e.support.loop import at_loopback
from e2e.support.operator import demo_clock, sleep_until
from e2e.support.plans import (
    behind_service,
    condition,
    deployments,
    edit,
    plan,
    pods,
    scaled_at,
    status,
    uids,
    until_condition,
    until_ready,
    until_status,
)
from e2e.support.prometheus import PROGRAM
from servingplan.localcluster.stages import Span
from servingplan.planning.units import parse_duration
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, PLAN_LABEL, SERVING_LABEL
from support.specs import ENGINE

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs prometheus on the PATH")

FACTOR, FASTER = 20, 40
"""Two minutes of arrivals are six seconds, or three; a poll is less than one."""

UNHURRIED = 10
"""Where a raise of the right size is the claim: half a minute's arrivals, which it is sized by, are three seconds."""

SLOWER = 25
"""The margin of a lead that is learned is seven seconds: what this machine may take longer one time than another."""

MINUTE, SECOND, BERLIN = timedelta(minutes=1), timedelta(seconds=1), ZoneInfo("Europe/Berlin")

SOON = timedelta(minutes=4)
"""What may pass on the faster clock: some seconds of a machine with other things to do."""


def by_name(kubectl, name):
    return {pod["metadata"]["name"]: pod for pod in pods(kubectl, name)}


def until_replicas(kubectl, name, count, timeout_s=60.0):
    eventually(
        lambda: deployments(kubectl)[name]["spec"]["replicas"],
        count.__eq__,
        what=f"{count} replicas of {name}",
        timeout_s=timeout_s,
    )


def test_an_excess_that_lasts_raises_once_and_tells_what_to_write(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    names = ("edited", "passing")
    clock = demo_clock("2026-12-01T10:00:00+01:00", UNHURRIED)
    loop = start_loop(clock, gpus=24)
    kubectl.apply(*(served(name, namespace, ("work", "08:00", "20:00", 18), base=2) for name in names))
    for name in names:
        loop.demand(name, 18)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 9, *names)
    until_heard(kubectl, *names)
    for name in names:
        loop.demand(name, 18 * 1.3)
    until_ready(kubectl, 11, *names, timeout_s=120)
    for name in names:
        until_condition(kubectl, name, "DemandWithinPlan", "False", "DemandAbovePlan", timeout_s=120)
        found = eventually(  # less is said until two whole minutes are above the plan
            lambda name=name: condition(plan(kubectl, name), "DemandWithinPlan"),
            lambda seen: seen["message"].startswith(
                "up to 24/s arrive where window work plans 18/s, since Tue 1 Dec 10:"
            ),
            what=f"the whole excess of {name}",
        )
        known = until_status(kubectl, name, lambda s: s.get("raised"), what="a raise")
        assert (known["raised"]["extra"], known["raised"]["replicas"], known["floorReplicas"]) == (2, 11, 9)
        assert known["lastScale"]["because"] == "feedback: arrivals"
        until_trail(kubectl, name, "arrivals", "AbovePlan")
    loop.demand("passing", 9)
    patch = re.search(r"kubectl patch --type=merge -p '(.*)'", found["message"]).group(1)
    kubectl("patch", "servingplan", "edited", "--type=merge", "-p", patch)
    until_condition(kubectl, "edited", "DemandWithinPlan", "True", timeout_s=180)
    until_replicas(kubectl, "passing", 9, timeout_s=240)
    until_condition(kubectl, "passing", "DemandWithinPlan", "True")
    assert "raised" not in until_status(kubectl, "passing", lambda s: "raised" not in s, what="no raise")
    assert notes(kubectl, "edited", "ScaledUp")[-1].startswith("replicas 9 to 11: feedback: arrivals")
    for name, falls in (("edited", []), ("passing", ["replicas 11 to 10", "replicas 10 to 9"])):
        assert [note.split(":")[0] for note in notes(kubectl, name, "ScaledUp", "ScaledDown")][-1 - len(falls) :] == [
            "replicas 9 to 11",
            *falls,
        ]
        assert len(scaled_at(local_cluster.audit, namespace, name, clock)) == 2 + len(falls)
        assert len(notes(kubectl, name, "DemandAbovePlan")) == 1
    assert deployments(kubectl)["edited"]["spec"]["replicas"] == 11


def test_bursts_long_prompts_and_one_hot_replica_raise_nothing_and_say_why(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    names = ("burst", "prompts", "hot")
    clock = demo_clock("2026-12-01T10:00:00+01:00", FACTOR)
    loop = start_loop(clock, gpus=16)
    kubectl.apply(
        *(
            served(name, namespace, base=9, capacity=3, feedback=feedback(inFlightPerReplica=30))
            for name in names
        )
    )  # fmt: skip
    for name in names:
        loop.demand(name, 8, prompt_tokens=856)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 4, *names)
    until_heard(kubectl, *names)
    loop.demand("prompts", 8, prompt_tokens=2 * 856, ttft_s=3)
    busiest = min(by_name(kubectl, "hot"))
    loop.demand("hot", 5)
    loop.alone(busiest, arrivals_per_s=3, running=40, waiting=15, ttft_s=5)
    begun = clock.now()
    loop.demand("burst", 60, running=60, waiting=10)
    sleep_until(clock, begun.isoformat(), plus=timedelta(seconds=20))
    loop.demand("burst", 8, running=8, waiting=0)
    assert "a burst" in until_trail(kubectl, "burst", "extra", "TransientBurst")["message"]
    hot = until_trail(kubectl, "hot", "extra", "Imbalanced")
    assert hot["message"].startswith(f"{busiest} has 55 in flight, the median ")
    longer = until_trail(kubectl, "prompts", "extra", "PromptsLonger")
    assert re.fullmatch(r"prompts of \d+ tokens, 856 planned, and nothing waits", longer["message"])
    sleep_until(clock, begun.isoformat(), plus=timedelta(minutes=7))
    until_trail(kubectl, "burst", "extra", "WithinPlan")
    for name in names:
        assert status(kubectl, name)["desiredReplicas"] == 4
        assert len(scaled_at(local_cluster.audit, namespace, name, clock)) == 1
        assert not notes(kubectl, name, "DemandAbovePlan")


def test_without_prometheus_the_schedule_goes_on_and_with_it_feedback_resumes(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    clock = demo_clock("2026-12-01T09:30:00+01:00", FASTER)
    loop = start_loop(clock, gpus=20)
    kubectl.apply(
        served("ramp", namespace, ("work", "10:00", "12:00", 18), base=3),
        served("raised", namespace, base=9, capacity=3),
    )
    loop.demand("ramp", 3)
    loop.demand("raised", 9)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 3, "ramp")
    until_ready(kubectl, 4, "raised")
    until_heard(kubectl, "ramp", "raised")
    loop.demand("raised", 13)
    until_ready(kubectl, 6, "raised")
    until_condition(kubectl, "raised", "MetricsAvailable", "True")
    loop.prometheus.stop()
    stopped = clock.now()
    assert stopped < datetime.fromisoformat("2026-12-01T09:46:00+01:00"), "this machine is too slow for this clock"
    for name in ("ramp", "raised"):
        until_condition(kubectl, name, "MetricsAvailable", "False", "MetricsUnreachable")
    loop.demand("raised", 5)
    loop.demand("ramp", 18)
    until_ready(kubectl, 9, "ramp")
    sleep_until(clock, stopped.isoformat(), plus=timedelta(minutes=30))
    assert {name: found["spec"]["replicas"] for name, found in deployments(kubectl).items()} == {"ramp": 9, "raised": 6}
    created, rise = scaled_at(local_cluster.audit, namespace, "ramp", clock)
    asked = datetime.fromisoformat("2026-12-01T09:48:00+01:00")
    assert created < asked <= rise < asked + SOON
    assert len(scaled_at(local_cluster.audit, namespace, "raised", clock)) == 2
    for name in ("ramp", "raised"):
        until_condition(kubectl, name, "MetricsAvailable", "False", "MetricsUnreachable")
        assert trail(status(kubectl, name), "extra")["reason"] == "MetricsUnreachable"
    assert "the 2 raised before stay" in trail(status(kubectl, "raised"), "extra")["message"]
    loop.prometheus.start()
    for name in ("ramp", "raised"):
        until_condition(kubectl, name, "MetricsAvailable", "True", "MetricsHeard")
    loop.demand("ramp", 18 * 1.3)
    until_ready(kubectl, 11, "ramp")
    until_replicas(kubectl, "raised", 4, timeout_s=90)
    for name in ("ramp", "raised"):
        assert len(notes(kubectl, name, "MetricsUnreachable")) == 1


def test_a_fall_drains_the_least_busy_replica_and_a_raise_takes_it_back(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    clock = demo_clock("2026-12-01T09:54:00+01:00", FACTOR)
    loop = start_loop(clock, gpus=8)
    engine = ENGINE | {"drainTimeout": "6m"}
    kubectl.apply(served("chat", namespace, base=9, capacity=3, engine=engine))
    loop.demand("chat", 8)
    operator = run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 4, "chat")
    until_heard(kubectl, "chat")
    everybody = by_name(kubectl, "chat")
    first, second, *_ = sorted(everybody)
    loop.demand("chat", 2.5)
    loop.alone(first, arrivals_per_s=0.5, running=2)
    until_running(operator, loop, first, 2)
    edit(kubectl, "chat", schedule=day(base=3))

    def out_of_service(name):
        eventually(lambda: behind_service(kubectl, "chat"), lambda names: name not in names, what=f"no {name}")
        metadata = by_name(kubectl, "chat")[name]["metadata"]
        assert SERVING_LABEL not in metadata["labels"]
        return datetime.fromisoformat(metadata["annotations"][DRAINING_ANNOTATION])

    since = out_of_service(first)
    loop.alone(first, running=2)
    sleep_until(clock, since.isoformat(), plus=timedelta(minutes=2))
    assert DELETION_COST_ANNOTATION not in by_name(kubectl, "chat")[first]["metadata"]["annotations"]
    assert deployments(kubectl)["chat"]["spec"]["replicas"] == 4
    loop.alone(first)
    loop.alone(second, running=1)
    until_replicas(kubectl, "chat", 3)
    eventually(
        lambda: set(by_name(kubectl, "chat")), (set(everybody) - {first}).__eq__, what=f"all but the idle {first}"
    )
    writes = [
        (write.resource, write.subresource)
        for write in local_cluster.audit.entries()
        if write.namespace == namespace and write.user_agent.startswith("servingplan") and write.code < 300
        and (write.name == first or (write.name, write.subresource) == ("chat", "scale"))
    ]  # fmt: skip
    assert writes[-3:] == [("pods", ""), ("pods", ""), ("deployments", "scale")]

    out_of_service(second)
    edit(kubectl, "chat", suspend=True)
    eventually(lambda: behind_service(kubectl, "chat"), lambda names: second in names, what=f"{second} while suspended")
    assert deployments(kubectl)["chat"]["spec"]["replicas"] == 3
    edit(kubectl, "chat", suspend=False)

    out_of_service(second)
    edit(kubectl, "chat", schedule=day(base=6))
    eventually(lambda: behind_service(kubectl, "chat"), lambda names: second in names, what=f"{second} again")
    metadata = by_name(kubectl, "chat")[second]["metadata"]
    assert not {DRAINING_ANNOTATION, DELETION_COST_ANNOTATION} & set(metadata["annotations"])
    assert uids(pods(kubectl, "chat")) == uids(everybody[name] for name in everybody if name != first)
    edit(kubectl, "chat", schedule=day(base=3))
    since = out_of_service(second)
    until_replicas(kubectl, "chat", 2)
    left = scaled_at(local_cluster.audit, namespace, "chat", clock)[-1]
    assert since + timedelta(minutes=6) <= left < since + timedelta(minutes=6) + SOON
    eventually(
        lambda: set(by_name(kubectl, "chat")), (set(everybody) - {first, second}).__eq__, what=f"all but {second}"
    )


def test_a_lead_that_learned_from_one_slow_rise_meets_the_next_ramp(
    local_cluster, kubectl, namespace, run_operator, gpu_nodes
):
    gpu_nodes(1, gpus=4)
    clock = demo_clock("2026-12-01T08:30:00+01:00", SLOWER)
    plan = served(
        "chat", namespace, base=0, capacity=3, feedback=None, reserve={"replicas": 1, "quiet": 0},
        scaleDown={"step": 4, "every": "1m"}, engine=ENGINE | {"drainTimeout": "30s"},
    )  # fmt: skip
    kubectl.apply(plan)
    operator = run_operator(clock=clock)
    until_ready(kubectl, 1, "chat")
    seconds = timedelta(minutes=15).total_seconds() / SLOWER
    local_cluster.set_start_time(load=Span(at_least=seconds, at_most=seconds))
    edited = clock.now()
    ramps = [_minute(edited, after) for after in (14, 54)]
    windows = [(f"ramp-{i}", f"{start:%H:%M}", f"{start + 9 * MINUTE:%H:%M}", 9) for i, start in enumerate(ramps, 1)]
    edit(kubectl, "chat", schedule=day(*windows, base=0))
    generation = kubectl.json("get", "servingplan", "chat")["metadata"]["generation"]

    def slow_rises(count):
        """Waits for so many rises since the edit; what is known of the lead then, and their samples."""

        def since(found):
            samples = found.get("leadTime", {}).get("samples", ())
            return [each for each in samples if datetime.fromisoformat(each["decided"]) >= edited]

        found = until_status(kubectl, "chat", lambda s: len(since(s)) == count, what=f"{count} rises", timeout_s=120)
        return found["leadTime"], since(found)

    lead, (first,) = slow_rises(1)
    assert lead["learned"]["slowest"] == "engine", lead
    assert parse_duration(first["engine"]) >= 14 * MINUTE
    assert parse_duration(lead["learned"]["p95"]) >= 15 * MINUTE
    assert parse_duration(lead["effective"]) == pytest.approx(1.2 * parse_duration(lead["learned"]["p95"]), abs=SECOND)
    assert len(notes(kubectl, "chat", "RampMissed")) == 1
    assert operator.stop() == 0
    run_operator(clock=clock)
    sleep_until(clock, ramps[1].isoformat())
    found = deployments(kubectl)["chat"]
    assert found["status"].get("readyReplicas") == 4, f"{ramps[1]} at {clock.now()}"
    slow_rises(2)
    assert len(notes(kubectl, "chat", "RampMissed")) == 1
    assert kubectl.json("get", "servingplan", "chat")["metadata"]["generation"] == generation


def _minute(instant, after):
    """The whole minute of Berlin's clock so many minutes later, at the latest."""
    return (instant + after * MINUTE).astimezone(BERLIN).replace(second=0, microsecond=0)


def test_pods_are_asked_where_there_is_no_prometheus_and_those_that_do_not_answer_are_named(
    local_cluster, kubectl, namespace, run_operator, start_loop
):
    clock = demo_clock("2026-12-01T09:42:00+01:00", FACTOR)
    loop = start_loop(clock, gpus=16, at_pods=True)
    local_cluster.kubectl.apply(at_loopback({PLAN_LABEL: "heard"}))
    pods_themselves = {"scrape": {"port": "http"}, "maxExtra": 5, "staleAfter": "3m"}
    kubectl.apply(
        served("heard", namespace, base=9, capacity=3, engine=ENGINE | {"port": 18080}, feedback=pods_themselves),
        served("silent", namespace, ("work", "10:00", "12:00", 9), base=3, feedback=pods_themselves),
    )
    loop.demand("heard", 8)
    run_operator(clock=clock)
    until_ready(kubectl, 4, "heard")
    until_heard(kubectl, "heard")
    loop.demand("heard", 9 * 1.4)
    # What answers at the made-up addresses of these pods, if anything, is the machine's.
    reasons = ("MetricsUnreachable", "MetricsRefused")
    found = until_condition(kubectl, "silent", "MetricsAvailable", "False", *reasons)
    assert "silent-" in found["message"]
    until_ready(kubectl, 6, "heard")
    raised = until_status(kubectl, "heard", lambda s: s.get("raised"), what="a raise")
    assert (raised["raised"]["extra"], raised["lastScale"]["because"]) == (2, "feedback: arrivals")
    until_condition(kubectl, "heard", "MetricsAvailable", "True", "MetricsHeard")
    sleep_until(clock, "2026-12-01T09:48:00+01:00")
    until_ready(kubectl, 5, "silent")
    assert len(scaled_at(local_cluster.audit, namespace, "heard", clock)) == 2
