"""The names of Services, for pods that ask for them: a real DNS server behind the address that kubelets give out.

Tests ask for addresses otherwise; a runner asks for a Service by its name, as in ``http://qwen3-l40s-trial:8000``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.node.components import CLUSTER_DOMAIN, DNS_ADDRESS
from e2e.node.machine import program
from e2e.vllm.watches import Watch
from servingplan.localcluster.kubectl import Kubectl

SERVICE = {"name": "kube-dns", "namespace": "kube-system"}


class Names:
    """Answers for the Services of one namespace. A context manager. address: of the node, where it listens."""

    def __init__(self, kubectl: Kubectl, address: str, folder: Path) -> None:
        self._kubectl, self._address, self._folder = kubectl, address, folder
        self._watch = Watch(kubectl, "services", "", self._see)
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        known = self._folder / "names"
        known.mkdir()
        self._server = subprocess.Popen([
            program("dnsmasq"), "--keep-in-foreground", "--user=root", "--pid-file=", "--conf-file=/dev/null",
            f"--listen-address={self._address}", "--bind-interfaces", "--no-resolv", "--no-hosts",
            f"--local=/{CLUSTER_DOMAIN}/", f"--hostsdir={known}", f"--log-facility={self._folder / 'names.log'}",
        ])  # fmt: skip
        self._kubectl.apply(*_objects(self._address), namespace=SERVICE["namespace"])
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._watch.stop()
        self._server.kill()
        self._server.wait()

    def _see(self, found: Mapping[str, Any], deleted: bool) -> None:
        """The server looks at each file of the folder that changes."""
        name = f"{found['metadata']['name']}.{found['metadata']['namespace']}.svc.{CLUSTER_DOMAIN}"
        (self._folder / "names" / name).write_text("" if deleted else f"{found['spec']['clusterIP']} {name}\n")


def _objects(address: str) -> tuple[Mapping[str, Any], ...]:
    """The Service that has the address, and the server behind it."""
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": SERVICE,
        "spec": {"clusterIP": DNS_ADDRESS, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": SERVICE | {"labels": {"kubernetes.io/service-name": SERVICE["name"]}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return service, endpoints
