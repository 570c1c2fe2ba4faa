"""Second writers as tests play them, and a record of everything that replicas were set to meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes import client, config, watch
from urllib3.exceptions import HTTPError

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class Writer:
    """Another manager of replicas: ``Writer(kubeconfig, namespace, "gitops")``."""

    def __init__(self, kubeconfig: Path, namespace: str, manager: str) -> None:
        self._apps = client.AppsV1Api(config.new_client_from_config(str(kubeconfig)))
        self._namespace = namespace
        self._manager = manager

    def scale(self, name: str, replicas: int) -> None:
        """Set a Deployment's replicas through ``/scale``, as ``kubectl scale`` does."""
        self._apps.patch_namespaced_deployment_scale(
            name,
            self._namespace,
            {"spec": {"replicas": replicas}},
            field_manager=self._manager,
            _content_type=MERGE,
        )

    def apply(self, name: str, replicas: int | None) -> None:
        """Server-side apply of a Deployment with these replicas; None drops the field."""
        body: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
        if replicas is not None:
            body["spec"] = {"replicas": replicas}
        self._apps.patch_namespaced_deployment(
            name, self._namespace, body, field_manager=self._manager, force=True, _content_type=APPLY
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a Deployment was set to at a real instant."""

    time: datetime
    replicas: int


@dataclass(kw_only=True)
class Record:
    """All that the Deployments of a namespace were set to, in order."""

    seen: dict[str, list[Seen]] = field(default_factory=dict)

    def values(self, name: str, *, since: datetime | None = None) -> list[int]:
        """The values of a Deployment's replicas one after the other, without repetitions in a row."""
        values: list[int] = []
        for seen in self.seen.get(name, ()):
            if (since is None or seen.time >= since) and values[-1:] != [seen.replicas]:
                values.append(seen.replicas)
        return values

    def first(self, name: str, value: int, *, since: datetime) -> datetime:
        """The real instant at which a Deployment was first seen with a value."""
        return next(seen.time for seen in self.seen[name] if seen.time >= since and seen.replicas == value)

    def add(self, deployment: Any) -> None:
        """Remember a Deployment as it is now."""
        seen = Seen(time=datetime.now(UTC), replicas=deployment.spec.replicas)
        self.seen.setdefault(deployment.metadata.name, []).append(seen)


@contextmanager
def recorded(kubeconfig: Path, namespace: str) -> Iterator[Record]:
    """Watches the Deployments of a namespace until the end of the block."""
    apps = client.AppsV1Api(config.new_client_from_config(str(kubeconfig)))
    record, stream, ended = Record(), watch.Watch(), threading.Event()

    def run() -> None:
        try:
            for event in stream.stream(apps.list_namespaced_deployment, namespace, timeout_seconds=600):
                record.add(event["object"])
        except HTTPError:
            if not ended.is_set():
                raise

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield record
    finally:
        ended.set()
        stream.stop()


@contextmanager
def every(seconds: float, act: Callable[[], object]) -> Iterator[Callable[[], int]]:
    """Calls ``act`` at a fixed pace in the background until the end of the block; gives how often it did so far."""
    stop, done = threading.Event(), [0]

    def run() -> None:
        while not stop.wait(seconds):
            act()
            done[0] += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: done[0]
    finally:
        stop.set()
        thread.join(timeout=30)
