"""The closed loop with nothing simulated: the real vLLM is driven beyond its capacity, a real Prometheus sees it, and
the operator raises in time, says why, and comes down.
"""

from __future__ import annotations

import subprocess
import sys
import time

from e2e.support.eventually import eventually
from e2e.support.plans import deployments, edit, events, scaled_at, status, until_condition, until_ready, until_status
from e2e.vllm.containers import CAPACITY, engine, plan
from e2e.vllm.engines import LONGEST_ANSWER, MAX_NUM_SEQS, SMALL_CACHE
from e2e.vllm.load import Load
from e2e.vllm.samples import samples
from e2e.vllm.test_falls import START_S, address, tell
from servingplan.controller.clock import SystemClock
from servingplan.controller.polling import POLL_EVERY
from servingplan.planning.evidence import TWO_MINUTES

SCRAPE_S = 15
BOUND_S = 2 * SCRAPE_S + POLL_EVERY.total_seconds() + 2
"""Two scrapes, one poll and two seconds."""

HOPED_FOR, BEYOND = 4, 1.5
"""What the plan says a replica serves, and what arrives, in multiples of what it really serves: arrivals stay within
the plan, and only the load tells."""

WAITING = MAX_NUM_SEQS
"""Requests waiting per replica from which on one more is asked for."""


def gauge(name, namespace):
    return f'vllm:{name}{{namespace="{namespace}"}}'


def notes(kubectl, reason):
    return [event["note"] for event in events(kubectl, "busy") if event["reason"] == reason]


def until_told(kubectl, signal, *, timeout_s):
    """Wait until the last rise is told to be because of a signal."""
    eventually(
        lambda: notes(kubectl, "ScaledUp"),
        lambda told: signal in told[-1],
        what=f"a raise because of {signal}",
        timeout_s=timeout_s,
    )


def really_serves(url):
    """Requests/s of one replica that is as busy as it can be without a queue; in this run, on this machine."""
    with Load(url, tokens=LONGEST_ANSWER, clients=MAX_NUM_SEQS) as load:
        time.sleep(20)
        begun = time.time()
        time.sleep(30)
        served = [each for each in load.ended() if each.ended >= begun]
        return len(served) / (time.time() - begun)


def explain(cluster, namespace):
    command = (sys.executable, "-m", "servingplan", "explain", "busy", f"--namespace={namespace}")
    told = subprocess.run(
        [*command, f"--kubeconfig={cluster.kubeconfig}"], capture_output=True, text=True, check=True, timeout=60
    )
    return told.stdout


def test_load_beyond_capacity_raises_in_time_says_why_and_comes_down(
    cluster, kubectl, namespace, run_operator, prometheus, sources_file, environment, vllm_image
):
    small = engine(environment, vllm_image, *SMALL_CACHE)
    feedback = {"prometheus": {}, "maxExtra": 2, "raiseWhen": {"waitingPerReplica": WAITING}}
    down = {"step": 1, "every": "15s", "stabilization": "2m"}
    kubectl.apply(plan("busy", namespace, small, replicas=1, feedback=feedback, scaleDown=down))
    run_operator(f"--sources-file={sources_file}")
    until_ready(kubectl, 1, "busy", timeout_s=START_S)
    url = address(kubectl, "busy")
    served = really_serves(url)
    stated = round(HOPED_FOR * max(served, CAPACITY / HOPED_FOR), 2)
    edit(
        kubectl,
        "busy",
        capacity={"requestsPerSecond": stated},
        schedule={"timeZone": "Europe/Berlin", "base": {"requestsPerSecond": stated}},
    )
    until_condition(kubectl, "busy", "MetricsAvailable", "True", "MetricsHeard")
    # A replica that is there for less than two minutes proves nothing, and the queue of before must be gone.
    time.sleep(TWO_MINUTES.total_seconds())
    assert deployments(kubectl)["busy"]["spec"]["replicas"] == 1

    before = len(samples(prometheus, gauge("num_requests_waiting", namespace)))
    with Load(url, tokens=LONGEST_ANSWER, per_s=BEYOND * served, patience_s=300) as beyond:
        until_status(kubectl, "busy", lambda s: s.get("raised"), what="a raise", timeout_s=180)
        waiting = samples(prometheus, gauge("num_requests_waiting", namespace))[before:]
        shown = next(sample.at for sample in waiting if sample.value > WAITING)
        writes = (at.timestamp() for at in scaled_at(cluster.audit, namespace, "busy", SystemClock()))
        raised = next(at for at in writes if at > shown)
        tell("busy", f"serves {served:.1f}/s, {BEYOND * served:.1f}/s arrive, {stated}/s planned")
        tell("busy", f"shown {shown:.1f}, raised {raised:.1f}: {raised - shown:.1f} s, bound {BOUND_S:.0f} s")
        tell("trail at the first raise", "\n" + explain(cluster, namespace))
        assert raised - shown <= BOUND_S
        until_told(kubectl, "feedback: ", timeout_s=30)
        assert status(kubectl, "busy")["lastScale"]["because"].startswith("feedback: ")
    with Load(url, tokens=LONGEST_ANSWER, clients=6 * MAX_NUM_SEQS, patience_s=300) as steady:
        until_told(kubectl, "preemptionShare", timeout_s=START_S + 300)
        tell("trail at the second raise", "\n" + explain(cluster, namespace))
        until_ready(kubectl, 3, "busy", timeout_s=START_S)
    tell("busy", *(f"{load.counts()} {load.counts().losses}" for load in (beyond, steady)))
    assert status(kubectl, "busy")["raised"]["extra"] == 2

    rises = {
        name: [sample.value for sample in samples(prometheus, gauge(name, namespace))]
        for name in ("num_requests_running", "num_requests_waiting", "num_preemptions_total")
    }
    tell("busy", *(f"{name}: {values[:1]} to {max(values)}" for name, values in rises.items()))
    assert all(max(values) > values[0] for values in rises.values())
    until_ready(kubectl, 1, "busy", timeout_s=900)
    until_status(kubectl, "busy", lambda s: "raised" not in s, what="no raise")
    tell("trail at the end", "\n" + explain(cluster, namespace))
    tell("events", *(f"{event['eventTime']} {event['reason']}: {event['note']}" for event in events(kubectl, "busy")))
    assert [note.split(":")[0] for note in notes(kubectl, "ScaledDown")] == ["replicas 3 to 2", "replicas 2 to 1"]
