"""The real vLLM for tests, installed once for all sessions, and one real node whose pods run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from e2e.node import cgroups, fixtures
from e2e.node.cluster import RealCluster
from e2e.node.fixtures import namespace  # noqa: F401 - a fixture
from e2e.node.space import here
from e2e.support.prometheus import PROGRAM, Prometheus
from e2e.vllm import containers
from e2e.vllm.environment import Environment, ensure_installed
from e2e.vllm.falls import Watcher
from e2e.vllm.watches import Discovery
from servingplan.localcluster.kubectl import Kubectl

GPUS = 8
"""As many replicas have room on the node; what they run on is the processor."""

ENGINES_AT_ONCE = 4
"""Engines compute all the time: together they have as much of the processors as so many processes of the machine."""

SCRAPE_EVERY = "15s"
"""What the how-to advises."""


@pytest.fixture(scope="session")
def environment() -> Environment:
    """A Python that has vLLM, and the tiny model."""
    return ensure_installed()


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """One real node."""
    for cluster in fixtures.started(nodes=1, gpus=GPUS):
        place = here()
        assert place is not None
        cgroups.weigh(place.cgroup, ENGINES_AT_ONCE)
        yield cluster


@pytest.fixture(scope="session")
def vllm_image(cluster: RealCluster) -> str:
    """An image whose entry point is the real ``vllm serve``."""
    return containers.image(cluster)


@pytest.fixture
def prometheus(kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Prometheus]:  # noqa: F811
    """A real Prometheus that scrapes the pods of plans in the test's namespace."""
    if PROGRAM is None:
        pytest.skip("needs prometheus on the PATH; on Debian: apt-get install --no-install-recommends prometheus")
    with (
        Prometheus(tmp_path / "prometheus", scrape_every=SCRAPE_EVERY) as server,
        Discovery(kubectl, namespace, server),
    ):
        yield server


@pytest.fixture
def sources_file(prometheus: Prometheus, tmp_path: Path) -> Path:
    """A sources file that names it as ``default``."""
    file = tmp_path / "sources.yaml"
    file.write_text(yaml.safe_dump({"sources": {"default": {"url": prometheus.url}}}))
    return file


@pytest.fixture
def watch(cluster: RealCluster, kubectl: Kubectl, namespace: str) -> Iterator[Callable[..., Watcher]]:  # noqa: F811
    """Watches the pods of a workload: ``watch("chat", selector="app=chat")``."""
    begun: list[Watcher] = []

    def start(service: str, *, selector: str) -> Watcher:
        watcher = Watcher(kubectl, namespace, cluster.audit, selector=selector, service=service)
        begun.append(watcher.__enter__())
        return watcher

    yield start
    for watcher in begun:
        watcher.__exit__(None, None, None)
