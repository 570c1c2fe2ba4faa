"""The cluster, as the verbs for people on call need it: read plans and what they refer to, apply parts of a plan.

In: which cluster (kubeconfig, context, namespace). Out: plain JSON, or a ClusterError of one sentence. The official
client is imported here alone, and only when a verb connects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from servingplan.api.references import Content, Kind, Reference, References, content, referenced
from servingplan.api.v1alpha1 import GROUP, KIND, PLURAL, VERSION
from servingplan.cli.output import with_options
from servingplan.errors import ClusterError, Conflict, NotFound, Refused, Unreachable, UsageError
from servingplan.rendering.ledger import is_ledger_of, ledger_name

MANAGER = "servingplan-cli"
"""The field manager of everything that the command line writes."""

APPLY = "application/apply-patch+yaml"
TIMEOUTS = (5, 30)
"""Seconds to connect and to wait for an answer: a person waits for it."""

T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Which cluster and namespace; None where the kubeconfig decides."""

    kubeconfig: str | None
    context: str | None
    namespace: str | None


access_options = with_options(
    click.option("--kubeconfig", type=click.Path(), help="kubeconfig file; default: as kubectl."),
    click.option("--context", help="Context of the kubeconfig."),
    click.option("-n", "--namespace", help="Namespace; default: the context's."),
)
"""The options that say which cluster: ``--context``, ``--kubeconfig``, ``-n``."""


