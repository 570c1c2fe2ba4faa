"""One real cluster for all tests of a session, a namespace for each test.

``SERVINGPLAN_E2E_CONTEXT`` names a kubeconfig context of a cluster of your own: then nothing is started, and tests
that have nodes or pods played for them are skipped. Otherwise a local control plane is built once and started; with
pytest-xdist, one for each worker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

import pytest

from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.components import Options
from servingplan.localcluster.kubectl import Kubectl

CONTEXT = os.environ.get("SERVINGPLAN_E2E_CONTEXT", "")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster | ExternalCluster]:
    """The cluster of this session: started once, or the user's own."""
    if CONTEXT:
        yield ExternalCluster(CONTEXT, tmp_path_factory.mktemp("cluster"))
        return
    options = Options(audit=True, hpa_period=timedelta(seconds=2), evict_after=timedelta(seconds=5))
    with LocalCluster(options) as local:
        yield local


@pytest.fixture
def local_cluster(cluster: LocalCluster | ExternalCluster) -> Iterator[LocalCluster]:
    """The cluster, where nodes and pods are played as the test says; what it says ends with the test."""
    if not isinstance(cluster, LocalCluster):
        pytest.skip("needs simulated nodes and pods, and SERVINGPLAN_E2E_CONTEXT names a real cluster")
    yield cluster
    cluster.reset_times()


@pytest.fixture
def namespace(cluster: LocalCluster | ExternalCluster) -> Iterator[str]:
    """A fresh namespace, deleted after the test."""
    name = f"e2e-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    eventually(
        lambda: cluster.kubectl("get", "serviceaccounts", f"--namespace={name}", "-o", "name"),
        lambda names: "serviceaccount/default" in names,
        what=f"the default service account of {name}",
    )
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(cluster: LocalCluster | ExternalCluster, namespace: str) -> Kubectl:
    """The real kubectl in the test's namespace: returns standard output, raises `KubectlFailed` with what it said."""
    return cluster.kubectl.with_options(f"--namespace={namespace}")


@pytest.fixture
def gpu_nodes(local_cluster: LocalCluster) -> Iterator[Callable[..., list[str]]]:
    """Adds nodes for this test alone: ``gpu_nodes(3, gpus=2)`` returns their names."""
    added: list[str] = []

    def add(count: int, *, gpus: int = 1, labels: Mapping[str, str] | None = None) -> list[str]:
        names = local_cluster.add_nodes(count, gpus=gpus, labels=labels)
        added.extend(names)
        return names

    yield add
    for name in added:
        local_cluster.remove_node(name)
