"""A kind that is installed while the operator runs is watched from then on."""

from __future__ import annotations

from e2e.support.kinds import SCALED_OBJECTS, scaled_object
from e2e.support.plans import until_condition
from e2e.support.workloads import gpu_deployment
from support.specs import document, targeting


def test_a_scaled_object_is_seen_although_keda_was_installed_after_the_operator_had_started(
    local_cluster, kubectl, namespace, run_operator
):
    crd = f"crd/{SCALED_OBJECTS['metadata']['name']}"
    local_cluster.kubectl("delete", crd, "--ignore-not-found", "--wait=true")
    kubectl.apply(gpu_deployment("vllm", replicas=1, gpus=0), document("targeting", namespace, **targeting()))
    operator = run_operator("--relist-seconds=3600")
    until_condition(kubectl, "targeting", "ReplicasOwned", "True", "SoleWriter")
    assert "Unresolved resources" not in operator.log
    local_cluster.kubectl.apply(SCALED_OBJECTS)
    try:
        local_cluster.kubectl("wait", "--for=condition=Established", crd)
        kubectl.apply(scaled_object("vllm", "vllm"))
        owned = until_condition(kubectl, "targeting", "ReplicasOwned", "False", "ScaledByHPA")
        assert owned["message"].startswith(f"ScaledObject {namespace}/vllm scales Deployment {namespace}/vllm too")
        kubectl("delete", "scaledobject", "vllm")
        until_condition(kubectl, "targeting", "ReplicasOwned", "True", "SoleWriter")
    finally:
        local_cluster.kubectl("delete", crd, "--wait=false")