class Cluster:
    """One cluster. Every method raises a ClusterError where the server cannot be reached or refuses."""

    def __init__(self, access: Access) -> None:
        """Read the kubeconfig. Raises UsageError without the client, Unreachable without a usable kubeconfig."""
        self._client, self.namespace = _connect(access)
        self._custom = _kubernetes().client.CustomObjectsApi(self._client)

    def plans(self, *, everywhere: bool) -> tuple[Json, ...]:
        """All plans of the namespace, or of all, by namespace and name."""
        group = {"group": GROUP, "version": VERSION, "plural": PLURAL, "_request_timeout": TIMEOUTS}
        if everywhere:
            listed = _ask(lambda: self._custom.list_cluster_custom_object(**group), "listing plans")
        else:
            listed = _ask(
                lambda: self._custom.list_namespaced_custom_object(namespace=self.namespace, **group),
                f"listing plans in {self.namespace}",
            )
        return tuple(sorted(listed["items"], key=lambda p: (p["metadata"]["namespace"], p["metadata"]["name"])))

    def plan(self, name: str) -> Json:
        """One plan. Raises NotFound, naming it."""
        return _ask(
            lambda: self._custom.get_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, name, _request_timeout=TIMEOUTS
            ),
            f"{KIND} {self.namespace}/{name}",
        )

    def apply(self, plan: Json, spec: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Apply what this command line owns of a plan, all of it: what is left out is given up.

        Raises Conflict where the plan changed since it was read.
        """
        metadata = plan["metadata"]
        body = {
            "apiVersion": plan["apiVersion"],
            "kind": plan["kind"],
            "metadata": {key: metadata[key] for key in ("name", "namespace", "resourceVersion")},
            **({"spec": dict(spec)} if spec else {}),
        }
        return _ask(
            lambda: self._custom.patch_namespaced_custom_object(
                GROUP,
                VERSION,
                metadata["namespace"],
                PLURAL,
                metadata["name"],
                body,
                field_manager=MANAGER,
                force=True,
                **({"dry_run": "All"} if dry_run else {}),
                _content_type=APPLY,
                _request_timeout=TIMEOUTS,
            ),
            f"changing {KIND} {metadata['namespace']}/{metadata['name']}",
        )

    def references_of(self, plan: Json) -> References:
        """What a plan refers to; None for what does not exist."""
        namespace = plan["metadata"]["namespace"]
        return {reference: self._content(namespace, reference) for reference in sorted(referenced(plan))}

    def ledger(self, plan: Json) -> Mapping[str, str]:
        """The pages of a plan's ledger (`rendering.ledger`); none where it has none."""
        metadata = plan["metadata"]
        namespace, name = metadata["namespace"], ledger_name(metadata["name"])
        with suppress(NotFound):
            found = _ask(lambda: self._config_map(namespace, name), f"reading ConfigMap {namespace}/{name}")
            owners = [{"uid": owner.uid} for owner in found.metadata.owner_references or ()]
            if is_ledger_of({"metadata": {"ownerReferences": owners}}, metadata["uid"]):
                return dict(found.binary_data or {})
        return {}

    def _config_map(self, namespace: str, name: str) -> Any:
        return (
            _kubernetes()
            .client.CoreV1Api(self._client)
            .read_namespaced_config_map(name, namespace, _request_timeout=TIMEOUTS)
        )

    def _content(self, namespace: str, reference: Reference) -> Content | None:
        with suppress(NotFound):
            found = _ask(
                lambda: self._referred(namespace, reference), f"reading {reference.kind} {namespace}/{reference.name}"
            )
            return content(reference.kind, found)
        return None

    def _referred(self, namespace: str, reference: Reference) -> Json:
        if reference.kind is Kind.CONFIG_MAP:
            return {"data": self._config_map(namespace, reference.name).data}
        return dict(
            self._custom.get_namespaced_custom_object(
                group=GROUP,
                version=VERSION,
                namespace=namespace,
                plural=f"{reference.kind.lower()}s",
                name=reference.name,
                _request_timeout=TIMEOUTS,
            )
        )


def _kubernetes() -> Any:
    try:
        import kubernetes  # noqa: PLC0415  a second to load, and not in the operator's image
    except ModuleNotFoundError as error:
        raise UsageError(
            "talking to a cluster needs the Kubernetes client: pip install 'servingplan[cluster]'"
        ) from error
    return kubernetes


def _connect(access: Access) -> tuple[Any, str]:
    """The API client and the namespace. In a pod without a kubeconfig, the pod's own account."""
    kubernetes = _kubernetes()
    configuration = kubernetes.client.Configuration()
    configuration.retries = False
    try:
        contexts, active = kubernetes.config.list_kube_config_contexts(config_file=access.kubeconfig)
        chosen = next((c for c in contexts if c["name"] == access.context), active)
        kubernetes.config.load_kube_config(
            config_file=access.kubeconfig, context=access.context, client_configuration=configuration
        )
        namespace = str(chosen["context"].get("namespace") or "default")
    except (kubernetes.config.ConfigException, OSError) as error:
        if access.kubeconfig is not None or access.context is not None:
            raise Unreachable(f"the kubeconfig cannot be used: {error}; check --kubeconfig and --context") from error
        namespace = _from_pod(kubernetes, configuration, error)
    return kubernetes.client.ApiClient(configuration), access.namespace or namespace


def _from_pod(kubernetes: Any, configuration: Any, reason: Exception) -> str:
    try:
        kubernetes.config.load_incluster_config(client_configuration=configuration)
    except kubernetes.config.ConfigException:
        raise Unreachable(f"no cluster is configured: {reason}; set KUBECONFIG or give --kubeconfig") from reason
    return "default"


def _ask(request: Callable[[], T], what: str) -> T:
    """Make a request; what goes wrong becomes one sentence."""
    kubernetes = _kubernetes()
    from urllib3.exceptions import HTTPError  # noqa: PLC0415  comes with the client

    try:
        return request()
    except kubernetes.client.ApiException as error:
        raise _worded(error, what) from error
    except (HTTPError, OSError) as error:
        raise Unreachable(f"{what}: the cluster does not answer ({_innermost(error)})") from error


def _worded(error: Any, what: str) -> ClusterError:
    status, message = int(error.status or 0), _message(error)
    if status == 404 and message is None:
        return NotFound(
            f"{what}: the cluster has no ServingPlans; install them with: "
            "servingplan crd | kubectl apply --server-side -f -"
        )
    words = message or error.reason or f"status {status}"
    if status == 404:
        return NotFound(f"{what}: there is none; servingplan status -A lists all")
    if status == 409:
        return Conflict(f"{what}: {words}; try again")
    if status == 429 or status >= 500 or status == 0:
        return Unreachable(f"{what}: the cluster answers {status} ({words}); try again later")
    return Refused(f"{what}: the cluster refuses: {words}")


def _message(error: Any) -> str | None:
    """The server's own words; None where it is no Kubernetes status, as for a kind that is not installed."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return None


def _innermost(error: BaseException) -> str:
    """The part of a connection error that a person can act on."""
    reason = getattr(error, "reason", None)
    text = str(reason if reason is not None else error)
    return text.rpartition(": ")[2] or type(error).__name__
