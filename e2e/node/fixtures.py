"""The fixtures of `e2e.conftest` on real nodes; a conftest imports those that it wants.

``cluster`` is a `RealCluster`, so the chart's installation, namespaces, kubectl and operators of all e2e tests work as
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.node.cluster import RealCluster
from e2e.node.space import here

NEEDED = "needs real nodes: run it with `make e2e-node`, or as `python -m e2e.node pytest ...`, as root on Linux"


def started(*, nodes: int, gpus: int) -> Iterator[RealCluster]:
    """The body of a ``cluster`` fixture: real nodes with GPUs, or a skip where there is no space for them."""
    if here() is None:
        pytest.skip(NEEDED)
    with RealCluster(nodes=nodes, gpus=gpus) as cluster:
        yield cluster


@pytest.fixture
def namespace(cluster: RealCluster, namespace: str) -> Iterator[str]:
    """A fresh namespace; its pods are ended at once after the test, so that the next one has the GPUs."""
    yield namespace
    clear(cluster, namespace)


def clear(cluster: RealCluster, namespace: str) -> None:
    """Ends all pods of a namespace, without their grace; a namespace that is being deleted gets no new ones."""
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", f"--namespace={namespace}")
