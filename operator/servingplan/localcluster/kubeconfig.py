"""Kubeconfig files, with all they need inside, as JSON (which every reader of YAML reads).

Place in the flow: ``cluster`` writes one for each component, for the user, and for service accounts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

NAME = "servingplan-local"


def with_certificate(*, server: str, pki: Path, user: str, folder: Path) -> Path:
    """Writes ``folder/USER.kubeconfig``, which authenticates by the certificate ``pki/USER.crt``."""
    credentials = {
        "client-certificate-data": _encoded(pki / f"{user}.crt"),
        "client-key-data": _encoded(pki / f"{user}.key"),
    }
    return _write(folder / f"{user}.kubeconfig", server=server, pki=pki, credentials=credentials, namespace="default")


def with_token(*, server: str, pki: Path, token: str, namespace: str, path: Path) -> Path:
    """Writes ``path``, which authenticates by a bearer token and works in ``namespace``."""
    return _write(path, server=server, pki=pki, credentials={"token": token}, namespace=namespace)


def _write(path: Path, *, server: str, pki: Path, credentials: Mapping[str, str], namespace: str) -> Path:
    cluster = {"server": server, "certificate-authority-data": _encoded(pki / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": dict(credentials)}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": namespace}}],
        "current-context": NAME,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2))
    return path


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
