"""The command lines and configuration files of a real node: containerd, kubelet and kube-proxy.

In: where a node's things lie. Out: one command for each, in the order of their start. Touches nothing but the
configuration files; see `servingplan.localcluster.components` for the control plane's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.node.machine import CNI_PLUGINS, program
from servingplan.localcluster.components import POD_RANGE

PAUSE = "localhost/pause:1"
"""What holds a pod's namespaces; built from a static busybox, since nothing can be pulled here."""

STATUS_EVERY_S = 2
"""How often a kubelet reports and renews its lease: a tenth of Kubernetes', as its silence must be seen sooner."""
LEASE_S = STATUS_EVERY_S * 4
FIRST_PORT = 10350
DNS_ADDRESS, CLUSTER_DOMAIN = "10.96.0.10", "cluster.local"
PROXY_HEALTH, PROXY_METRICS = 10256, 10249


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlaces:
    """Where one node's things are. number: from 1; names, addresses and ports follow from it."""

    number: int
    space: Path
    cgroup: str
    kubeconfig: Path
    client_ca: Path

    @property
    def name(self) -> str:
        """The node's name."""
        return f"node-{self.number}"

    @property
    def folder(self) -> Path:
        """Everything of the node."""
        return self.space / self.name

    @property
    def socket(self) -> Path:
        """Containerd's."""
        return self.folder / "containerd.sock"

    @property
    def address(self) -> str:
        """The node's own address."""
        return f"10.99.0.{self.number}"

    @property
    def pods(self) -> str:
        """The addresses of its pods."""
        return f"10.244.{self.number}.0/24"

    @property
    def cgroup_root(self) -> str:
        """Below which the cgroups of its pods are."""
        return f"{self.cgroup}/{self.name}"


def containerd(places: NodePlaces) -> list[str]:
    """One runtime for each node: two kubelets on one would end each other's pods."""
    folder = places.folder
    network = {
        "cniVersion": "0.4.0",
        "name": places.name,
        "plugins": [
            {
                "type": "bridge",
                "bridge": f"pods{places.number}",
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(folder / "addresses"),
                    "ranges": [[{"subnet": places.pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    (folder / "cni").mkdir(parents=True)
    _write(folder / "cni" / "10-pods.conflist", network)
    (folder / "containerd.toml").write_text(
        f"""\
version = 2
root = "{folder / "images"}"
state = "{folder / "state"}"

[grpc]
  address = "{places.socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # Lowering a score needs a capability that root may lack; profiles would be the whole machine's.
  restrict_oom_score_adj = true
  disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{CNI_PLUGINS}"
  conf_dir = "{folder / "cni"}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{folder / "opt"}"
"""
    )
    return [program("containerd"), f"--config={folder / 'containerd.toml'}"]


def kubelet(controlplane: Path, places: NodePlaces) -> list[str]:
    """Registers the node; whoever has a certificate of the cluster may read logs and execute."""
    folder = places.folder
    resolver = folder / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": places.address,
        "port": FIRST_PORT + places.number,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(places.client_ca)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{places.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{places.cgroup_root}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "50Mi"},
        # Images are imported, not pulled: what was collected as unused could not be had again.
        "imageGCHighThresholdPercent": 100,
        "resolvConf": str(resolver),
        # Nobody answers there until a test wants names; without an address pods of the default policy get a warning.
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "podLogsDir": str(folder / "logs"),
        "volumePluginDir": str(folder / "plugins"),
        "nodeStatusUpdateFrequency": f"{STATUS_EVERY_S}s",
        "nodeStatusReportFrequency": f"{STATUS_EVERY_S}s",
        "nodeLeaseDurationSeconds": LEASE_S,
        "syncFrequency": "5s",
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
        "maxPods": 100,
    }
    return [
        *(str(controlplane), "kubelet", f"--config={_write(folder / 'kubelet.yaml', config)}"),
        *(f"--kubeconfig={places.kubeconfig}", f"--hostname-override={places.name}", f"--node-ip={places.address}"),
        f"--root-dir={folder / 'kubelet'}",
    ]


def kube_proxy(controlplane: Path, places: NodePlaces) -> list[str]:
    """One for all nodes: they share the network that it routes Services in."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "clientConnection": {"kubeconfig": str(places.kubeconfig)},
        # Zero leaves the machine's limits as they are.
        "conntrack": {"maxPerCore": 0, "min": 0},
        "hostnameOverride": places.name,
        "bindAddress": places.address,
        "healthzBindAddress": f"127.0.0.1:{PROXY_HEALTH}",
        "metricsBindAddress": f"127.0.0.1:{PROXY_METRICS}",
        "nftables": {"minSyncPeriod": "0s"},
    }
    return [str(controlplane), "kube-proxy", f"--config={_write(places.folder / 'kube-proxy.yaml', config)}"]


def _write(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(json.dumps(config, indent=2))
    return path
