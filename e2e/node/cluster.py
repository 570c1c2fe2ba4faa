"""`RealCluster`: the local control plane with real nodes, for tests that run in a space (see `space`).

A node has its own containerd and kubelet, an address and a range of pod addresses; all share one network, so a test
reaches pods and Services by their addresses. GPUs are an extended resource that is written into the node's status.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.node import cgroups, components
from e2e.node.components import NodePlaces
from e2e.node.images import HOST_IMAGE, Images, host_files, load
from e2e.node.inside import LINK
from e2e.node.machine import program
from e2e.node.space import here
from e2e.support.eventually import eventually
from e2e.support.workloads import is_ready
from servingplan.localcluster.audit import AuditLog
from servingplan.localcluster.build import Programs, ensure_built
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.components import Options
from servingplan.localcluster.kubectl import Kubectl
from servingplan.localcluster.nodes import GPU

ACCOUNT, ACCOUNT_NAMESPACE = "node", "kube-system"
IMAGES = "images"
ROLES = ("system:node", "system:node-proxier")
SILENCE = timedelta(seconds=components.LEASE_S)
EVICT_AFTER = timedelta(minutes=5)


class RealNode:
    """One node: its kubelet and containerd, and what a test can do to it."""

    def __init__(self, cluster: RealCluster, places: NodePlaces) -> None:
        self._cluster, self._places = cluster, places
        self.name = places.name

    def start(self) -> Self:
        """Starts the runtime and the kubelet; waits until the node is ready."""
        places, control = self._places, self._cluster.control
        places.folder.mkdir()
        _run("ip", "address", "add", f"{places.address}/32", "dev", LINK)
        cgroups.make(places.cgroup_root)
        control.run(f"containerd-{self.name}", components.containerd(places))
        eventually(self._runtime_answers, what=f"containerd of {self.name}; its log is in {control.folder}")
        for archive in self._cluster.images.archives.values():
            load(places.socket, archive)
        self._kubelet = control.run(
            f"kubelet-{self.name}", components.kubelet(self._cluster.programs.controlplane, places)
        )
        eventually(self.is_ready, what=f"a ready {self.name}; its kubelet's log is in {control.folder}")
        return self

    @property
    def object(self) -> Mapping[str, Any]:
        """The Node as it is now; empty until the kubelet has registered it."""
        listed = self._cluster.kubectl.json("get", "nodes", f"--field-selector=metadata.name={self.name}")["items"]
        return listed[0] if listed else {}

    def is_ready(self) -> bool:
        """Whether pods can be scheduled onto it."""
        found = self.object
        return bool(found) and is_ready(found) and not found["spec"].get("taints")

    def set_gpus(self, count: int) -> None:
        """Advertises GPUs, which are then counted out to pods; the kubelet keeps what it does not know of."""
        patch = [{"op": "add", "path": f"/status/capacity/{GPU.replace('/', '~1')}", "value": str(count)}]
        self._cluster.kubectl(
            "patch", "node", self.name, "--subresource=status", "--type=json", "-p", json.dumps(patch)
        )
        eventually(
            lambda: self.object["status"]["allocatable"].get(GPU),
            lambda found: found == str(count),
            what=f"{count} GPUs to be had on {self.name}",
        )

    def load(self, archive: Path) -> None:
        """Imports an image that `Images` built."""
        load(self._places.socket, archive)

    def stop_kubelet(self) -> None:
        """The kubelet falls silent; the containers go on, as on a node that lost its way to the control plane."""
        os.kill(self._kubelet, signal.SIGSTOP)

    def go_on(self) -> None:
        """The kubelet goes on where it was stopped."""
        os.kill(self._kubelet, signal.SIGCONT)

    def _runtime_answers(self) -> bool:
        asked = subprocess.run(
            [program("ctr"), f"--address={self._places.socket}", "version"], capture_output=True, check=False
        )
        return asked.returncode == 0


class RealCluster:
    """A control plane and real nodes. A context manager; with the space, all of it ends.

    gpus: of each node. Raises RuntimeError outside of a space, and for a second one in the same: networks would meet.
    """

    def __init__(self, *, nodes: int, gpus: int) -> None:
        place = here()
        if place is None:
            raise RuntimeError("real nodes run in a space: python -m e2e.node COMMAND")
        if (place.folder / IMAGES).exists():
            raise RuntimeError("this space has had a cluster already: start a second space for a second cluster")
        self._place, self._count, self._gpus = place, nodes, gpus
        self.images = Images(place.folder / IMAGES)
        self.nodes: list[RealNode] = []
        self.control = LocalCluster(
            Options(
                simulated=False,
                audit=True,
                hpa_period=timedelta(seconds=2),
                silence=SILENCE,
                evict_after=EVICT_AFTER,
            )
        )

    def __enter__(self) -> Self:
        self.programs: Programs = ensure_built()
        self.control.__enter__()
        try:
            self._account = self._account_for_nodes()
            self.images.pause(components.PAUSE)
            for _ in range(self._count):
                self.add_node(gpus=self._gpus)
        except BaseException:
            self.control.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.control.stop()

    # ---- what any cluster of the tests offers ----

    @property
    def kubectl(self) -> Kubectl:
        """The administrator's."""
        return self.control.kubectl

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.control.kubeconfig

    @property
    def folder(self) -> Path:
        """Logs of all components (``NAME.log``), keys, kubeconfigs."""
        return self.control.folder

    @property
    def audit(self) -> AuditLog:
        """Who wrote what."""
        return self.control.audit

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Writes a kubeconfig with a fresh token of a service account, and returns its path."""
        return self.control.kubeconfig_for(namespace, service_account)

    def kubectl_as(self, kubeconfig: Path) -> Kubectl:
        """``kubectl`` with another kubeconfig."""
        return self.control.kubectl_as(kubeconfig)

    # ---- nodes and images ----

    def add_node(self, *, gpus: int) -> RealNode:
        """Starts one more node, with so many GPUs and all images so far."""
        places = NodePlaces(
            number=len(self.nodes) + 1,
            space=self._place.folder,
            cgroup=self._place.cgroup,
            kubeconfig=self._account,
            client_ca=self.folder / "pki" / "ca.crt",
        )
        node = RealNode(self, places).start()
        if not self.nodes:
            self.control.run("kube-proxy", components.kube_proxy(self.programs.controlplane, places))
        self.nodes.append(node)
        node.set_gpus(gpus)
        return node

    def image(self, name: str, containerfile: str, files: Mapping[str, Path | str] | None = None) -> str:
        """Builds an image and gives it to all nodes; its reference, as in ``localhost/engine:1``.

        files: of the build's context, by their path in it; text, or the path of a file on this machine.
        """
        archive = self.images.build(name, containerfile, files or {})
        for node in self.nodes:
            node.load(archive)
        return name

    def host_image(self, name: str, containerfile: str = "", files: Mapping[str, Path | str] | None = None) -> str:
        """An image that runs the host's programs, where its pod mounts them (`images.on_the_host`)."""
        return self.image(name, HOST_IMAGE + containerfile, host_files() | dict(files or {}))

    def _account_for_nodes(self) -> Path:
        self.kubectl("create", "serviceaccount", ACCOUNT, f"--namespace={ACCOUNT_NAMESPACE}")
        for role in ROLES:
            binding = f"{ACCOUNT}:{role}"
            subject = f"--serviceaccount={ACCOUNT_NAMESPACE}:{ACCOUNT}"
            self.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={role}", subject)
        return self.kubeconfig_for(ACCOUNT_NAMESPACE, ACCOUNT)


def _run(name: str, *arguments: str) -> None:
    subprocess.run([program(name), *arguments], check=True)
