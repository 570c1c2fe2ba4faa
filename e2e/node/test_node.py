"""What a real node does of itself, and everything else here stands on: GPUs, images, addresses."""

from __future__ import annotations

import urllib.request

import pytest

from e2e.node.images import on_the_host
from e2e.support.eventually import eventually
from e2e.support.workloads import condition, gpu_deployment, is_ready
from servingplan.localcluster.nodes import GPU


@pytest.fixture
def served(kubectl, engine_image):
    """Starts a Deployment of engines with GPUs, without the operator: ``served("name", replicas=1, gpus=1)``."""

    def start(name, *, replicas, gpus):
        found = gpu_deployment(name, replicas=replicas, gpus=gpus)
        container = found["spec"]["template"]["spec"]["containers"][0]
        template = on_the_host(container["name"])["spec"]
        container |= template["containers"][0] | {
            "image": engine_image,
            "args": ["/models/tiny", "--served-model-name=tiny", "--port=8000", "--shutdown-timeout=5"],
            "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1},
        }
        found["spec"]["template"]["spec"]["volumes"] = template["volumes"]
        kubectl.apply(found)
        return lambda: kubectl.json("get", "pods", f"--selector=app={name}")["items"]

    return start


def test_gpus_are_counted_out_and_a_pod_answers_at_its_address(cluster, served):
    pods = served("small", replicas=2, gpus=1)
    found = eventually(pods, lambda found: sum(map(is_ready, found)) == 2, what="two ready pods")
    assert {pod["spec"]["nodeName"] for pod in found} == {node.name for node in cluster.nodes}
    for pod in found:
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8000/health", timeout=5) as answer:
            assert answer.status == 200


def test_a_pod_that_wants_more_gpus_than_a_node_has_waits(served):
    pods = served("large", replicas=1, gpus=9)
    (pod,) = eventually(
        pods, lambda found: found and condition(found[0], "PodScheduled") is not None, what="a word of the scheduler"
    )
    assert condition(pod, "PodScheduled")["reason"] == "Unschedulable"
    assert f"Insufficient {GPU}" in condition(pod, "PodScheduled")["message"]


def test_a_kubelet_keeps_the_gpus_that_it_does_not_know(cluster):
    """It writes its status every few seconds: what it writes holds what was patched in."""
    (node, *_) = cluster.nodes
    before = condition(node.object, "Ready")["lastHeartbeatTime"]
    later = eventually(
        lambda: node.object, lambda found: condition(found, "Ready")["lastHeartbeatTime"] > before, what="a heartbeat"
    )
    assert later["status"]["allocatable"][GPU] == later["status"]["capacity"][GPU] == "8"
