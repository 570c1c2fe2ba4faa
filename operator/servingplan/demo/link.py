"""The demo's own access to the API server: the operator's client, called from code that waits.

In: a kubeconfig or a context. Out: plain objects, or a ClusterError of one sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from servingplan.clients.connection import Connection
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.errors import NotFound, Unreachable

MANAGER = "servingplan-demo"
"""The field manager of what the demo applies; the operator has another one."""

APPLY_TRIES, APPLY_PAUSE_S = 5, 1.0
"""A machine that has just started a whole control plane may take longer to answer than a write waits."""

T = TypeVar("T")
Json = dict[str, Any]


class Link:
    """One connection; use it as a context manager. Raises UsageError where no cluster is configured."""

    def __init__(self, *, kubeconfig: Path | None, context: str | None) -> None:
        self._endpoint = load_endpoint(kubeconfig=kubeconfig, context=context)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._connection, self._client = self._runner.run(self._connect())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()

    async def _connect(self) -> tuple[Connection, KubernetesClient]:
        connection = Connection(self._endpoint, user_agent=MANAGER)
        client = KubernetesClient(
            session=connection.session, server=connection.server, field_manager=MANAGER, user_agent=MANAGER
        )
        return connection, client

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._endpoint.server

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Apply manifests in order, and take over what others own of them.

        Unlike the operator, which decides anew, it tries again: the same apply twice is the same as once.
        """
        for manifest in manifests:
            for attempt in _patiently():
                with attempt:
                    self._wait(self._client.apply(manifest, force=True))

    def find(self, api_version: str, kind: str, name: str, namespace: str = "") -> Json | None:
        """The live object; None where it, or its kind, does not exist."""
        ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
        try:
            return self._wait(self._client.find(ref))
        except NotFound:
            return None

    def items(self, api_version: str, kind: str, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        """All objects of a kind, in one namespace or in all."""
        return self._wait(self._client.list(api_version, kind, namespace, label_selector=labels)).items

    def delete(self, api_version: str, kind: str, name: str) -> None:
        """Delete an object of the cluster; harmless where there is none."""
        ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace="")
        try:
            for attempt in _patiently():
                with attempt:
                    self._wait(self._client.delete(ref))
        except NotFound:
            return

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


def _patiently() -> Retrying:
    return Retrying(
        stop=stop_after_attempt(APPLY_TRIES),
        wait=wait_fixed(APPLY_PAUSE_S),
        retry=retry_if_exception_type(Unreachable),
        reraise=True,
    )
