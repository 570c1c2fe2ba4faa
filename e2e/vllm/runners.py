"""The runner of evidence in containers: an image with ``servingplan`` and ``vllm``, as the Dockerfile's has them.

Both are folders of this machine. The operator renders all of a runner's pod, and a user cannot add to it: so it is the
API server that adds the folders, by a policy for pods of runners, and nothing else of them changes.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import servingplan
from e2e.node.cluster import RealCluster
from e2e.node.images import HOST_MOUNTS, HOST_VOLUMES
from e2e.vllm.containers import MOUNT, PYTHON
from e2e.vllm.engines import VARIABLES
from e2e.vllm.environment import Environment
from servingplan.localcluster.kubectl import Kubectl
from servingplan.rendering.runner import RUNNER_CONTAINER

PROGRAMS, PACKAGE = "/opt/runner", "/opt/servingplan"
"""Where the programs are in the image, and the package in a container."""

POLICY = {"name": "runners-see-the-machine"}
ADMISSION = "admissionregistration.k8s.io/v1"

Object = Mapping[str, Any]


def image(cluster: RealCluster) -> str:
    """An image with ``servingplan`` and ``vllm`` on its PATH, and without a user; its reference."""
    variables = "".join(f"ENV {name}={value}\n" for name, value in VARIABLES.items())
    path = f"COPY --chmod=755 opt/runner {PROGRAMS}\nENV PATH={PROGRAMS}:/usr/bin:/bin\n"
    here = f"env PYTHONPATH={PACKAGE} {shlex.quote(sys.executable)} -m servingplan"
    programs = {"servingplan": here, "vllm": f"{PYTHON} -m vllm.entrypoints.cli.main"}
    files = {f"opt/runner/{name}": f'#!/bin/sh\nexec {command} "$@"\n' for name, command in programs.items()}
    return cluster.host_image("localhost/runner:1", f"{variables}{path}", files)


def give_folders(kubectl: Kubectl, environment: Environment) -> None:
    """From now on each runner's pod sees what its image lacks."""
    package = Path(servingplan.__file__).parents[1]
    folders = {"environment": (MOUNT, environment.folder), "package": (PACKAGE, package)}
    same = {path for path in (environment.base, Path(sys.base_prefix), Path(sys.prefix)) if path.parts[1] != "usr"}
    folders |= {f"python-{number}": (str(path), path) for number, path in enumerate(sorted(same))}
    mounts = [{"name": name, "mountPath": mount, "readOnly": True} for name, (mount, _) in folders.items()]
    volumes = [{"name": name, "hostPath": {"path": str(path)}} for name, (_, path) in folders.items()]
    container = {"name": RUNNER_CONTAINER, "volumeMounts": [*HOST_MOUNTS, *mounts]}
    spec = {"containers": [container], "volumes": [*HOST_VOLUMES, *volumes]}
    kubectl.apply(*_policy({"spec": spec}))


def _policy(adds: Object) -> tuple[Object, Object]:
    """What adds fields to the pods of runners, and its binding."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "apiVersion": ADMISSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": POLICY,
        "spec": {
            "matchConstraints": {
                "resourceRules": [pods],
                "objectSelector": {"matchLabels": {"app.kubernetes.io/component": "runner"}},
            },
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _cel(adds, "Object")}}
            ],
        },
    }
    binding = {
        "apiVersion": ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": POLICY,
        "spec": {"policyName": POLICY["name"]},
    }
    return policy, binding


def _cel(value: Any, kind: str) -> str:
    """JSON as an expression of that type of the API server's."""
    if isinstance(value, Mapping):
        fields = (f"{name}: {_cel(each, f'{kind}.{name}')}" for name, each in value.items())
        return f"{kind}{{{', '.join(fields)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_cel(each, kind) for each in value)}]"
    return json.dumps(value)
