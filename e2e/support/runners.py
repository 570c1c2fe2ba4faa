"""Runners of evidence, where no container runs: a test writes into a Job's pod what the kubelet would."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from e2e.support.eventually import eventually
from servingplan.localcluster.kubectl import Kubectl

Object = Mapping[str, Any]


def runner(kubectl: Kubectl, evidence: str, *, piece: int = 1, but: Collection[str] = ()) -> Object:
    """The pod of the Job of a piece of work, once it runs. but: UIDs of others."""

    def running() -> list[Object]:
        found = kubectl.json("get", "pods", f"--selector=servingplan.dev/evidence={evidence}")["items"]
        found = [pod for pod in found if pod["metadata"]["uid"] not in but]
        found = [pod for pod in found if pod["metadata"]["labels"]["job-name"].endswith(f"-{piece}")]
        return [
            pod
            for pod in found
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    (pod,) = eventually(running, lambda found: len(found) == 1, what=f"a running runner for {piece}")
    return pod


def write_pod_status(kubectl: Kubectl, pod: Object, status: Mapping[str, Any]) -> None:
    """Write what the kubelet would say of a pod."""
    patch = json.dumps({"status": status})
    kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", f"--patch={patch}")


def end_runner(kubectl: Kubectl, pod: Object, message: str) -> None:
    """The runner's container ended well, and handed that back."""
    ended = {"exitCode": 0, "reason": "Completed", "message": message, "finishedAt": datetime.now(UTC).isoformat()}
    states = [{**each, "state": {"terminated": ended}, "ready": False} for each in pod["status"]["containerStatuses"]]
    write_pod_status(kubectl, pod, {"phase": "Succeeded", "containerStatuses": states})
