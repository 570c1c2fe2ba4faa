"""Plans that refer to a CapacityBenchmark: replicas follow its result; what differs is named, and lowers nothing.

Results are written to /status as the benchmark's own controller writes them; the API server, and for what requests are
like a Prometheus, are real.
"""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from e2e.support.eventually import eventually
from e2e.support.listening import feedback, served, until_heard
from e2e.support.operator import demo_clock, sleep_until
from e2e.support.plans import condition, deployments, edit, plan, status, until_condition, until_ready, until_status
from e2e.support.prometheus import PROGRAM
from servingplan.api.resolve import resolve
from servingplan.rendering.identity import identity
from support.specs import ENGINE, benchmark, document

REFERRING = {"capacity": {"benchmarkRef": {"name": "l40s"}}}
NOON = "2026-12-01T12:00:00+01:00"
AS_MEASURED = {"inputTokens": 850.0, "outputTokens": 240.0, "prefixHitShare": 0.4}


def measured(rate, namespace, *, at_capacity=None, product=None, **engine):
    """A CapacityBenchmark of the worked example's engine, edited so, as its own controller leaves it."""
    one = identity(resolve(document(engine={**ENGINE, **engine}), {}).engine)
    fingerprint = {
        "digest": one.digest,
        "image": one.image,
        "model": one.model,
        "arguments": list(one.arguments),
        "accelerator": one.accelerator,
        **({} if product is None else {"product": product}),
    }
    return benchmark(
        namespace=namespace,
        capacity={"requestsPerSecond": rate},
        atCapacity=at_capacity or {"inFlightMean": 40.0},
        fingerprint=fingerprint,
        conditions=None,
    )


def publish(kubectl, found):
    """The spec without work to do, and the result in its status."""
    kubectl.apply({**found, "spec": {**found["spec"], "suspend": True}, "status": None})
    patch = json.dumps([{"op": "add", "path": "/status", "value": found["status"]}])
    kubectl("patch", "capacitybenchmark", "l40s", "--subresource=status", "--type=json", "-p", patch)


def until_replicas(kubectl, count, name="support-chat"):
    eventually(
        lambda: deployments(kubectl)[name]["spec"]["replicas"], count.__eq__, what=f"{count} replicas", timeout_s=60
    )


def statuses_written(kubectl, *names):
    return [plan(kubectl, name)["metadata"]["resourceVersion"] for name in names]


def test_replicas_follow_a_result_and_hold_where_it_is_of_something_else(gpu_nodes, kubectl, namespace, run_operator):
    gpu_nodes(8, gpus=2, labels={"nvidia.com/gpu.product": "T4"})
    publish(kubectl, measured(5, namespace))
    falls = {"step": 5, "every": "1m"}
    kubectl.apply(document(namespace=namespace, **REFERRING, scaleDown=falls), document("beside", namespace))
    clock = demo_clock(NOON, 1)
    operator = run_operator(clock=clock)
    until_ready(kubectl, 5, "support-chat", "beside")
    until_condition(kubectl, "support-chat", "CapacityCurrent", "True", "CapacityHolds")
    assert status(kubectl)["capacity"]["source"] == "l40s"

    publish(kubectl, measured(3, namespace))
    until_ready(kubectl, 7, "support-chat")
    publish(kubectl, measured(18, namespace, maxNumSeqs=32))
    told = until_condition(kubectl, "support-chat", "CapacityCurrent", "False", "EngineDiffers")
    assert "--max-num-seqs 128, measured with 32" in told["message"]
    publish(kubectl, measured(18, namespace, product="L40S"))
    told = until_condition(kubectl, "support-chat", "CapacityCurrent", "False", "HardwareDiffers")
    assert "accelerator T4, measured on L40S" in told["message"]
    assert deployments(kubectl)["support-chat"]["spec"]["replicas"] == 7

    until_condition(kubectl, "support-chat", "Ready", "True", "AsPlanned")
    operator.kill()
    before = statuses_written(kubectl, "support-chat", "beside")
    run_operator(clock=clock)
    publish(kubectl, measured(17, namespace, product="L40S"))
    sleep_until(clock, clock.now().isoformat(), plus=timedelta(seconds=5))
    assert statuses_written(kubectl, "support-chat", "beside") == before
    assert deployments(kubectl)["support-chat"]["spec"]["replicas"] == 7
    assert status(kubectl)["capacity"]["requestsPerSecond"] == 3

    publish(kubectl, measured(9, namespace, product="T4"))
    until_replicas(kubectl, 3)
    until_condition(kubectl, "support-chat", "CapacityCurrent", "True", "CapacityHolds")
    edit(kubectl, engine={"maxNumSeqs": 64})
    told = until_condition(kubectl, "support-chat", "CapacityCurrent", "False", "EngineDiffers")
    assert "--max-num-seqs 64, measured with 128" in told["message"]


