"""Two real nodes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.node import fixtures
from e2e.node.cluster import RealCluster
from e2e.node.fixtures import namespace  # noqa: F401 - a fixture

NODES, GPUS = 2, 8


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """Two nodes with room for whatever a test runs."""
    yield from fixtures.started(nodes=NODES, gpus=GPUS)


@pytest.fixture(scope="session")
def engine_image(cluster: RealCluster) -> str:
    """An image whose entry point behaves as ``vllm serve``; its pods mount the host's programs."""
    program = Path(__file__).with_name("engine.py")
    return cluster.host_image(
        "localhost/engine:1", 'ENTRYPOINT ["/usr/bin/python3", "/engine.py"]\n', {"engine.py": program}
    )
