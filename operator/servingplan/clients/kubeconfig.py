"""Where the API server is and how to log in: from a kubeconfig, or from a pod's service account.

In: files and environment. Out: an `Endpoint`. Files are read once, at the start; nothing is sent.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from servingplan.clients.credentials import (
    Credential,
    CredentialSource,
    ExecCredential,
    ExecPlugin,
    FixedCredential,
    TokenFile,
)
from servingplan.errors import UsageError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_NOT_SUPPORTED = {
    "as": "impersonation",
    "as-groups": "impersonation",
    "as-user-extra": "impersonation",
    "auth-provider": "auth-provider (removed from Kubernetes; use exec)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One API server and how to talk to it. certificate, key and ca: PEM; ca None means the system's."""

    server: str
    credentials: CredentialSource
    namespace: str | None = None
    ca: str | None = None
    insecure: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    certificate: str | None = None
    key: str | None = None


def load_endpoint(
    *,
    context: str | None = None,
    kubeconfig: Path | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Endpoint:
    """Find the API server: a named kubeconfig or context first, then the pod's, then the usual kubeconfig.

    Raises UsageError that says what is missing, and where.
    """
    env = os.environ if environ is None else environ
    if context is None and kubeconfig is None and env.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(env, service_account)
    paths = [kubeconfig] if kubeconfig else _usual_paths(env)
    return _from_config(_merged(paths, named=kubeconfig is not None), context)


def _in_cluster(env: Mapping[str, str], folder: Path) -> Endpoint:
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    if not (folder / "token").is_file():
        raise UsageError(
            f"{folder}/token is missing: give the pod a service account, and do not turn off its token "
            "(automountServiceAccountToken)"
        )
    namespace = folder / "namespace"
    return Endpoint(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        credentials=TokenFile(folder / "token"),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else None,
        ca=_read(folder / "ca.crt", "certificate authority"),
    )


def _usual_paths(env: Mapping[str, str]) -> list[Path]:
    listed = [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A named part of a kubeconfig, with the folder that its relative paths start from."""

    content: Mapping[str, Any]
    folder: Path

    def text(self, key: str, what: str) -> str | None:
        """Read ``<key>-data`` (base64) or the file named by ``<key>``; None where neither is stated."""
        data, file = self.content.get(f"{key}-data"), self.content.get(key)
        if data:
            try:
                return base64.b64decode(data, validate=True).decode("ascii")
            except (binascii.Error, ValueError) as error:
                raise UsageError(f"kubeconfig: {key}-data is not base64 of PEM text") from error
        return _read(self.folder / str(file), what) if file else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    """All kubeconfig files as one: what a file states first, counts."""

    source: str
    current_context: str | None
    contexts: Mapping[str, _Entry]
    clusters: Mapping[str, _Entry]
    users: Mapping[str, _Entry]


def _merged(paths: list[Path], *, named: bool) -> _Config:
    source = os.pathsep.join(str(path) for path in paths)
    loaded = [(_load(path), path.parent) for path in paths if named or path.exists()]
    if not loaded:
        raise UsageError(f"no kubeconfig at {source}; set KUBECONFIG, or name a file with --kubeconfig")
    sections: dict[str, dict[str, _Entry]] = {"contexts": {}, "clusters": {}, "users": {}}
    current = None
    for content, folder in loaded:
        current = current or content.get("current-context") or None
        for section, entries in sections.items():
            for item in content.get(section) or ():
                part = item.get(section.removesuffix("s")) or {}
                entries.setdefault(str(item["name"]), _Entry(content=part, folder=folder))
    return _Config(source=source, current_context=current, **sections)


def _load(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(_read(path, "kubeconfig"))
    except yaml.YAMLError as error:
        raise UsageError(f"kubeconfig {path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"kubeconfig {path} holds no kubeconfig")
    return content


def _from_config(config: _Config, context: str | None) -> Endpoint:
    name = context or config.current_context
    if not name:
        raise UsageError(f"kubeconfig {config.source} has no current-context; name one with --context")
    chosen = _entry(config, "context", name).content
    cluster = _entry(config, "cluster", str(chosen.get("cluster")))
    user = _entry(config, "user", str(chosen["user"])) if chosen.get("user") else None
    server = cluster.content.get("server")
    if not server:
        raise UsageError(f"kubeconfig {config.source}: cluster {chosen.get('cluster')!r} has no server")
    return Endpoint(
        server=str(server),
        credentials=_credentials(user, cluster, config.source),
        namespace=chosen.get("namespace"),
        ca=cluster.text("certificate-authority", "certificate authority"),
        insecure=bool(cluster.content.get("insecure-skip-tls-verify")),
        tls_server_name=cluster.content.get("tls-server-name"),
        proxy_url=cluster.content.get("proxy-url"),
        certificate=user.text("client-certificate", "client certificate") if user else None,
        key=user.text("client-key", "client key") if user else None,
    )


def _entry(config: _Config, section: str, name: str) -> _Entry:
    entries: Mapping[str, _Entry] = getattr(config, f"{section}s")
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise UsageError(f"kubeconfig {config.source} has no {section} {name!r}; it has: {known}")
    return entries[name]


def _credentials(user: _Entry | None, cluster: _Entry, source: str) -> CredentialSource:
    if user is None:
        return FixedCredential()
    content = user.content
    for key, word in _NOT_SUPPORTED.items():
        if content.get(key):
            raise UsageError(f"kubeconfig {source}: {key} ({word}) is not supported; use a token or a certificate")
    if content.get("tokenFile"):
        return TokenFile(user.folder / str(content["tokenFile"]))
    if content.get("token"):
        return FixedCredential(Credential(token=str(content["token"])))
    if content.get("exec"):
        return ExecCredential(_exec_plugin(content["exec"], user.folder, cluster))
    if content.get("username"):
        raise UsageError(f"kubeconfig {source}: basic authentication is not served by Kubernetes any more")
    return FixedCredential()


def _exec_plugin(stated: Mapping[str, Any], folder: Path, cluster: _Entry) -> ExecPlugin:
    command = str(stated.get("command") or "")
    if not command:
        raise UsageError("kubeconfig: the user's exec names no command")
    relative = os.sep in command and not Path(command).is_absolute()
    return ExecPlugin(
        command=str(folder / command) if relative else command,
        args=tuple(str(arg) for arg in stated.get("args") or ()),
        env={str(item["name"]): str(item["value"]) for item in stated.get("env") or ()},
        api_version=str(stated.get("apiVersion") or ""),
        install_hint=str(stated.get("installHint") or ""),
        cluster=_told(cluster) if stated.get("provideClusterInfo") else None,
    )


def _told(cluster: _Entry) -> Mapping[str, Any]:
    """What a plugin is told about the cluster, in the shape that it expects."""
    told: dict[str, Any] = {"server": cluster.content.get("server")}
    ca = cluster.text("certificate-authority", "certificate authority")
    if ca is not None:
        told["certificate-authority-data"] = base64.b64encode(ca.encode()).decode()
    for key in ("insecure-skip-tls-verify", "tls-server-name", "proxy-url"):
        if cluster.content.get(key):
            told[key] = cluster.content[key]
    return told


def _read(path: Path, what: str) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{what} {path} cannot be read: {error.strerror}") from error
