"""A cluster of the user's own, with the part of `LocalCluster`'s interface that any cluster can offer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from servingplan.localcluster.build import ensure_built
from servingplan.localcluster.kubectl import Kubectl


class ExternalCluster:
    """The cluster of a kubeconfig context; nothing is started, and nothing of it is changed but the tests' objects."""

    def __init__(self, context: str, folder: Path) -> None:
        installed = shutil.which("kubectl")
        program = Path(installed) if installed else ensure_built().kubectl
        self.kubectl = Kubectl(program, options=(f"--context={context}",))
        self.folder = folder
        self.kubeconfig = self._write("admin", self._config())

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Writes a kubeconfig with a fresh token of a service account, and returns its path."""
        token = self.kubectl("create", "token", service_account, f"--namespace={namespace}", "--duration=24h")
        config = self._config()
        config["users"] = [{"name": "account", "user": {"token": token.strip()}}]
        config["contexts"][0]["context"] |= {"user": "account", "namespace": namespace}
        return self._write(f"serviceaccount-{namespace}-{service_account}", config)

    def kubectl_as(self, kubeconfig: Path) -> Kubectl:
        """``kubectl`` with another kubeconfig, as one of `kubeconfig_for`."""
        return Kubectl(self.kubectl.program, options=(f"--kubeconfig={kubeconfig}",))

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.kubectl.json("config", "view", "--minify", "--raw", "--flatten")
        return config

    def _write(self, name: str, config: dict[str, Any]) -> Path:
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path
