"""Which kinds the API server serves, and under which paths.

In: apiVersion and kind, as an object states them. Out: an `ApiResource`. Answers are kept; a kind that is not
known is looked up again, because a CRD may have been installed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from servingplan.clients.answers import KindNotServed
from servingplan.clients.transport import Request, Transport
from servingplan.errors import NotFound

MISSING_KEPT_S = 10.0
"""How long "not served" is believed: many plans may name one missing kind, and a CRD may come any second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResource:
    """One kind as the server serves it. subresources: for example ``{"status", "scale"}``."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: frozenset[str]

    @property
    def has_scale(self) -> bool:
        """True where the kind can be scaled through ``/scale``."""
        return "scale" in self.subresources

    @property
    def has_status(self) -> bool:
        """True where status is written through ``/status``."""
        return "status" in self.subresources

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Give the URL path of a collection, an object or a subresource of one."""
        parts = [_prefix(self.api_version)]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class Discovery:
    """The kinds of one API server. Shared by every client of that server."""

    def __init__(self, transport: Transport, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._monotonic = monotonic
        self._kinds: dict[str, Mapping[str, ApiResource]] = {}
        self._missing: dict[tuple[str, str], float] = {}

    async def resolve(self, api_version: str, kind: str) -> ApiResource:
        """Find how the server serves a kind. Raises KindNotServed (a NotFound) where it does not."""
        found = self._kinds.get(api_version, {}).get(kind)
        if found is not None:
            return found
        missed_at = self._missing.get((api_version, kind))
        if missed_at is None or self._monotonic() - missed_at >= MISSING_KEPT_S:
            await self._refresh(api_version)
            found = self._kinds.get(api_version, {}).get(kind)
        if found is None:
            self._missing.setdefault((api_version, kind), self._monotonic())
            raise KindNotServed(
                f"the API server does not serve kind {kind} of {api_version}; "
                "check the spelling, and that the CRD is installed"
            )
        return found

    def forget(self, api_version: str) -> None:
        """Look this apiVersion up again next time: the server says that it serves a kind of it no more."""
        self._kinds.pop(api_version, None)

    async def _refresh(self, api_version: str) -> None:
        request = Request(method="GET", path=_prefix(api_version), what=f"discovery of {api_version}")
        try:
            answer = await self._transport.read(request)
        except NotFound:
            self.forget(api_version)
            return
        self._kinds[api_version] = _kinds(api_version, answer.get("resources") or ())
        served = self._kinds[api_version]
        self._missing = {key: at for key, at in self._missing.items() if key[0] != api_version or key[1] not in served}
        for key in [key for key in self._missing if key[0] == api_version]:
            self._missing[key] = self._monotonic()


def _prefix(api_version: str) -> str:
    parts = "/".join(quote(part, safe="") for part in api_version.split("/"))
    return f"/apis/{parts}" if "/" in api_version else f"/api/{parts}"


def _kinds(api_version: str, resources: Iterable[Mapping[str, Any]]) -> dict[str, ApiResource]:
    listed = list(resources)
    parts: dict[str, set[str]] = {}
    for entry in listed:
        plural, _, subresource = str(entry["name"]).partition("/")
        parts.setdefault(plural, set()).update({subresource} - {""})
    return {
        str(entry["kind"]): ApiResource(
            api_version=api_version,
            kind=str(entry["kind"]),
            plural=str(entry["name"]),
            namespaced=bool(entry["namespaced"]),
            subresources=frozenset(parts[str(entry["name"])]),
        )
        for entry in listed
        if "/" not in str(entry["name"])
    }