@pytest.mark.parametrize("loss", ["deleted", "broken"])
def test_a_result_that_is_lost_keeps_the_replicas_and_touches_no_other_plan(
    gpu_nodes, kubectl, namespace, run_operator, loss
):
    gpu_nodes(5, gpus=2)
    publish(kubectl, measured(5, namespace))
    kubectl.apply(document(namespace=namespace, **REFERRING), document("beside", namespace))
    run_operator(clock=demo_clock(NOON, 1))
    until_ready(kubectl, 5, "support-chat", "beside")
    until_condition(kubectl, "beside", "Ready", "True")
    if loss == "deleted":
        kubectl("delete", "capacitybenchmark", "l40s")
    else:
        publish(kubectl, {**measured(5, namespace), "status": {"capacity": {"requestsPerSecond": 0}}})
    until_condition(kubectl, "support-chat", "PlanValid", "False", "Invalid")
    assert deployments(kubectl)["support-chat"]["spec"]["replicas"] == 5
    assert condition(plan(kubectl, "beside"), "PlanValid")["status"] == "True"
    publish(kubectl, measured(5, namespace))
    until_condition(kubectl, "support-chat", "PlanValid", "True")


FACTOR = 40
"""An hour of requests is a minute and a half."""


@pytest.mark.skipif(PROGRAM is None, reason="needs prometheus on the PATH")
def test_requests_of_the_last_hour_are_compared_with_those_that_were_measured(
    kubectl, namespace, run_operator, start_loop
):
    loads = {
        "same": {"prompt_tokens": 900, "output_tokens": 250, "prefix_hit_share": 0.35},
        "longer": {"prompt_tokens": 900, "output_tokens": 300, "prefix_hit_share": 0.35},
        "colder": {"prompt_tokens": 900, "output_tokens": 250, "prefix_hit_share": 0.25},
    }
    clock = demo_clock(NOON, FACTOR)
    loop = start_loop(clock, gpus=12)
    publish(kubectl, measured(5, namespace, at_capacity=AS_MEASURED))
    for name, load in loads.items():
        made = served(name, namespace, base=8, feedback={**feedback(), "staleAfter": "5m"})
        kubectl.apply({**made, "spec": {**made["spec"], **REFERRING}})
        loop.demand(name, 8, **load)
    operator = run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_ready(kubectl, 3, *loads)
    until_heard(kubectl, *loads)
    longer = until_condition(kubectl, "longer", "CapacityCurrent", "False", "TokensAbovePlan", timeout_s=200)
    assert "over 20% more output tokens than the 240 measured" in longer["message"]
    colder = until_condition(kubectl, "colder", "CapacityCurrent", "False", "CacheColder", timeout_s=60)
    assert "than the 40% measured" in colder["message"]
    assert condition(plan(kubectl, "same"), "CapacityCurrent")["reason"] == "CapacityHolds"
    operator.kill()
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    until_heard(kubectl, *loads)
    for name, before in (("longer", longer), ("colder", colder)):
        found = condition(plan(kubectl, name), "CapacityCurrent")
        assert (found["reason"], found["lastTransitionTime"]) == (before["reason"], before["lastTransitionTime"])
    assert until_status(kubectl, "same", what="a status")["desiredReplicas"] == 3
