"""The closed loop: real Prometheus, a simulated engine per pod, and the operator between them.

What engines say raises replicas by the right number or, with a reason, not at all; what is silent changes nothing;
falls drain; and the lead learns from rises.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from e2e.support.eventually import eventually
from e2e.support.loop import Loop
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
from e2e.support.prometheus import PROGRAM
from servingplan.localcluster.stages import Span
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, SERVING_LABEL
from support.specs import ENGINE, document

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs prometheus on the PATH")

FACTOR, FASTER = 20, 40
"""Two minutes of arrivals are six seconds, or three; a poll is less than one."""

SOON = timedelta(minutes=4)
"""What may pass on the faster clock: some seconds of a machine with other things to do."""

SCALE_DOWN = {"step": 1, "every": "2m", "stabilization": "5m"}


def feedback(**raise_when):
    """Silence of nine real seconds is none yet: a busy machine, not an engine."""
    return {"prometheus": {}, "maxExtra": 5, "staleAfter": "3m"} | ({"raiseWhen": raise_when} if raise_when else {})


def day(*windows, base):
    """A schedule of a Tuesday: ("name", start, end, requests/s)."""
    return {
        "timeZone": "Europe/Berlin",
        "base": {"requestsPerSecond": base},
        "windows": [
            {"name": name, "days": ["Tue"], "start": start, "end": end, "requestsPerSecond": rate}
            for name, start, end, rate in windows
        ],
    }


def served(name, namespace, *windows, base, capacity=2.5, **spec):
    """A plan with feedback."""
    fields = {
        "schedule": day(*windows, base=base),
        "capacity": {"requestsPerSecond": capacity},
        "bounds": {"minReplicas": 1, "maxReplicas": 14},
        "scaleDown": SCALE_DOWN,
        "feedback": feedback(),
    }
    return document(name, namespace, **(fields | spec))


@pytest.fixture
def start_loop(kubectl, namespace, tmp_path, gpu_nodes):
    """Starts engines and Prometheus for the test's namespace: ``loop = start_loop(clock, gpus=24)``."""
    begun: list[Loop] = []

    def start(clock, *, gpus):
        gpu_nodes(gpus // 4, gpus=4)
        loop = Loop(kubectl, namespace, tmp_path, clock)
        loop.__enter__()
        begun.append(loop)
        return loop

    yield start
    for loop in begun:
        loop.__exit__(None, None, None)


def trail(found, name):
    """A step of the trail of a status; nothing where there is none yet."""
    return next((step for step in found.get("decision", ()) if step["name"] == name), {})


def until_trail(kubectl, plan, name, reason, timeout_s=60.0):
    """Waits until a step of a plan's trail has a reason; returns the step."""
    found = until_status(
        kubectl, plan, lambda s: trail(s, name).get("reason") == reason, what=f"{name}: {reason}", timeout_s=timeout_s
    )
    return trail(found, name)


def until_heard(kubectl, *names):
    """Waits until the arrivals of plans are known."""
    for name in names:
        until_condition(kubectl, name, "MetricsAvailable", "True", "MetricsHeard")
        until_trail(kubectl, name, "arrivals", "WithinPlan")


def notes(kubectl, name, *reasons):
    """What events with these reasons say of a plan."""
    return [event["note"] for event in events(kubectl, name) if event["reason"] in reasons]


def by_name(kubectl, name):
    return {pod["metadata"]["name"]: pod for pod in pods(kubectl, name)}


def behind_service(kubectl, name):
    """The names of the pods that the plan's Service sends requests to."""
    slices = kubectl.json("get", "endpointslices", f"--selector=kubernetes.io/service-name={name}")["items"]
    endpoints = [each for found in slices for each in found.get("endpoints") or ()]
    return {each["targetRef"]["name"] for each in endpoints if each["conditions"]["ready"]}


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
    clock = demo_clock("2026-12-01T10:00:00+01:00", FACTOR)
    loop = start_loop(clock, gpus=24)
    kubectl.apply(*(served(name, namespace, ("work", "08:00", "20:00", 18), base=2) for name in names))
    for name in names:
        loop.demand(name, 18)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 9, *names)
    until_heard(kubectl, *names)
    for name in names:
        loop.demand(name, 18 * 1.3)
    until_ready(kubectl, 11, *names)
    for name in names:
        found = until_condition(kubectl, name, "DemandWithinPlan", "False", "DemandAbovePlan")
        assert re.match(
            r"up to 24/s arrive where window work plans 18/s, since Tue 1 Dec 10:\d\d CET", found["message"]
        )
        known = until_status(kubectl, name, lambda s: s.get("raised"), what="a raise")
        assert (known["raised"]["extra"], known["raised"]["replicas"], known["floorReplicas"]) == (2, 11, 9)
        assert known["lastScale"]["because"] == "feedback: arrivals"
        assert trail(known, "arrivals")["reason"] == "AbovePlan"
    loop.demand("passing", 9)
    patch = re.search(r"kubectl patch --type=merge -p '(.*)'", found["message"]).group(1)
    kubectl("patch", "servingplan", "edited", "--type=merge", "-p", patch)
    until_condition(kubectl, "edited", "DemandWithinPlan", "True", timeout_s=90)
    until_replicas(kubectl, "passing", 9, timeout_s=120)
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
    kubectl.apply(served("chat", namespace, ("work", "08:00", "10:00", 9), base=3, capacity=3, engine=engine))
    loop.demand("chat", 8)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 4, "chat")
    until_heard(kubectl, "chat")
    everybody = by_name(kubectl, "chat")
    first, second, *_ = sorted(everybody)
    loop.demand("chat", 2.5)
    loop.alone(first, arrivals_per_s=0.5, running=2)
    assert clock.now() < datetime.fromisoformat("2026-12-01T10:00:00+01:00"), "this machine is too slow for this clock"

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


