"""Where a demo plays: a control plane of this machine, or a cluster of the user's own.

In: what is to be played. Out: a cluster with the API installed and everything there that the plan expects; at the
end, the cluster as it was before. A local control plane is thrown away as a whole.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from servingplan.api.crd import custom_resource_definition
from servingplan.api.kinds import GROUP, KINDS, Kind
from servingplan.demo.interrupts import no_more_interrupts
from servingplan.demo.link import Link
from servingplan.demo.material import Material, volume_objects
from servingplan.errors import ClusterError, UsageError
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.stages import Span

CRD_API, CRD_KIND = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
OPERATOR_LABEL = "app.kubernetes.io/name=servingplan"

WAIT_S = 90.0
POLL_S = 0.2

PULL_SHARE = 0.25
"""The part of a start that pulling the image takes, where pods are played; loading takes the rest."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a person types. setup: once, in a new terminal; kubectl: how it is called then."""

    setup: str | None
    kubectl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A prepared cluster. kubeconfig, context: how others reach it. local: the control plane, where it is one."""

    link: Link
    kubeconfig: Path | None
    context: str | None
    local: LocalCluster | None

    def starts_take(self, least_s: float, most_s: float) -> None:
        """From now on, played pods take so many real seconds to start; others take what they take."""
        if self.local is not None:
            parts = (PULL_SHARE, 1 - PULL_SHARE)
            pull, load = (Span(at_least=least_s * share, at_most=most_s * share) for share in parts)
            self.local.set_start_time(pull=pull, load=load)

    @property
    def access(self) -> Access:
        """How a person reaches it from another terminal."""
        if self.local is None:
            return Access(setup=None, kubectl=f"kubectl --context={self.context}")
        kubectl = "kubectl" if shutil.which("kubectl") else str(self.local.kubectl.program)
        return Access(setup=f"export KUBECONFIG={self.kubeconfig}", kubectl=kubectl)


@contextmanager
def local_place(material: Material, *, most: int, before: int, say: Say) -> Iterator[Place]:
    """A control plane of this machine, with nodes for `most` replicas; `before` of them run already."""
    say("Starting a Kubernetes control plane on this machine (etcd, API server, controllers, scheduler; kwok's nodes).")
    with LocalCluster() as cluster, Link(kubeconfig=cluster.kubeconfig, context=None) as link:
        gpus = material.plan.gpus_per_replica or 1
        cluster.add_nodes(most, gpus=gpus, labels=material.node_labels())
        say(f"It runs: {most} nodes with {gpus} GPU{'s' * (gpus > 1)} each. It is thrown away at the end.")
        _install(link, KINDS)
        _namespace(link, material.plan.namespace)
        link.apply(*volume_objects(material.plan.namespace, material.claims()))
        link.apply(*material.prerequisites(before))
        yield Place(link=link, kubeconfig=cluster.kubeconfig, context=None, local=cluster)


@contextmanager
def own_place(
    material: Material, context: str, *, before: int, say: Say, allow: Callable[[str], None]
) -> Iterator[Place]:
    """A cluster of the user's own. allow: asks whether it may be touched, and raises where it may not."""
    namespace = material.plan.namespace
    with Link(kubeconfig=None, context=context) as link:
        _check_free(link, namespace)
        installs = [kind for kind in KINDS if link.find(CRD_API, CRD_KIND, _definition(kind)) is None]
        definitions = ", ".join(_definition(kind) for kind in installs)
        allow(
            f"The demo will use the cluster of context {context} ({link.server}): it creates the namespace {namespace}"
            f"{f' and the CustomResourceDefinitions {definitions}' if installs else ''}, runs the operator on this "
            "machine with your rights for that namespace only, and removes all of it at the end."
        )
        try:
            _install(link, installs)
            _namespace(link, namespace)
            link.apply(*material.prerequisites(before))
            yield Place(link=link, kubeconfig=None, context=context, local=None)
        finally:
            no_more_interrupts()
            say(f"Removing the namespace {namespace}{' and the definitions' if installs else ''} ...")
            _remove(link, namespace, installs)


def _check_free(link: Link, namespace: str) -> None:
    if link.find("v1", "Namespace", namespace) is not None:
        raise UsageError(
            f"the namespace {namespace} exists already; the demo makes one of its own and removes it: "
            "choose another name with --namespace"
        )
    for found in link.items("apps/v1", "Deployment", labels=OPERATOR_LABEL):
        if found["spec"].get("replicas") == 0:
            continue
        where = f"{found['metadata']['namespace']}/{found['metadata']['name']}"
        raise UsageError(
            f"an operator runs in this cluster already ({where}) and would act on the demo's plan by the real clock: "
            "use a cluster without one, or leave out --context for one on this machine"
        )


def _definition(kind: Kind) -> str:
    return f"{kind.plural}.{GROUP}"


def _install(link: Link, kinds: Sequence[Kind]) -> None:
    for kind in kinds:
        link.apply(custom_resource_definition(kind))
    for name in map(_definition, kinds):
        _wait(partial(_is_established, link, name), f"the definition {name} to be established")


def _is_established(link: Link, name: str) -> bool:
    found = link.find(CRD_API, CRD_KIND, name) or {}
    # A fresh definition has `conditions: null`.
    conditions = found.get("status", {}).get("conditions") or ()
    return any((c["type"], c["status"]) == ("Established", "True") for c in conditions)


def _namespace(link: Link, name: str) -> None:
    link.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    # Pods are refused until their account is there.
    _wait(lambda: link.find("v1", "ServiceAccount", "default", name) is not None, f"the default account of {name}")


def _remove(link: Link, namespace: str, installed: Sequence[Kind]) -> None:
    link.delete("v1", "Namespace", namespace)
    _wait(lambda: link.find("v1", "Namespace", namespace) is None, f"the namespace {namespace} to go")
    for kind in installed:
        link.delete(CRD_API, CRD_KIND, _definition(kind))


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {WAIT_S:.0f} s in vain for {what}; look at the cluster, then try again")
        time.sleep(POLL_S)
