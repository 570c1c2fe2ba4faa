"""One operator run that several tests look at: what takes an hour of the plan's clock happens once for all of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from e2e.support.eventually import eventually
from e2e.support.operator import Installation, Operator
from e2e.support.workloads import condition
from servingplan.controller.clock import AcceleratedClock
from servingplan.localcluster.audit import Write
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.kubectl import Kubectl


@dataclass(frozen=True, kw_only=True)
class Run:
    """An operator at work in a namespace of its own, under the chart's ServiceAccount."""

    cluster: LocalCluster
    namespace: str
    kubectl: Kubectl
    operator: Operator
    clock: AcceleratedClock
    user: str
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def plan(self, name: str) -> dict[str, Any]:
        """The plan as it is now."""
        found: dict[str, Any] = self.kubectl.json("get", "servingplan", name)
        return found

    def replicas(self, name: str, kind: str = "deployment") -> int:
        """The replicas that a workload is set to."""
        found: int = self.kubectl.json("get", kind, name)["spec"]["replicas"]
        return found

    def until(self, name: str, kind: str, status: str, reason: str = "", *, timeout_s: float = 60) -> Mapping[str, Any]:
        """Wait until a plan's condition has a status, and a reason where one is named; returns the condition."""

        def as_wanted(found: Mapping[str, Any] | None) -> bool:
            return found is not None and found["status"] == status and reason in ("", found["reason"])

        found = eventually(
            lambda: condition(self.plan(name), kind),
            as_wanted,
            what=f"{kind} {status} {reason} of {name}; log:\n{self.operator.log}",
            timeout_s=timeout_s,
        )
        assert found is not None
        return found

    def until_replicas(self, name: str, wanted: int | Callable[[int], bool], *, kind: str = "deployment") -> int:
        """Wait until a workload is set to so many replicas."""
        return eventually(
            lambda: self.replicas(name, kind),
            wanted if callable(wanted) else wanted.__eq__,
            what=f"replicas {wanted} of {kind} {name}; log:\n{self.operator.log}",
        )

    def writes(self, name: str = "", *, resource: str = "", subresource: str | None = None) -> list[Write]:
        """The operator's writes in this namespace so far, all that the API server was asked for."""
        return [
            write
            for write in self.cluster.audit.entries(since=self.began, user=self.user)
            if write.namespace == self.namespace
            and name in ("", write.name)
            and resource in ("", write.resource)
            and subresource in (None, write.subresource)
        ]


@contextmanager
def shared_run(
    cluster: LocalCluster,
    installation: Installation,
    folder: Path,
    clock: AcceleratedClock,
    *,
    prepare: Callable[[Kubectl], None] = lambda kubectl: None,
) -> Iterator[Run]:
    """An operator in a fresh namespace, until the end of the block. prepare: what must be there before it starts."""
    namespace = f"e2e-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", namespace)
    kubectl = cluster.kubectl.with_options(f"--namespace={namespace}")
    prepare(kubectl)
    operator = Operator(
        installation,
        folder,
        namespace=namespace,
        options=("--no-leader-election", f"--demo-clock={clock.describe()}"),
        env={"SERVINGPLAN_DEMO_CLOCK_ALLOWED": "yes"},
    )
    try:
        operator.until_ready()
        yield Run(
            cluster=cluster,
            namespace=namespace,
            kubectl=kubectl,
            operator=operator,
            clock=clock,
            user=f"system:serviceaccount:{installation.home}:operator-servingplan",
        )
    finally:
        if operator.process.poll() is None:
            operator.kill()
        cluster.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
