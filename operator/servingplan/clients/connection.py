"""The one connection pool to the API server, shared by this package's client and by kopf.

In: an `Endpoint`. Out: aiohttp sessions over one pool, that authorize each request by themselves, renew what
expired, and count what is sent, whoever sends it.
"""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import time
from pathlib import Path

import aiohttp

from servingplan.clients.accounting import NO_ANSWER, RequestObserver, describe_request
from servingplan.clients.credentials import Credential
from servingplan.clients.kubeconfig import Endpoint

CONNECT_TIMEOUT_S = 10.0
"""Within this, a node that is gone shows as unreachable rather than as a hang."""


class Connection:
    """Connections to one API server. Made within the running event loop; closed with `close`."""

    def __init__(
        self, endpoint: Endpoint, *, user_agent: str = "servingplan", observe: RequestObserver | None = None
    ) -> None:
        self.server = endpoint.server
        self.namespace = endpoint.namespace
        self._endpoint = endpoint
        self._user_agent = user_agent
        self._observe = observe
        self._tls = _tls_context(endpoint)
        self._plugin_certificate: str | None = None
        self._connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        self.session = self.new_session()

    def new_session(self) -> aiohttp.ClientSession:
        """Open another session over the same connections; closing it leaves them open.

        kopf closes the session that it was given whenever it logs in again.
        """
        return aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            headers={"User-Agent": self._user_agent},
            middlewares=(self._authorize, self._count),
            proxy=self._endpoint.proxy_url,
            trust_env=True,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            max_line_size=64 * 1024,  # warnings of the API server come as headers
            max_field_size=64 * 1024,
        )

    def forget_credentials(self) -> None:
        """Read or ask for credentials again with the next request."""
        self._endpoint.credentials.forget()

    async def close(self) -> None:
        """Close the session and all connections."""
        await self.session.close()
        await self._connector.close()

    async def _authorize(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if self._endpoint.tls_server_name:
            request.server_hostname = self._endpoint.tls_server_name
        used = await self._present(request)
        response = await send(request)
        if response.status != 401:
            return response
        self._endpoint.credentials.forget()
        if await self._endpoint.credentials.current() == used:
            return response
        response.release()
        await self._present(request)
        return await send(request)

    async def _present(self, request: aiohttp.ClientRequest) -> Credential:
        credential = await self._endpoint.credentials.current()
        if credential.token is not None:
            request.headers["Authorization"] = f"Bearer {credential.token}"
        if credential.certificate is not None and credential.certificate != self._plugin_certificate:
            _load_certificate(self._tls, credential.certificate, credential.key)
            self._plugin_certificate = credential.certificate
        return credential

    async def _count(self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if self._observe is None:
            return await send(request)
        verb, resource = describe_request(request.method, request.url.path, request.url.query)
        code, began_s = NO_ANSWER, time.monotonic()
        try:
            response = await send(request)
            code = str(response.status)
            return response
        finally:
            self._observe(verb=verb, resource=resource, code=code, seconds=time.monotonic() - began_s)


def _tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=endpoint.ca)
    # Kubernetes' own tools make certificate authorities without the extensions that the strict mode wants.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    if endpoint.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if endpoint.certificate is not None:
        _load_certificate(context, endpoint.certificate, endpoint.key)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Load PEM texts. The ssl module reads files only: they exist, for this user alone, while it does."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="servingplan-")))
        (folder / "cert.pem").write_text(certificate, encoding="ascii")
        if key is not None:
            (folder / "key.pem").touch(mode=0o600)
            (folder / "key.pem").write_text(key, encoding="ascii")
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem" if key is not None else None)
