"""What tests read of a plan in a cluster: its status and conditions, its pods and ReplicaSets, and its events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from e2e.support.eventually import eventually
from e2e.support.workloads import condition, is_ready
from servingplan.controller.clock import AcceleratedClock
from servingplan.localcluster.audit import AuditLog
from servingplan.localcluster.kubectl import Kubectl
from servingplan.rendering.metadata import PLAN_LABEL

Object = Mapping[str, Any]


def plan(kubectl: Kubectl, name: str = "support-chat") -> Object:
    """A plan as it is now."""
    found: Object = kubectl.json("get", "servingplan", name)
    return found


def status(kubectl: Kubectl, name: str = "support-chat") -> Object:
    """A plan's status; empty until the operator has looked at it."""
    found: Object = plan(kubectl, name).get("status", {})
    return found


def until_status(
    kubectl: Kubectl,
    name: str = "support-chat",
    until: Callable[[Object], Any] = bool,
    *,
    what: str,
    timeout_s: float = 60.0,
) -> Object:
    """Waits until a plan's status is as ``until`` wants it, and returns it."""
    return eventually(lambda: status(kubectl, name), until, what=f"{what} in the status of {name}", timeout_s=timeout_s)


def until_condition(
    kubectl: Kubectl, name: str, kind: str, wanted: str, *reasons: str, timeout_s: float = 60.0
) -> Object:
    """Waits until a condition has the status ``wanted``, for one of ``reasons`` where some are given."""

    def holds(found: Object) -> bool:
        return found.get("status") == wanted and (not reasons or found["reason"] in reasons)

    return eventually(
        lambda: condition(plan(kubectl, name), kind) or {},
        holds,
        what=f"{kind} {wanted} ({', '.join(reasons) or 'for any reason'}) of {name}",
        timeout_s=timeout_s,
    )


def until_ready(kubectl: Kubectl, replicas: int, *names: str, timeout_s: float = 60.0) -> None:
    """Waits until each plan's Deployment has so many replicas, all of them ready."""

    def settled(found: Mapping[str, Object]) -> bool:
        return all(
            name in found
            and found[name]["spec"]["replicas"] == replicas
            and found[name].get("status", {}).get("readyReplicas", 0) == replicas
            and found[name]["status"].get("replicas") == replicas
            for name in names
        )

    eventually(
        lambda: deployments(kubectl), settled, what=f"{replicas} ready of {', '.join(names)}", timeout_s=timeout_s
    )


def until_observed(kubectl: Kubectl, name: str = "support-chat") -> None:
    """Waits until the operator has looked at a plan as it is now."""
    eventually(
        lambda: plan(kubectl, name),
        lambda found: found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"],
        what=f"a look at {name}",
    )


def edit(kubectl: Kubectl, name: str = "support-chat", **spec: Any) -> None:
    """Changes fields of a plan's spec, as `kubectl edit` does."""
    kubectl("patch", "servingplan", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def deployments(kubectl: Kubectl) -> dict[str, Object]:
    """The Deployments of the namespace, by name."""
    return {item["metadata"]["name"]: item for item in kubectl.json("get", "deployments")["items"]}


def pods(kubectl: Kubectl, name: str = "support-chat") -> list[Object]:
    """The pods of a plan that are not being deleted."""
    listed: list[Object] = kubectl.json("get", "pods", f"--selector={PLAN_LABEL}={name}")["items"]
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def ready_pods(kubectl: Kubectl, name: str = "support-chat") -> list[Object]:
    """The pods of a plan that are ready."""
    return [pod for pod in pods(kubectl, name) if is_ready(pod)]


def behind_service(kubectl: Kubectl, name: str) -> set[str]:
    """The names of the pods that the plan's Service sends requests to."""
    slices = kubectl.json("get", "endpointslices", f"--selector=kubernetes.io/service-name={name}")["items"]
    endpoints = [each for found in slices for each in found.get("endpoints") or ()]
    return {each["targetRef"]["name"] for each in endpoints if each["conditions"]["ready"]}


def uids(objects: Iterable[Object]) -> frozenset[str]:
    """Which objects these are."""
    return frozenset(each["metadata"]["uid"] for each in objects)


def replica_sets(kubectl: Kubectl, name: str = "support-chat") -> frozenset[str]:
    """The ReplicaSets of a plan: one for each pod template that it ever had."""
    listed = kubectl.json("get", "replicasets", f"--selector={PLAN_LABEL}={name}")["items"]
    return uids(listed)


def events(kubectl: Kubectl, name: str = "support-chat") -> list[Object]:
    """What was said about a plan, the earliest first."""
    listed: list[Object] = kubectl.json("get", "events.events.k8s.io")["items"]
    about = [event for event in listed if event["regarding"].get("name") == name]
    return sorted((e for e in about if e["regarding"]["kind"] == "ServingPlan"), key=lambda event: event["eventTime"])


def scaled_at(audit: AuditLog, namespace: str, name: str, clock: AcceleratedClock) -> list[datetime]:
    """When the operator's writes to the replicas of a Deployment arrived, on the plan's clock."""
    return [
        clock.from_real(write.time)
        for write in audit.entries()
        if (write.namespace, write.name) == (namespace, name)
        and (write.resource, write.subresource) == ("deployments", "scale")
        and write.user_agent.startswith(OPERATOR_AGENT)
        and write.code < 300
    ]


OPERATOR_AGENT = "servingplan"
