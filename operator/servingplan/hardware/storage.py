"""What lies on disks beside the GPUs: versions of the model, and the metrics of its engines.

In: bytes of a checkpoint, counts. Out: bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

ENGINE_SERIES = 500
"""Time series of one engine: 450 were counted on a vLLM 0.32 under load, its HTTP metrics included."""

SAMPLE_BYTES = 2.0
"""Bytes of a sample in Prometheus, its index and write-ahead log included (Prometheus: 1 to 2 bytes a sample)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What is kept. versions: of the model, at the same time. retention: of metrics, scraped every `interval`."""

    versions: int
    retention: timedelta
    interval: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Bytes. model: one version. models: all of them. metrics: of all replicas."""

    model: int
    models: int
    metrics: int


def storage(model_bytes: int, replicas: int, keeping: Keeping) -> Storage:
    """Versions x checkpoint; replicas x series x retention / interval x 2 bytes."""
    samples = ENGINE_SERIES * (keeping.retention / keeping.interval)
    return Storage(
        model=model_bytes,
        models=keeping.versions * model_bytes,
        metrics=round(replicas * samples * SAMPLE_BYTES),
    )
