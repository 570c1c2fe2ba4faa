"""One real cluster for all tests of a session, a namespace for each test.

``SERVINGPLAN_E2E_CONTEXT`` names a kubeconfig context of a cluster of your own: then nothing is started, and tests
that have nodes or pods played for them are skipped. Otherwise a local control plane is built once and started; with
pytest-xdist, one for each worker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from e2e.support.cli import Cli, run
from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from e2e.support.loop import Loop
from e2e.support.operator import Installation, Operator
from servingplan import __version__
from servingplan.clients.connection import Connection
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.controller.clock import AcceleratedClock
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.components import Options
from servingplan.localcluster.kubectl import Kubectl
from support.charts import CHART, run_helm

CONTEXT = os.environ.get("SERVINGPLAN_E2E_CONTEXT", "")
MEASURED = "measured"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keeps a line about what was measured, for the end of the session, whichever of its processes ran the test."""
    return partial(record_property, MEASURED)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was measured."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = [line for report in reports for name, line in report.user_properties if name == MEASURED]
    if lines:
        terminalreporter.section(MEASURED)
        terminalreporter.write_line("\n".join(lines))


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
    cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def kubectl(cluster: LocalCluster | ExternalCluster, namespace: str) -> Kubectl:
    """The real kubectl in the test's namespace: returns standard output, raises `KubectlFailed` with what it said."""
    return cluster.kubectl.with_options(f"--namespace={namespace}")


@pytest.fixture
async def client(cluster: LocalCluster | ExternalCluster) -> AsyncIterator[KubernetesClient]:
    """A person who applies by program."""
    connection = Connection(load_endpoint(kubeconfig=cluster.kubeconfig), user_agent=f"test/{__version__}")
    yield KubernetesClient(session=connection.session, server=connection.server, field_manager="user")
    await connection.close()


@pytest.fixture
def cli(cluster: LocalCluster | ExternalCluster, namespace: str) -> Cli:
    """The program against the test's namespace."""
    return lambda *arguments: run(*arguments, "--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace)


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


@pytest.fixture
def start_loop(
    kubectl: Kubectl, namespace: str, tmp_path: Path, gpu_nodes: Callable[..., list[str]]
) -> Iterator[Callable[..., Loop]]:
    """Starts engines, and Prometheus, for the pods of the test's namespace: ``loop = start_loop(clock, gpus=24)``.

    each: GPUs of a node. at_pods, past: as for `Loop`.
    """
    with ExitStack() as begun:

        def start(
            clock: AcceleratedClock,
            *,
            gpus: int,
            each: int = 4,
            at_pods: bool = False,
            past: Iterable[str] | None = None,
        ) -> Loop:
            gpu_nodes(gpus // each, gpus=each)
            return begun.enter_context(Loop(kubectl, namespace, tmp_path, clock, at_pods=at_pods, past=past))

        yield start


@pytest.fixture(scope="session")
def installation(cluster: LocalCluster | ExternalCluster) -> Iterator[Installation]:
    """The chart, installed for all namespaces, without its pods: tests run the operator under its ServiceAccount."""
    home = f"servingplan-{secrets.token_hex(4)}"
    kubeconfig = f"--kubeconfig={cluster.kubeconfig}"
    cluster.kubectl("create", "namespace", home)
    run_helm(
        "install", "operator", str(CHART), "--take-ownership", "--set=replicas=0", f"--namespace={home}", kubeconfig
    )
    cluster.kubectl("wait", "--for=condition=Established", "crd/servingplans.servingplan.dev")
    yield Installation(kubeconfig=cluster.kubeconfig_for(home, "operator-servingplan"), home=home)
    run_helm("uninstall", "operator", f"--namespace={home}", kubeconfig)
    cluster.kubectl("delete", "namespace", home, "--wait=false")


@pytest.fixture
def run_operator(installation: Installation, namespace: str, tmp_path: Path) -> Iterator[Callable[..., Operator]]:
    """Starts operators for the test's namespace: ``run_operator(clock=..., leader_election=False)``.

    clock: a demo clock; the same one for every process that is to go on where another stopped. Waits until it is
    ready, unless ``wait=False``.
    """
    started: list[Operator] = []

    def start(
        *options: str, clock: AcceleratedClock | None = None, leader_election: bool = False, wait: bool = True
    ) -> Operator:
        elected = "--leader-election" if leader_election else "--no-leader-election"
        demo = (f"--demo-clock={clock.written()}",) if clock else ()
        operator = Operator(
            installation,
            tmp_path,
            namespace=namespace,
            options=(elected, *demo, *options),
            env={"SERVINGPLAN_DEMO_CLOCK_ALLOWED": "yes"} if clock else {},
        )
        started.append(operator)
        return operator.until_ready() if wait else operator

    yield start
    for operator in started:
        if operator.process.poll() is None:
            operator.kill()
