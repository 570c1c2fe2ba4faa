"""`LocalCluster`: a real control plane that starts in seconds and leaves nothing behind.

In: `Options`. Out: a kubeconfig, ``kubectl``, nodes with GPUs, pods whose start takes as long as one says, the audit
log. Used as a context manager by ``servingplan demo`` and by the e2e tests.
"""

from __future__ import annotations

import itertools
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from servingplan.localcluster import components, kubeconfig, nodes, stages
from servingplan.localcluster.audit import AuditLog
from servingplan.localcluster.build import Programs, ensure_built
from servingplan.localcluster.components import Options, Places
from servingplan.localcluster.failures import KubectlFailed, NotSeen, StartFailed
from servingplan.localcluster.kubectl import Kubectl, wait_until
from servingplan.localcluster.processes import Processes
from servingplan.localcluster.rundir import RunFolder
from servingplan.localcluster.stages import Span

START_TIMEOUT_S = 90.0
# A free port may be taken between our look and the component's own: then everything starts anew.
START_TRIES = 3
USERS = ("admin", "kwok", "kube-controller-manager", "kube-scheduler")
TOKEN_LIFE = timedelta(hours=24)


class LocalCluster:
    """A cluster of this process; everything of it ends with the ``with`` block, or with the process.

    Raises `ToolchainProblem` when it has to be built and cannot, `StartFailed` when a component does not start.
    """

    kubectl: Kubectl
    audit: AuditLog
    kubeconfig: Path

    def __init__(self, options: Options | None = None, *, programs: Programs | None = None) -> None:
        self._options = options or Options()
        self._programs = programs
        self._folder: RunFolder | None = None
        self._processes: Processes | None = None
        self._node_numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self._programs = self._programs or ensure_built()
        for attempt in itertools.count(1):
            try:
                self._start(self._programs)
            except StartFailed as failure:
                self.stop()
                if attempt == START_TRIES or "address already in use" not in str(failure):
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends all processes and removes the folder. Harmless when repeated."""
        if self._processes is not None:
            self._processes.stop()
        if self._folder is not None:
            self._folder.remove()

    @property
    def folder(self) -> Path:
        """The folder of this run: logs of the components (``NAME.log``), keys, kubeconfigs."""
        if self._folder is None:
            raise RuntimeError("the local cluster is not started: use it in a with statement")
        return self._folder.path

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each component, by name."""
        return self._processes.pids() if self._processes else {}

    def run(self, name: str, command: Sequence[str]) -> int:
        """Starts a further component, as a kubelet, that ends with this cluster; its process id.

        Its log is ``NAME.log`` in `folder`.
        """
        assert self._processes is not None  # noqa: S101 - set since the start
        self._processes.start(name, command)
        return self._processes.pids()[name]

    # ---- access ----------------------------------------------------------------------------------

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Writes a kubeconfig with a fresh token of a service account, valid for a day, and returns its path."""
        seconds = int(TOKEN_LIFE.total_seconds())
        token = self.kubectl("create", "token", service_account, f"--namespace={namespace}", f"--duration={seconds}s")
        return kubeconfig.with_token(
            server=self._places.server,
            pki=self._places.pki,
            token=token.strip(),
            namespace=namespace,
            path=self.folder / f"serviceaccount-{namespace}-{service_account}.kubeconfig",
        )

    def kubectl_as(self, kubeconfig_file: Path) -> Kubectl:
        """``kubectl`` with another kubeconfig, as one of `kubeconfig_for`."""
        return Kubectl(self.kubectl.program, options=(f"--kubeconfig={kubeconfig_file}",), cache=self.folder / "cache")

    # ---- nodes -----------------------------------------------------------------------------------

    def add_nodes(self, count: int, *, gpus: int = 1, labels: Mapping[str, str] | None = None) -> list[str]:
        """Adds ready nodes with ``gpus`` GPUs each and returns their names."""
        names = [f"node-{next(self._node_numbers)}" for _ in range(count)]
        nodes.add(self.kubectl, names, gpus=gpus, labels=labels or {})
        return names

    def remove_node(self, name: str) -> None:
        """Takes a node away, and its pods with it, without any time to drain."""
        nodes.remove(self.kubectl, name)

    def stop_node(self, name: str) -> None:
        """Makes a node NotReady; its pods neither start nor end any more."""
        nodes.stop(self.kubectl, name)

    def start_node(self, name: str) -> None:
        """Makes a stopped node ready again."""
        nodes.start(self.kubectl, name)

    # ---- pods ------------------------------------------------------------------------------------

    def set_start_time(
        self, *, pull: Span = stages.QUICK, load: Span = stages.QUICK, selector: Mapping[str, str] | None = None
    ) -> None:
        """How long pods take from scheduled to running (``pull``) and on to ready (``load``).

        selector: labels of the pods; without, all that no other call selects. Counts for pods scheduled from now on.
        """
        self.kubectl.apply(stages.timetable(pull=pull, load=load, selector=selector))

    def set_termination_time(self, delay: Span, *, selector: Mapping[str, str] | None = None) -> None:
        """How long deleted pods take to end, at most their grace period; for pods deleted from now on."""
        self.kubectl.apply(stages.termination(delay=delay, selector=selector))

    def hold_jobs(self) -> None:
        """Lets the pods of Jobs run until somebody writes into their status that they ended."""
        self.kubectl("delete", "stage", stages.COMPLETION, "--ignore-not-found")

    def reset_times(self) -> None:
        """Takes back what `set_start_time`, `set_termination_time` and `hold_jobs` said: everything is quick again."""
        self.kubectl("delete", "stages", f"--selector={stages.RULE_LABEL}=selected", "--wait=false")
        self.kubectl.apply(*stages.rules(), stages.completion())

    # ---- start -----------------------------------------------------------------------------------

    def _start(self, programs: Programs) -> None:
        self._folder = RunFolder()
        self._places = _places(self._folder.path)
        self._processes = Processes(controlplane=programs.controlplane, logs=self.folder)
        self._write_keys(programs)
        self.kubeconfig = Path(self._places.kubeconfig("admin"))
        self.kubectl = Kubectl(
            programs.kubectl, options=(f"--kubeconfig={self.kubeconfig}",), cache=self.folder / "cache"
        )
        self.audit = AuditLog(self._places.audit_log)
        places, options, processes = self._places, self._options, self._processes
        processes.start("etcd", components.etcd(programs, places))
        processes.start("kube-apiserver", components.kube_apiserver(programs, places, options))
        self._wait("kube-apiserver", self._api_ready)
        processes.start("kube-controller-manager", components.kube_controller_manager(programs, places, options))
        processes.start("kube-scheduler", components.kube_scheduler(programs, places))
        if options.simulated:
            self._install_stages(programs)
            processes.start("kwok", components.kwok(programs, places))
        self._wait("kube-controller-manager", self._default_account_exists)
        processes.check()

    def _write_keys(self, programs: Programs) -> None:
        places = self._places
        places.pki.mkdir(mode=0o700)
        subprocess.run(  # noqa: S603 - the program that build made
            [str(programs.controlplane), "pki", str(places.pki), components.FIRST_SERVICE_ADDRESS], check=True
        )
        for user in USERS:
            kubeconfig.with_certificate(server=places.server, pki=places.pki, user=user, folder=places.folder)

    def _install_stages(self, programs: Programs) -> None:
        self.kubectl("create", "-f", str(programs.stage_crd))
        self.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/stages.kwok.x-k8s.io")
        self.kubectl.apply(*stages.defaults())

    def _wait(self, component: str, condition: Callable[[], bool]) -> None:
        assert self._processes is not None  # noqa: S101 - set before anything is waited for
        processes = self._processes
        try:
            wait_until(condition, what=f"a working {component}", timeout_s=START_TIMEOUT_S, meanwhile=processes.check)
        except NotSeen as late:
            raise StartFailed(f"{late}. {processes.last_lines(component)}") from late

    def _api_ready(self) -> bool:
        pki = self._places.pki
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        with suppress(urllib.error.URLError, OSError):
            answer = urllib.request.urlopen(  # noqa: S310 - an https URL of our own
                f"{self._places.server}/readyz", context=context, timeout=5
            )
            with answer:
                return bool(answer.status == 200)
        return False

    def _default_account_exists(self) -> bool:
        with suppress(KubectlFailed):
            self.kubectl("get", "serviceaccount", "default", "--namespace=default")
            return True
        return False


def _places(folder: Path) -> Places:
    etcd_port, etcd_peer_port, api_port = _free_ports(3)
    return Places(folder=folder, etcd_port=etcd_port, etcd_peer_port=etcd_peer_port, api_port=api_port)


def _free_ports(count: int) -> list[int]:
    # All are held until all are known, or the system may name one twice.
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    return ports
