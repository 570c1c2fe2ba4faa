"""Full lists of a kind, as a relist reads them: over all namespaces that are watched, and where a cluster allows it.

In: a kind and namespaces. Out: its objects. Knows which kinds it may not read, and says so once for each.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from servingplan.clients.answers import KindNotServed
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.errors import Refused

Object = Mapping[str, Any]

_log = logging.getLogger(__name__)


class Lists:
    """Reads lists. denied: the kinds that were refused when they were read last."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self.denied: set[str] = set()

    async def all(
        self, api_version: str, kind: str, namespaces: Sequence[str], label_selector: str = ""
    ) -> list[Object]:
        """Every object of a kind; no namespace stands for all of them. Raises ClusterError."""
        found: list[Object] = []
        for namespace in namespaces or ("",):
            page = await self._client.list(api_version, kind, namespace, label_selector=label_selector)
            found += page.items
        return found

    async def optional(self, api_version: str, kind: str, namespaces: Sequence[str]) -> list[Object]:
        """The same of a kind that a cluster may not have, or that an installation may not read: then none."""
        try:
            found = await self.all(api_version, kind, namespaces)
        except KindNotServed:
            return []
        except Refused as refusal:
            if kind not in self.denied:
                self.denied.add(kind)
                _log.warning("%s is not read: %s", kind, refusal)
            return []
        self.denied.discard(kind)
        return found
