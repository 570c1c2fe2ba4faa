"""How requests are authorized: a fixed token, a token file that rotates, or an exec plugin.

In: what a kubeconfig or a pod's service account states. Out: bearer tokens, and client certificates of plugins.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from servingplan.errors import Refused, Unreachable, UsageError

TOKEN_FILE_REREAD_S = 60.0
"""A projected token is replaced when 80 % of its hour has passed; client-go reads it again every minute too."""

EXEC_TIMEOUT_S = 30.0
"""A plugin may ask a remote identity provider; one that waits for a person would wait for ever."""

EXEC_REFRESH_EARLY = timedelta(seconds=60)
"""So that a token does not expire on the way to the server."""

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What authorizes a request. certificate and key: PEM, for the next connections."""

    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    expires_at: datetime | None = None


class CredentialSource(Protocol):
    """Gives the present credential, and another one when the server refused it."""

    async def current(self) -> Credential:
        """Give the credential to use now."""

    def forget(self) -> None:
        """Read or ask again next time: the server answered 401."""


class FixedCredential:
    """A credential that a kubeconfig states, or none at all."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        """Give the credential."""
        return self._credential

    def forget(self) -> None:
        """Keep it: there is no other."""


class TokenFile:
    """A token in a file that is replaced while the process runs, as for a pod's service account."""

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._credential: Credential | None = None
        self._read_at_s = 0.0

    async def current(self) -> Credential:
        """Give the token of the file, read at most a minute ago. Raises UsageError where there is none."""
        age_s = self._monotonic() - self._read_at_s
        if self._credential is None or age_s >= TOKEN_FILE_REREAD_S:
            self._credential = Credential(token=self._read())
            self._read_at_s = self._monotonic()
        return self._credential

    def forget(self) -> None:
        """Read the file again next time."""
        self._credential = None

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"token file {self._path} cannot be read: {error.strerror}") from error
        if not token:
            raise UsageError(f"token file {self._path} is empty")
        return token


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A command that prints an ExecCredential. cluster: what it is told about the server, if anything."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    api_version: str
    install_hint: str
    cluster: Mapping[str, Any] | None
    timeout_s: float = EXEC_TIMEOUT_S


class ExecCredential:
    """The credential of an exec plugin, asked for again shortly before it expires."""

    def __init__(self, plugin: ExecPlugin) -> None:
        if plugin.api_version not in _EXEC_VERSIONS:
            raise UsageError(
                f"exec plugin {plugin.command}: apiVersion {plugin.api_version!r} is not supported; "
                f"use {_EXEC_VERSIONS[0]}"
            )
        self._plugin = plugin
        self._credential: Credential | None = None
        self._asking: asyncio.Task[Credential] | None = None

    async def current(self) -> Credential:
        """Give the plugin's credential. Raises Refused where it fails, Unreachable where it takes too long.

        One run of the plugin serves all who wait, and goes on when one of them gives up.
        """
        if self._credential is not None and not _expires_soon(self._credential):
            return self._credential
        if self._asking is None:
            self._asking = asyncio.create_task(self._run(), name=f"exec plugin {self._plugin.command}")
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    def forget(self) -> None:
        """Ask the plugin again next time."""
        self._credential = None

    def _asked(self, task: asyncio.Task[Credential]) -> None:
        self._asking = None
        if not task.cancelled() and task.exception() is None:
            self._credential = task.result()

    async def _run(self) -> Credential:
        plugin = self._plugin
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise Refused(f"exec plugin {plugin.command} cannot be run: {error.strerror}{hint}") from error
        output = await _output(process, plugin)
        return _parse_credential(plugin, output)


async def _output(process: asyncio.subprocess.Process, plugin: ExecPlugin) -> bytes:
    try:
        async with asyncio.timeout(plugin.timeout_s):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise Unreachable(f"exec plugin {plugin.command} did not finish within {plugin.timeout_s:g} s") from error
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode:
        said = errors.decode(errors="replace").strip()[-300:] or "nothing"
        raise Refused(f"exec plugin {plugin.command} failed with code {process.returncode}: it said {said}")
    return output


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a plugin and wait for it, but not for children that it left behind with its output."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await process.communicate()


def _exec_info(plugin: ExecPlugin) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = dict(plugin.cluster)
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def _parse_credential(plugin: ExecPlugin, output: bytes) -> Credential:
    try:
        status = json.loads(output)["status"]
        expires = status.get("expirationTimestamp")
        credential = Credential(
            token=status.get("token"),
            certificate=status.get("clientCertificateData"),
            key=status.get("clientKeyData"),
            expires_at=datetime.fromisoformat(expires) if expires else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"exec plugin {plugin.command} printed no ExecCredential with a status") from error
    if credential.token is None and (credential.certificate is None or credential.key is None):
        raise Refused(f"exec plugin {plugin.command} gave neither a token nor a client certificate with its key")
    return credential


def _expires_soon(credential: Credential) -> bool:
    return credential.expires_at is not None and datetime.now(UTC) >= credential.expires_at - EXEC_REFRESH_EARLY
