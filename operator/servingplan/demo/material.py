"""What a demo applies: a plan with its ConfigMaps, and what a plan expects to be there already.

In: a FILE of the user's own, or nothing for the worked example that ships with the package. Out: plain objects for
one namespace. Pure but for reading the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, TextIO

from servingplan.api.documents import PlanDocument, read_plans
from servingplan.api.references import Kind
from servingplan.api.resolve import resolve
from servingplan.errors import InputError, InvalidPlan, Problem, UsageError
from servingplan.localcluster.nodes import GPU
from servingplan.planning.plan import Plan
from servingplan.planning.target import TargetRef
from servingplan.rendering.deployment import pod_template
from servingplan.rendering.metadata import plan_pods

EXAMPLE = "worked-example.yaml"

IDLE_IMAGE = "registry.k8s.io/pause:3.10"
"""A container that does nothing, of the project itself: most clusters have it already."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """One plan, resolved, as the demo applies it. config_maps: their data, by name."""

    plan: Plan
    document: Json
    config_maps: Mapping[str, Mapping[str, str]]

    def prerequisites(self, replicas: int) -> tuple[Json, ...]:
        """What must be there before the plan: its ConfigMaps, and the workload that it names."""
        maps = (_config_map(self.plan.namespace, name, data) for name, data in self.config_maps.items())
        target = self.plan.target
        return (*maps, *((_workload(self.plan, target, replicas),) if isinstance(target, TargetRef) else ()))

    def claims(self) -> tuple[str, ...]:
        """Names of the volume claims that the engine's pods mount."""
        engine = self.plan.engine
        if engine is None:
            return ()
        volumes = pod_template(plan_pods(self.plan.name), engine)["spec"].get("volumes", ())
        names = (volume.get("persistentVolumeClaim", {}).get("claimName", "") for volume in volumes)
        return tuple(sorted({name for name in names if name}))

    def node_labels(self) -> Mapping[str, str]:
        """Labels of nodes that the engine's pods insist on."""
        template = self.plan.engine.pod_template if self.plan.engine is not None else {}
        selector: Mapping[str, str] = template.get("spec", {}).get("nodeSelector", {})
        return selector


def example_text() -> str:
    """The worked example, as it ships with the package."""
    return resources.files(__package__).joinpath(EXAMPLE).read_text(encoding="utf-8")


def material(file: str | None, *, namespace: str | None, idle: bool, standard_input: TextIO) -> Material:
    """The plan of a file, or the worked example.

    namespace: where it goes instead of its own. idle: the worked example gets a workload that does nothing in place
    of its engine, for clusters whose nodes have no GPUs. Raises InputError with all problems, UsageError where the
    file holds several plans or names a workload that the demo cannot play.
    """
    found = _only_plan(file, standard_input)
    document: Json = {key: value for key, value in found.document.body.items() if key != "status"}
    document["metadata"] = {
        "name": found.document.name,
        "namespace": namespace or found.document.namespace,
        **{key: found.document.body["metadata"][key] for key in _kept(found.document.body)},
    }
    if idle and file is None:
        document["spec"] = _on_idle_workload(document)
    try:
        plan = resolve(document, found.references)
    except InvalidPlan as error:
        where = f"{found.document.file}:{found.document.line}: "
        problems = (Problem(path=where + p.path, reason=p.reason, message=p.message) for p in error.problems)
        raise InputError(*problems) from error
    _check_playable(plan)
    config_maps = {
        reference.name: data
        for reference, data in found.references.items()
        if reference.kind is Kind.CONFIG_MAP and data is not None
    }
    return Material(plan=plan, document=document, config_maps=config_maps)


def _kept(body: Mapping[str, Any]) -> list[str]:
    return [key for key in ("labels", "annotations") if body["metadata"].get(key)]


def _only_plan(file: str | None, standard_input: TextIO) -> PlanDocument:
    if file is not None:
        plans = read_plans([file], standard_input=standard_input)
    else:
        with resources.as_file(resources.files(__package__).joinpath(EXAMPLE)) as path:
            plans = read_plans([str(path)], standard_input=standard_input)
    if len(plans) > 1:
        names = ", ".join(plan.document.name for plan in plans)
        raise UsageError(f"{file} holds several plans ({names}): the demo plays one, give a file that holds one")
    return plans[0]


def _on_idle_workload(document: Mapping[str, Any]) -> Json:
    spec = {key: value for key, value in document["spec"].items() if key != "engine"}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": document["metadata"]["name"]}
    return {"targetRef": target, "gpusPerReplica": 1, **spec}


def _check_playable(plan: Plan) -> None:
    target = plan.target
    if isinstance(target, TargetRef):
        if (target.api_version, target.kind) != ("apps/v1", "Deployment"):
            raise UsageError(
                f"{plan.key} scales the {target.kind} {target.name}; the demo plays engines and Deployments only"
            )
    elif target.accelerator_resource != GPU:
        raise UsageError(
            f"{plan.key} asks for {target.accelerator_resource}; the nodes of the demo have {GPU} only, "
            "so set spec.engine.accelerator.resource to that in a copy"
        )


def _config_map(namespace: str, name: str, data: Mapping[str, str]) -> Json:
    metadata = {"name": name, "namespace": namespace, "labels": {"servingplan.dev/config": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def _workload(plan: Plan, target: TargetRef, replicas: int) -> Json:
    labels = {"app.kubernetes.io/name": target.name}
    container = {"name": "idle", "image": IDLE_IMAGE}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": target.name, "namespace": plan.namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def volume_objects(namespace: str, claims: Sequence[str]) -> tuple[Json, ...]:
    """A bound volume for each claim, so that pods which mount it can be scheduled."""
    return tuple(thing for claim in claims for thing in _volume(namespace, claim))


def _volume(namespace: str, claim: str) -> tuple[Json, Json]:
    size, modes, name = "1Ti", ["ReadWriteMany"], f"demo-{claim}"
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": modes,
            "storageClassName": "",
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": f"/demo/{claim}"},
        },
    }
    wanted = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {
            "accessModes": modes,
            "storageClassName": "",
            "volumeName": name,
            "resources": {"requests": {"storage": size}},
        },
    }
    return volume, wanted
