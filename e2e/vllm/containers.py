"""The real vLLM in containers: an image without files of its own, and plans whose engines run it.

The environment and the interpreter's own library are folders of the machine that the pods mount, so nothing of two
gigabytes is copied. Everything else of the pods is what the operator renders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e.node.cluster import RealCluster
from e2e.node.images import on_the_host
from e2e.vllm.engines import MAX_MODEL_LEN, MAX_NUM_SEQS, ON_A_CPU, PROGRAM, SERVED_NAME, VARIABLES
from e2e.vllm.environment import Environment
from servingplan.rendering.engine import ENGINE_CONTAINER
from support.specs import document

CAPACITY = 5
"""Requests/s of a replica, as plans state it: a schedule of so many times as much asks for so many replicas."""

MOUNT = "/engine"
"""Where the environment is in a container."""

PYTHON = f"{MOUNT}/venv/bin/python"
MODEL = f"{MOUNT}/model"
SCRATCH = "/tmp"  # noqa: S108 - the container's own

Object = dict[str, Any]


def image(cluster: RealCluster) -> str:
    """An image whose entry point is ``vllm serve``, as that of vLLM's own image is; its reference."""
    entry = ", ".join(f'"{word}"' for word in (PYTHON, *PROGRAM))
    path = f"ENV PATH={MOUNT}/venv/bin:/usr/bin:/bin\n"
    return cluster.host_image("localhost/vllm:1", f"{path}ENTRYPOINT [{entry}]\n")


def pod_template(environment: Environment, container: str = ENGINE_CONTAINER, **variables: str) -> Object:
    """A pod template by which a container of the image finds vLLM. variables: further ones of its environment."""
    base = environment.base
    places = {"environment": (MOUNT, environment.folder)}
    if not base.is_relative_to("/usr"):
        places["python"] = (str(base), base)
    everything = {**VARIABLES, "HOME": SCRATCH, **variables}
    found = on_the_host(
        container,
        env=[{"name": name, "value": value} for name, value in everything.items()],
        volumeMounts=[
            *({"name": name, "mountPath": mount, "readOnly": True} for name, (mount, _) in places.items()),
            {"name": "scratch", "mountPath": SCRATCH},
        ],
    )
    found["spec"]["volumes"] += [
        *({"name": name, "hostPath": _folder(path)} for name, (_, path) in places.items()),
        {"name": "scratch", "emptyDir": {}},
    ]
    return found


def _folder(path: Path) -> Mapping[str, str]:
    return {"path": str(path), "type": "Directory"}


def engine(environment: Environment, image: str, *more: str, **changes: Any) -> Object:
    """``spec.engine`` for the tiny model on a CPU, with further arguments."""
    fields = {
        "image": image,
        "model": MODEL,
        "servedModelName": SERVED_NAME,
        "maxModelLen": MAX_MODEL_LEN,
        "maxNumSeqs": MAX_NUM_SEQS,
        "dtype": "bfloat16",
        "extraArgs": [*ON_A_CPU, *more],
        "startTimeout": "10m",
        "drainTimeout": "2m",
        # Without a request a busy machine would hardly let them run.
        "resources": {"requests": {"cpu": "200m"}},
        "podTemplate": pod_template(environment),
    }
    return fields | changes


def plan(name: str, namespace: str, engine: Object, *, replicas: int, **spec: Any) -> Object:
    """A plan for so many replicas at any time, which Prometheus is asked about."""
    fields: Object = {
        "engine": engine,
        "schedule": always(replicas),
        "capacity": {"requestsPerSecond": CAPACITY},
        "reserve": {"replicas": 0},
        "bounds": {"minReplicas": 1, "maxReplicas": 8},
        "leadTime": {"declared": "2m"},
        "scaleDown": {"step": 1, "every": "15s", "stabilization": "1m"},
        "feedback": {"prometheus": {}, "maxExtra": 0},
    }
    return document(name, namespace, **fields | spec)


def always(replicas: int) -> Object:
    """A schedule that asks for so many replicas at any time."""
    return {"timeZone": "Europe/Berlin", "base": {"requestsPerSecond": CAPACITY * replicas}}


def undrained_deployment(environment: Environment, image: str, name: str, arguments: Sequence[str]) -> Object:
    """A Deployment as one writes it who has read no further than vLLM's defaults: no hook, no label to take away."""
    template = pod_template(environment, "vllm")
    (container,) = template["spec"]["containers"]
    container |= {
        "image": image,
        "args": [
            MODEL,
            f"--served-model-name={SERVED_NAME}",
            f"--max-model-len={MAX_MODEL_LEN}",
            *ON_A_CPU,
            *arguments,
        ],
        "ports": [{"name": "http", "containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 2},
    }
    template |= {"metadata": {"labels": {"app": name}}}
    template["spec"]["enableServiceLinks"] = False
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def undrained_service(name: str) -> Object:
    """The Service of such a Deployment."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 8000, "targetPort": "http"}]},
    }
