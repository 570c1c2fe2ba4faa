"""The reads and writes of one evidence object's work: its pool, its Jobs, what their containers said.

In: what is to be so. Out: the cluster so. Nothing is sent that is so already, and what exists is changed
only in the state that was seen. A stop after any write leaves a state from which the next look goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller import evidence_seen as seen
from servingplan.controller.evidence_kinds import EvidenceKey
from servingplan.errors import NotFound, Refused
from servingplan.planning.work import JobState
from servingplan.rendering.evidence import work_id
from servingplan.rendering.measured import Measured, identity_from_json, measured_to_json
from servingplan.rendering.metadata import (
    EVIDENCE_KIND_LABEL,
    IDENTITY_ANNOTATION,
    MEASURED_ANNOTATION,
    REPORT_ANNOTATION,
    TRIAL_LABEL,
    WORK_ANNOTATION,
    Manifest,
    Owner,
)
from servingplan.rendering.runner import RunnerJob, job, job_labels
from servingplan.rendering.serving import Hardware, hardware_of
from servingplan.rendering.trial import Trial, trial_name, trial_objects

Object = Mapping[str, Any]


class NameTaken(Refused):
    """Somebody else has an object of a name that evidence needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What there is. pool: the trial pool's Deployment. jobs: of this work, by piece. others: older Jobs."""

    key: EvidenceKey
    owner: Owner
    work: str
    pool: Object | None
    jobs: Mapping[int, Object]
    others: Sequence[Object]

    @property
    def has_pool(self) -> bool:
        """Whether the pool is that of this work."""
        return self.pool is not None and seen.annotation(self.pool, WORK_ANNOTATION) == self.work


