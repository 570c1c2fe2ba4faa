"""A trial pool: an engine of a plan, run beside the plan's own for as long as evidence is gathered.

In: the engine, and what it runs for. Out: a Service and a Deployment with their replicas. The pods carry the trial's
label and no plan's, so that no plan counts them and no plan's Service sends them requests.
"""

from __future__ import annotations

from dataclasses import dataclass

from servingplan.planning.target import Engine
from servingplan.rendering.deployment import pod_template, progress_deadline_s
from servingplan.rendering.identity import identity
from servingplan.rendering.measured import identity_to_json
from servingplan.rendering.metadata import (
    EVIDENCE_KIND_LABEL,
    IDENTITY_ANNOTATION,
    INSTALLATION_LABEL,
    SERVING_LABEL,
    TRIAL_LABEL,
    WORK_ANNOTATION,
    Manifest,
    Owner,
    PodLabels,
    owner_reference,
    recommended_labels,
)
from servingplan.rendering.service import service_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An engine to run for evidence. work: what it is to do; the pool keeps its engine until that is over."""

    namespace: str
    evidence: str
    work: str
    engine: Engine

    @property
    def name(self) -> str:
        """Of the Deployment and of the Service."""
        return trial_name(self.evidence)


def trial_name(evidence: str) -> str:
    """The name of a trial pool's objects."""
    return f"{evidence}-trial"


def trial_objects(trial: Trial, owner: Owner, replicas: int, installation: str) -> tuple[Manifest, Manifest]:
    """The Service and the Deployment, in the order to apply them. owner: the evidence; they go with it."""
    pods = _pods(trial, owner)
    metadata: Manifest = {
        "name": trial.name,
        "namespace": trial.namespace,
        "labels": {**recommended_labels(trial.name), INSTALLATION_LABEL: installation, **pods.selector},
        "ownerReferences": [owner_reference(owner)],
    }
    annotations = {
        WORK_ANNOTATION: trial.work,
        IDENTITY_ANNOTATION: identity_to_json(identity(trial.engine)),
    }
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata, "annotations": annotations},
        "spec": {
            "progressDeadlineSeconds": progress_deadline_s(trial.engine),
            "replicas": replicas,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": dict(pods.selector)},
            # Another engine takes the accelerators of the one before: there may be no others.
            "strategy": {"type": "Recreate"},
            "template": pod_template(pods, trial.engine),
        },
    }
    return service_of(trial.engine, metadata, pods.serving), deployment


def _pods(trial: Trial, owner: Owner) -> PodLabels:
    selects = {TRIAL_LABEL: trial.evidence, EVIDENCE_KIND_LABEL: owner.kind}
    return PodLabels(instance=trial.name, selector=selects, serving={**selects, SERVING_LABEL: "true"})