def test_a_lead_that_learned_from_one_slow_rise_meets_the_next_ramps(
    local_cluster, kubectl, namespace, run_operator, gpu_nodes
):
    gpu_nodes(1, gpus=4)
    clock = demo_clock("2026-12-01T08:42:00+01:00", FASTER)
    ramps = ("09:00", "09:35", "10:10")
    windows = [(f"ramp-{i}", start, f"{start[:4]}9", 9) for i, start in enumerate(ramps, 1)]
    plan = served(
        "chat", namespace, *windows, base=0, capacity=3, feedback=None, reserve={"replicas": 1, "quiet": 0},
        scaleDown={"step": 4, "every": "1m"}, engine=ENGINE | {"drainTimeout": "30s"},
    )  # fmt: skip
    kubectl.apply(plan)
    operator = run_operator(clock=clock)
    until_ready(kubectl, 1, "chat")
    minutes = 15 * 60 / FASTER
    local_cluster.set_start_time(load=Span(at_least=minutes, at_most=minutes))
    generation = kubectl.json("get", "servingplan", "chat")["metadata"]["generation"]
    assert clock.now() < datetime.fromisoformat("2026-12-01T08:48:00+01:00"), "this machine is too slow for this clock"
    until_condition(kubectl, "chat", "ReadyByNextRamp", "False", "RampMissed")
    until_ready(kubectl, 4, "chat")
    # The creation of the first replica, which was quick, and the ramp.
    known = until_status(kubectl, "chat", lambda s: s["leadTime"].get("learned", {}).get("rises") == 2, what="a rise")[
        "leadTime"
    ]
    assert known["learned"]["slowest"] == "engine", known
    assert operator.stop() == 0
    run_operator(clock=clock)
    until_ready(kubectl, 1, "chat")
    for number, ramp in enumerate(ramps[1:], 2):
        sleep_until(clock, f"2026-12-01T{ramp}:00+01:00")
        found = deployments(kubectl)["chat"]
        assert found["status"].get("readyReplicas") == 4, f"{ramp} at {clock.now()}"
        learned = until_status(
            kubectl, "chat", lambda s, n=number: s["leadTime"]["learned"]["rises"] == n + 1, what=f"{number} ramps"
        )["leadTime"]
        assert learned["learned"]["p95"].startswith(("15m", "16m", "17m"))
        assert learned["effective"].startswith(("18m", "19m", "20m", "21m"))
        if ramp != ramps[-1]:
            until_ready(kubectl, 1, "chat")
    assert len(notes(kubectl, "chat", "RampMissed")) == 1
    assert kubectl.json("get", "servingplan", "chat")["metadata"]["generation"] == generation


def test_pods_that_cannot_be_scraped_are_named_and_the_schedule_goes_on(kubectl, namespace, run_operator, gpu_nodes):
    gpu_nodes(3, gpus=4)
    clock = demo_clock("2026-12-01T09:42:00+01:00", FACTOR)
    kubectl.apply(
        served("chat", namespace, ("work", "10:00", "12:00", 18), base=3, feedback={"scrape": {"port": "http"}})
    )
    run_operator(clock=clock)
    until_ready(kubectl, 3, "chat")
    # What answers at the made-up addresses of these pods, if anything, is the machine's.
    reasons = ("MetricsUnreachable", "MetricsRefused")
    found = until_condition(kubectl, "chat", "MetricsAvailable", "False", *reasons)
    assert "chat-" in found["message"]
    sleep_until(clock, "2026-12-01T09:48:00+01:00")
    until_ready(kubectl, 9, "chat")
