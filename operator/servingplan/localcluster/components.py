"""The command lines of a local cluster's components.

In: where things lie and what was asked for. Out: one command per component, in the order of their start. Pure but
for the two configuration files that scheduler and kwok insist on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from servingplan.localcluster.build import Programs
from servingplan.localcluster.stages import MANAGED_LABEL, MANAGED_VALUE

SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE_ADDRESS = "10.96.0.1"
POD_RANGE = "10.244.0.0/16"

# The clients' own limits would be the slowest part of a cluster without network or disks.
QUERIES_PER_S = 500
BURST = 1000
# As a kubelet's; kwok renews each node's Lease at a quarter of it.
NODE_LEASE_S = 40
AUDIT_FILE_MB = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What can be chosen about a local cluster.

    simulated: kwok plays nodes and pods; otherwise there are none until a kubelet joins. audit: record who writes
    what. hpa_period: how often the HorizontalPodAutoscaler controller looks (in Kubernetes, 15 s). silence: how long a
    node may say nothing before it counts as not ready (in Kubernetes, 50 s). evict_after: how long pods stay on a node
    that is not ready (in Kubernetes, 5 min); it is stamped on pods as they are created.
    """

    simulated: bool = True
    audit: bool = False
    hpa_period: timedelta = timedelta(seconds=15)
    silence: timedelta = timedelta(seconds=50)
    evict_after: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the parts of one running cluster are: its folder and its loopback ports."""

    folder: Path
    etcd_port: int
    etcd_peer_port: int
    api_port: int

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.folder / "pki"

    @property
    def audit_log(self) -> Path:
        """One JSON document a line, when asked for."""
        return self.folder / "audit.log"

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self.api_port}"

    def kubeconfig(self, user: str) -> str:
        """The kubeconfig file of a component or of ``admin``."""
        return str(self.folder / f"{user}.kubeconfig")


def etcd(programs: Programs, places: Places) -> list[str]:
    """One member, with TLS on both sides; nothing survives the cluster, so it need not wait for the disk."""
    client, peer = f"https://127.0.0.1:{places.etcd_port}", f"https://127.0.0.1:{places.etcd_peer_port}"
    pki = places.pki
    return [
        *(str(programs.controlplane), "etcd", "--name=local", f"--data-dir={places.folder / 'etcd'}"),
        *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
        *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=local={peer}"),
        *(f"--cert-file={pki / 'etcd.crt'}", f"--key-file={pki / 'etcd.key'}", "--client-cert-auth"),
        f"--trusted-ca-file={pki / 'ca.crt'}",
        *(f"--peer-cert-file={pki / 'etcd.crt'}", f"--peer-key-file={pki / 'etcd.key'}", "--peer-client-cert-auth"),
        f"--peer-trusted-ca-file={pki / 'ca.crt'}",
        *("--unsafe-no-fsync", "--log-level=warn"),
    ]


def kube_apiserver(programs: Programs, places: Places, options: Options) -> list[str]:
    """RBAC, service account tokens, and all admission that is on by default."""
    pki = places.pki
    evict_after_s = int(options.evict_after.total_seconds())
    return [
        *(str(programs.controlplane), "kube-apiserver"),
        f"--etcd-servers=https://127.0.0.1:{places.etcd_port}",
        *(
            f"--etcd-cafile={pki / 'ca.crt'}",
            f"--etcd-certfile={pki / 'etcd.crt'}",
            f"--etcd-keyfile={pki / 'etcd.key'}",
        ),
        *("--bind-address=127.0.0.1", f"--secure-port={places.api_port}"),
        # Endpoints of the Service `kubernetes` may not be loopback addresses, and nothing in here uses them.
        *("--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"),
        *(f"--tls-cert-file={pki / 'apiserver.crt'}", f"--tls-private-key-file={pki / 'apiserver.key'}"),
        f"--client-ca-file={pki / 'ca.crt'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        *(f"--service-account-key-file={pki / 'sa.pub'}", f"--service-account-signing-key-file={pki / 'sa.key'}"),
        *("--authorization-mode=RBAC", f"--service-cluster-ip-range={SERVICE_RANGE}", "--allow-privileged"),
        # For logs and exec, where there are kubelets: their names are in no DNS.
        "--kubelet-preferred-address-types=InternalIP",
        *(f"--kubelet-client-certificate={pki / 'admin.crt'}", f"--kubelet-client-key={pki / 'admin.key'}"),
        f"--default-not-ready-toleration-seconds={evict_after_s}",
        f"--default-unreachable-toleration-seconds={evict_after_s}",
        "--profiling=false",
        *(_audit_flags(places) if options.audit else ()),
    ]


def kube_controller_manager(programs: Programs, places: Places, options: Options) -> list[str]:
    """Every controller that is on by default, each under its own service account."""
    pki = places.pki
    return [
        *(str(programs.controlplane), "kube-controller-manager"),
        f"--kubeconfig={places.kubeconfig('kube-controller-manager')}",
        *("--leader-elect=false", "--use-service-account-credentials", "--secure-port=0"),
        *(f"--service-account-private-key-file={pki / 'sa.key'}", f"--root-ca-file={pki / 'ca.crt'}"),
        *(f"--cluster-signing-cert-file={pki / 'ca.crt'}", f"--cluster-signing-key-file={pki / 'ca.key'}"),
        f"--horizontal-pod-autoscaler-sync-period={options.hpa_period.total_seconds()}s",
        f"--node-monitor-grace-period={options.silence.total_seconds()}s",
        # A lost node's pods go one after the other otherwise, ten seconds apart.
        "--node-eviction-rate=10",
        *(f"--kube-api-qps={QUERIES_PER_S}", f"--kube-api-burst={BURST}", "--profiling=false"),
    ]


def kube_scheduler(programs: Programs, places: Places) -> list[str]:
    """The default scheduler; it tries again soon where a test waits for it."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": places.kubeconfig("kube-scheduler"),
            "qps": QUERIES_PER_S,
            "burst": BURST,
        },
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
    }
    file = _write(places.folder / "kube-scheduler.yaml", config)
    return [str(programs.controlplane), "kube-scheduler", f"--config={file}", "--secure-port=0"]


def kwok(programs: Programs, places: Places) -> list[str]:
    """Nodes with our label, and their pods; stages come from the API, so that they change while it runs."""
    config = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            "enableCRDs": ["Stage"],
            "manageNodesWithLabelSelector": f"{MANAGED_LABEL}={MANAGED_VALUE}",
            "cidr": POD_RANGE,
            "nodeLeaseDurationSeconds": NODE_LEASE_S,
            # kwok ends at once without these.
            "podPlayStageParallelism": 8,
            "nodePlayStageParallelism": 4,
            "nodeLeaseParallelism": 4,
            "podsOnNodeSyncParallelism": 4,
        },
    }
    file = _write(places.folder / "kwok.yaml", config)
    return [str(programs.kwok), f"--kubeconfig={places.kubeconfig('kwok')}", f"--config={file}"]


def _audit_flags(places: Places) -> list[str]:
    writes = {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [writes, {"level": "None"}],
    }
    file = _write(places.folder / "audit-policy.yaml", policy)
    return [
        *(f"--audit-policy-file={file}", f"--audit-log-path={places.audit_log}", "--audit-log-format=json"),
        # Blocking: a write that was answered is in the file. One file, so that nothing is rotated away.
        *("--audit-log-mode=blocking", f"--audit-log-maxsize={AUDIT_FILE_MB}"),
    ]


def _write(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(json.dumps(config, indent=2))
    return path
