"""The Job that works for evidence: one container that runs the command line and hands its report back.

In: what to run. Out: the Job as JSON. The report comes back as the container's termination message, so that the runner
needs no right in the namespace: it has no token, no privilege and no user of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from servingplan.planning.runner import ClaimFile, ConfigMapFile, DataFile, Runner
from servingplan.planning.target import SecretKey
from servingplan.rendering.merge import merged
from servingplan.rendering.metadata import (
    EVIDENCE_KIND_LABEL,
    EVIDENCE_LABEL,
    INSTALLATION_LABEL,
    Manifest,
    Owner,
    owner_reference,
    recommended_labels,
)

RUNNER_CONTAINER = "runner"
"""The one container of a Job's pod."""

WORK_MOUNT, DATA_MOUNT, SCRATCH_MOUNT = "/var/lib/servingplan", "/data", "/tmp"  # noqa: S108  where programs expect it
"""Where the runner keeps its work, finds its data, and may write what nobody keeps."""

REPORT_PATH = "/dev/termination-log"
"""Kubernetes' own place for a container's last words."""

REPORT_BYTES = 4096
"""What Kubernetes keeps of them."""

KEY_VARIABLE = "OPENAI_API_KEY"
"""Where vLLM's client, and the command line, take the server's key from."""

USER = 65532
"""As in the image, and as a number so that the kubelet can tell that it is not root."""

RESTARTS = 3
"""How often a runner that ends with an error is started again: it goes on where it was, and what fails four times in
a row will fail the fifth."""

RESOURCES: Mapping[str, Any] = {"requests": {"cpu": "2", "memory": "4Gi"}}
"""What a runner asks for that is told nothing: vLLM's client voids a run in which it uses up one core, and beside it
stand its parent and the tokenizer."""

_FEW_RIGHTS: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}

GRACE = timedelta(seconds=60)
"""From the signal to the end: the runner ends its child and has its work written already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A claim with the model, for its tokenizer: mounted where the engine has it."""

    claim_name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstContainer:
    """A user's program that runs before the runner, with the same work volume and as few rights."""

    name: str
    image: str
    args: Sequence[str]
    variables: Mapping[str, str]
    keys: Mapping[str, SecretKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerJob:
    """One piece of work. work: as `rendering.evidence.work_id` names it. piece: its number in the name.

    arguments: of ``servingplan``. data: the file that it reads, at `data_path`. longest: after so long the Job is ended
    as failed, pauses apart. keys: of servers, by variable. first: what runs before it.
    """

    namespace: str
    evidence: str
    work: str
    piece: int
    arguments: Sequence[str]
    runner: Runner
    data: DataFile | None
    longest: timedelta
    keys: Mapping[str, SecretKey] = field(default_factory=dict)
    model: Model | None = None
    first: FirstContainer | None = None


def job_name(evidence: str, work: str, piece: int) -> str:
    """The name of a piece's Job: other work is another Job, since a Job's template cannot change."""
    return f"{evidence}-{work}-{piece}"


def data_path(data: DataFile) -> str:
    """Where the runner finds a file."""
    return f"{DATA_MOUNT}/{data.key if isinstance(data, ConfigMapFile) else data.path}"


def job_labels(evidence: str, kind: str) -> dict[str, str]:
    """What finds the Jobs of an evidence object, and their pods."""
    return {EVIDENCE_LABEL: evidence, EVIDENCE_KIND_LABEL: kind}


def job(runs: RunnerJob, owner: Owner, installation: str) -> Manifest:
    """The Job, running. owner: the evidence; it goes with it."""
    labels = {
        **recommended_labels(runs.evidence),
        "app.kubernetes.io/component": "runner",
        "app.kubernetes.io/name": "servingplan",
        **job_labels(runs.evidence, owner.kind),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(runs.evidence, runs.work, runs.piece),
            "namespace": runs.namespace,
            "labels": labels | {INSTALLATION_LABEL: installation},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "activeDeadlineSeconds": math.ceil(runs.longest.total_seconds()),
            "backoffLimit": RESTARTS,
            "suspend": False,
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(runs)},
        },
    }


def _pod_spec(runs: RunnerJob) -> Manifest:
    volumes = list(_volumes(runs))
    mounts = [{"name": name} | mount for name, _, mount in volumes]
    first = {} if runs.first is None else {"initContainers": [_first_container(runs.first, mounts)]}
    return {
        "automountServiceAccountToken": False,
        "containers": [_container(runs, mounts)],
        "enableServiceLinks": False,
        **first,
        # In the same pod, so that the work in an empty directory is still there.
        "restartPolicy": "OnFailure",
        "securityContext": {
            "fsGroup": USER,
            "runAsGroup": USER,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": math.ceil(GRACE.total_seconds()),
        "volumes": [{"name": name} | source for name, source, _ in volumes],
    }


def _container(runs: RunnerJob, mounts: list[Manifest]) -> Manifest:
    return {
        "name": RUNNER_CONTAINER,
        "image": runs.runner.image,
        "command": ["servingplan"],
        "args": list(runs.arguments),
        "env": [*_variables({"HOME": SCRATCH_MOUNT}, runs.keys)],
        "resources": merged({}, runs.runner.resources) or merged({}, RESOURCES),
        "securityContext": merged({}, _FEW_RIGHTS),
        "terminationMessagePath": REPORT_PATH,
        # A runner that ends with an error has no report: its last lines say why.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _first_container(first: FirstContainer, mounts: list[Manifest]) -> Manifest:
    return {
        "name": first.name,
        "image": first.image,
        "args": list(first.args),
        "env": [*_variables({"HOME": SCRATCH_MOUNT, **first.variables}, first.keys)],
        "securityContext": merged({}, _FEW_RIGHTS),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _variables(stated: Mapping[str, str], keys: Mapping[str, SecretKey]) -> Iterator[Manifest]:
    for name, value in stated.items():
        yield {"name": name, "value": value}
    for name, key in keys.items():
        yield {"name": name, "valueFrom": {"secretKeyRef": {"name": key.name, "key": key.key}}}


def _volumes(runs: RunnerJob) -> Iterator[tuple[str, Manifest, Manifest]]:
    """Name, source and mount of each."""
    claim = runs.runner.claim
    kept: Manifest = {"emptyDir": {}} if claim is None else {"persistentVolumeClaim": {"claimName": claim}}
    yield "work", kept, {"mountPath": WORK_MOUNT}
    yield "scratch", {"emptyDir": {}}, {"mountPath": SCRATCH_MOUNT}
    if isinstance(runs.data, ConfigMapFile):
        items = [{"key": runs.data.key, "path": runs.data.key}]
        yield "data", {"configMap": {"name": runs.data.name, "items": items}}, _read_only(DATA_MOUNT)
    elif isinstance(runs.data, ClaimFile):
        yield "data", _claim(runs.data.claim_name), _read_only(DATA_MOUNT)
    if runs.model is not None:
        yield "model", _claim(runs.model.claim_name), _read_only(runs.model.path)


def _claim(name: str) -> Manifest:
    # The mount is read-only; a volume that is attached as such could not be shared with an engine that writes to it.
    return {"persistentVolumeClaim": {"claimName": name}}


def _read_only(path: str) -> Manifest:
    return {"mountPath": path, "readOnly": True}