class EvidenceCluster:
    """Reads and writes for one evidence object at a time."""

    def __init__(self, *, client: KubernetesClient, installation: str) -> None:
        self._client = client
        self._installation = installation

    # ---- reads ----

    async def look(self, document: Object) -> Live:
        """What there is of an evidence object's work. Raises ClusterError."""
        metadata = document["metadata"]
        key = EvidenceKey(document["kind"], metadata["namespace"], metadata["name"])
        owner = Owner.of(document)
        pool = await self._client.find(_pool_ref(key))
        work = work_id(document)
        jobs = [each for each in await self._jobs(key) if seen.is_owned(each, owner.uid)]
        pieces = {piece: each for each in jobs if (piece := seen.piece_of(each, key.name, work))}
        return Live(
            key=key,
            owner=owner,
            work=work,
            pool=pool if pool is not None and seen.is_owned(pool, owner.uid) else None,
            jobs=pieces,
            others=[each for each in jobs if each not in pieces.values()],
        )

    async def _jobs(self, key: EvidenceKey) -> Sequence[Object]:
        selector = _selector(job_labels(key.name, key.kind))
        return (await self._client.list("batch/v1", "Job", key.namespace, label_selector=selector)).items

    async def job_pods(self, live: Live, piece: int) -> Sequence[Object]:
        """The pods of a piece's Job."""
        name = live.jobs[piece]["metadata"]["name"]
        return await self._pods(live.key.namespace, {"batch.kubernetes.io/job-name": name})

    async def pool_pods(self, live: Live) -> Sequence[Object]:
        """The pods of the trial pool."""
        labels = {TRIAL_LABEL: live.key.name, EVIDENCE_KIND_LABEL: live.key.kind}
        return await self._pods(live.key.namespace, labels)

    async def _pods(self, namespace: str, labels: Mapping[str, str]) -> Sequence[Object]:
        return (await self._client.list("v1", "Pod", namespace, label_selector=_selector(labels))).items

    async def _measured(self, live: Live) -> Measured:
        """What runs in the pool, as it says itself."""
        if live.pool is None:
            return Measured()
        pods = await self.pool_pods(live)
        hardware = await self._hardware(seen.node_of(pods))
        return Measured(
            identity=identity_from_json(seen.annotation(live.pool, IDENTITY_ANNOTATION)),
            image_digest=seen.image_digest(pods),
            product=hardware.product or None,
            driver=hardware.driver or None,
        )

    async def _hardware(self, node: str | None) -> Hardware:
        """What a node says of its accelerators, where we may read it."""
        found = None
        if node is not None:
            with suppress(Refused):
                found = await self._client.find(ObjectRef(api_version="v1", kind="Node", name=node))
        return Hardware() if found is None else hardware_of(found["metadata"].get("labels", {}))

    # ---- writes ----

    async def keep_report(self, live: Live, piece: int, report: str) -> Object:
        """Copy a report, and what was measured, to the Job, and return it: both go with the pods otherwise."""
        annotations = {REPORT_ANNOTATION: report, MEASURED_ANNOTATION: measured_to_json(await self._measured(live))}
        ref = ObjectRef.of(live.jobs[piece])
        return await self._client.merge_patch(ref, {"metadata": {"annotations": annotations}})

    async def bring_about(
        self, live: Live, *, trial: Trial | None = None, replicas: int = 0, run: RunnerJob | None = None
    ) -> None:
        """Make it so: first what is to stop, then the pool, then what is to run; without arguments, nothing runs.

        trial: the pool, where the work has one. run: the one Job that runs. Raises ClusterError, and NameTaken where a
        name is somebody else's.
        """
        stays = None if run is None else run.piece
        for each in [*live.others, *(found for piece, found in live.jobs.items() if piece != stays)]:
            if seen.job_state(each) is JobState.RUNNING:
                await self._suspend(each, suspend=True)
        await self._set_pool(live, trial, replicas)
        if run is None:
            return
        found = live.jobs.get(run.piece)
        if found is None:
            await self._create(job(run, live.owner, self._installation))
        elif seen.job_state(found) is JobState.SUSPENDED:
            await self._suspend(found, suspend=False)

    async def _suspend(self, found: Object, *, suspend: bool) -> None:
        version = found["metadata"]["resourceVersion"]
        await self._client.merge_patch(ObjectRef.of(found), {"spec": {"suspend": suspend}}, resource_version=version)

    async def _set_pool(self, live: Live, trial: Trial | None, replicas: int) -> None:
        if replicas and not live.has_pool and trial is not None:
            for manifest in trial_objects(trial, live.owner, replicas, self._installation):
                await self._apply(manifest, live.owner.uid)
        elif live.pool is not None and live.pool["spec"].get("replicas", 1) != replicas:
            ref, version = ObjectRef.of(live.pool), live.pool["metadata"]["resourceVersion"]
            await self._client.apply_scale(ref, replicas=replicas, resource_version=version, force=True)

    async def _apply(self, manifest: Manifest, uid: str) -> None:
        found = await self._client.find(ObjectRef.of(manifest))
        if found is not None and not seen.is_owned(found, uid):
            raise _taken(manifest)
        await self._client.apply(manifest, force=True)

    async def _create(self, manifest: Manifest) -> None:
        """A Job of that name that is not ours was not found by its labels."""
        if await self._client.find(ObjectRef.of(manifest)) is not None:
            raise _taken(manifest)
        await self._client.create(manifest)

    async def write_status(self, document: Object, status: Object) -> bool:
        """Write a status to that very state of the object; False where it went meanwhile. Raises Conflict."""
        metadata = {field: document["metadata"][field] for field in ("name", "namespace", "resourceVersion")}
        manifest = {"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": metadata}
        try:
            await self._client.apply_status({**manifest, "status": status})
        except NotFound:
            return False
        return True


def _pool_ref(key: EvidenceKey) -> ObjectRef:
    return ObjectRef(api_version="apps/v1", kind="Deployment", name=trial_name(key.name), namespace=key.namespace)


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _taken(manifest: Manifest) -> NameTaken:
    ref = ObjectRef.of(manifest)
    return NameTaken(
        f"{ref} exists and does not belong to this object, so it is not touched: delete it, or give this object "
        "another name"
    )
