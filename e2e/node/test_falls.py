"""A fall under streams: the replica that drains is the one that is removed, in the order that cuts nothing."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from e2e.node.plans import NOON, PORT, Streams, complete, served, service_address
from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.plans import (
    OPERATOR_AGENT,
    behind_service,
    deployments,
    edit,
    pods,
    ready_pods,
    until_condition,
    until_ready,
)
from servingplan.clients.engine_scrape import SCRAPES
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, FIRST_TO_GO, SERVING_LABEL

FACTOR = 12
"""Two idle readings lie 15 s apart on the plan's clock, so little more than one here."""

TOKEN_S = 0.1
STREAMS = {"most": (9, 30), "some": (7, 30), "least": (5, 20)}
"""How many streams a replica has when the fall begins, and how many seconds they last."""


class Watched:
    """What a pod went through, in the order in which the API server told it."""

    def __init__(self, kubectl, kind, name):
        self.seen = []
        command = [str(kubectl.program), *kubectl.options, "get", kind, name, "--watch", "--output-watch-events"]
        self._process = subprocess.Popen([*command, "--output=json"], stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self):
        for line in self._process.stdout:
            event = json.loads(line)
            self.seen.append(event["object"] | {"event": event["type"]})

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._thread.join(10)


def stages(watched):
    """The steps of a fall as a pod shows them, each once, in their order."""
    found = []
    for pod in watched.seen:
        metadata = pod["metadata"]
        annotations = metadata.get("annotations", {})
        if pod["event"] == "DELETED":
            step = "gone"
        elif "deletionTimestamp" in metadata:
            step = "ending"
        elif annotations.get(DELETION_COST_ANNOTATION) == FIRST_TO_GO:
            step = "first to go"
        elif DRAINING_ANNOTATION in annotations and SERVING_LABEL not in metadata["labels"]:
            step = "draining"
        else:
            step = "serving"
        if step not in found:
            found.append(step)
    return found


def edited_to(replicas):
    """The part of a plan's schedule that asks for so many replicas."""
    return served("any", "any", "any", replicas=replicas)["spec"]["schedule"]


def test_the_least_busy_replica_drains_under_its_streams_and_is_the_one_that_goes(
    cluster, kubectl, namespace, engine_image, run_operator
):
    plan = served(
        "chat",
        namespace,
        engine_image,
        replicas=3,
        env={"TOKEN_S": str(TOKEN_S)},
        engine={"drainTimeout": "10m"},
        feedback={"scrape": {}, "staleAfter": "3m", "raiseWhen": {"arrivals": False}},
    )
    kubectl.apply(plan)
    operator = run_operator(clock=demo_clock(NOON, FACTOR))
    until_ready(kubectl, 3, "chat", timeout_s=120)
    until_condition(kubectl, "chat", "MetricsAvailable", "True", "MetricsHeard")
    addresses = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in ready_pods(kubectl, "chat")}
    busy = dict(zip(STREAMS, addresses, strict=True))
    watched, streams = Watched(kubectl, "pod", busy["least"]), Streams()
    for share, (count, seconds) in STREAMS.items():
        streams.begin(addresses[busy[share]], count, tokens=int(seconds / TOKEN_S))
    for share, (count, _) in STREAMS.items():
        until_heard_in_flight(addresses[busy[share]], count)
    until_asked(operator, 2 * len(STREAMS))
    began = datetime.now(UTC)
    edit(kubectl, "chat", schedule=edited_to(2))

    rest = {busy["most"], busy["some"]}
    eventually(lambda: behind_service(kubectl, "chat"), rest.__eq__, what=f"{rest} alone behind the Service")
    # It has left the Service, and still answers what it has.
    assert len(ready_pods(kubectl, "chat")) == 3
    assert deployments(kubectl)["chat"]["spec"]["replicas"] == 3
    service = service_address(kubectl, "chat")
    assert {complete(service).replica for _ in range(20)} <= rest
    answers = streams.end()
    assert len(answers) == sum(count for count, _ in STREAMS.values())
    assert all(answer.whole for answer in answers)
    eventually(lambda: watched.seen[-1]["event"] == "DELETED", what=f"the end of {busy['least']}")
    watched.stop()
    assert stages(watched) == ["serving", "draining", "first to go", "ending", "gone"]
    assert {pod["metadata"]["name"] for pod in pods(kubectl, "chat")} == rest
    assert writes(cluster, namespace, began) == ["pods", "pods", "deployments/scale"]


def until_heard_in_flight(address, count):
    """Waits until an engine says that it has so many requests in flight."""

    def running():
        with urllib.request.urlopen(f"http://{address}:{PORT}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running"))

    eventually(running, lambda found: found == count, what=f"{count} requests in flight at {address}")


def until_asked(operator, times):
    """Waits until the operator has asked engines so many times more, so that it knows what they have in flight."""

    def asked():
        families = text_string_to_metric_families(operator.get("/metrics"))
        samples = [sample for family in families for sample in family.samples]
        return sum(
            sample.value
            for sample in samples
            if sample.name == "servingplan_signal_queries_total"
            and sample.labels == {"source": SCRAPES, "outcome": "ok"}
        )

    before = asked()
    eventually(asked, lambda count: count >= before + times, what=f"{times} scrapes")


def writes(cluster, namespace, since):
    """What the operator wrote into the namespace to bring about the fall, in its order."""
    entries = cluster.audit.entries(since=since)
    own = [one for one in entries if one.namespace == namespace and one.user_agent.startswith(OPERATOR_AGENT)]
    named = [f"{one.resource}/{one.subresource}".rstrip("/") for one in own if one.code < 300]
    return [name for name in named if name in {"pods", "deployments", "deployments/scale"}]
