"""What a replica mounts: shared memory, compile caches, and the model where a volume holds it.

In: an `Engine`. Out: the pod's ``volumes`` and the container's ``volumeMounts``, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator

from servingplan.planning.target import Engine, Volume
from servingplan.rendering.engine import CACHE_MOUNT
from servingplan.rendering.metadata import Manifest

MODEL_MOUNT = "/models"
"""Where the model volume is mounted; ``engine.model`` is a path beneath it."""

SHARED_MEMORY_GIB_PER_GPU = 4
"""Ceiling of /dev/shm. The workers of a replica exchange tensors there, and the container runtime's 64 MiB make
them crash. It is a limit, not a reservation: what is used counts as the container's memory."""


def volumes(engine: Engine) -> list[Manifest]:
    """The pod's volumes."""
    return [{"name": name} | source for name, source, _ in _volumes(engine)]


def volume_mounts(engine: Engine) -> list[Manifest]:
    """The engine container's mounts."""
    return [{"name": name} | mount for name, _, mount in _volumes(engine)]


def _volumes(engine: Engine) -> Iterator[tuple[str, Manifest, Manifest]]:
    """Name, source and mount of each."""
    yield "cache", _cache(engine.cache_volume), _mount(CACHE_MOUNT, engine.cache_volume)
    if engine.model_volume is not None:
        yield "model", _claim(engine.model_volume), _mount(MODEL_MOUNT, engine.model_volume)
    size = f"{SHARED_MEMORY_GIB_PER_GPU * engine.parallelism.gpus}Gi"
    yield "shared-memory", {"emptyDir": {"medium": "Memory", "sizeLimit": size}}, {"mountPath": "/dev/shm"}  # noqa: S108 - the path that POSIX shared memory has, not a temporary file


def _cache(claim: Volume | None) -> Manifest:
    """Without a claim, an empty directory: it still outlives a crash of the container."""
    return {"emptyDir": {}} if claim is None else _claim(claim)


def _claim(volume: Volume) -> Manifest:
    source: Manifest = {"claimName": volume.claim_name}
    return {"persistentVolumeClaim": source | ({"readOnly": True} if volume.read_only else {})}


def _mount(path: str, volume: Volume | None) -> Manifest:
    read_only = volume is not None and volume.read_only
    return {"mountPath": path} | ({"readOnly": True} if read_only else {})
