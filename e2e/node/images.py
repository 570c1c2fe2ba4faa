"""Images for real nodes, built and imported on this machine: nothing is pulled.

An image of `host_files` has no files of its own but links: with `HOST_VOLUMES` mounted it runs the host's programs, so
that nothing large is copied.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.node.machine import Unfit, program, static_busybox

HOST_IMAGE = """\
FROM scratch
COPY . /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
"""The beginning of a Containerfile for an image of `host_files`."""

HOST_MOUNTS = ({"name": "host-usr", "mountPath": "/usr", "readOnly": True},)
HOST_VOLUMES = ({"name": "host-usr", "hostPath": {"path": "/usr", "type": "Directory"}},)
"""What a pod of such an image mounts; lists for a pod template."""

_PAUSE = 'FROM scratch\nCOPY busybox /busybox\nENTRYPOINT ["/busybox", "sleep", "2147483647"]\n'


class Images:
    """Builds images into files below a folder. Raises AssertionError with the builder's output when one fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.archives: dict[str, Path] = {}

    def build(self, name: str, containerfile: str, files: Mapping[str, Path | str]) -> Path:
        """Builds an image, as ``localhost/engine:1``. files: by their path in the context; text, or a file's path."""
        place = self._folder / name.replace("/", "_").replace(":", "_")
        context = place / "context"
        context.mkdir(parents=True)
        for inside, content in files.items():
            _put(context / inside, content)
        (place / "Containerfile").write_text(containerfile)
        archive = place / "image.tar"
        self._buildah("bud", "--isolation=chroot", f"--file={place / 'Containerfile'}", f"--tag={name}", str(context))
        self._buildah("push", name, f"docker-archive:{archive}:{name}")
        self.archives[name] = archive
        return archive

    def pause(self, name: str) -> Path:
        """Builds the image that holds a pod's namespaces."""
        busybox = static_busybox()
        if busybox is None:
            raise Unfit("real nodes need a static busybox (Debian: busybox-static)")
        return self.build(name, _PAUSE, {"busybox": Path(busybox)})

    def _buildah(self, *arguments: str) -> None:
        storage = (f"--root={self._folder / 'storage'}", f"--runroot={self._folder / 'run'}", "--storage-driver=vfs")
        _checked([program("buildah"), *storage, *arguments])


def load(socket: Path, archive: Path) -> None:
    """Imports an image into a node's runtime, where its kubelet finds it."""
    _checked([program("ctr"), f"--address={socket}", "--namespace=k8s.io", "images", "import", str(archive)])


def host_files() -> dict[str, Path | str]:
    """The files of an image that runs the host's programs: its links into /usr, users, and the library cache."""
    links = [path for name in ("bin", "lib", "lib32", "lib64", "sbin") if (path := Path("/") / name).is_symlink()]
    tables = [Path("/etc") / name for name in ("passwd", "group", "ld.so.cache", "nsswitch.conf", "localtime")]
    empty = ("tmp/.keep", "root/.keep", "usr/.keep", "proc/.keep", "sys/.keep", "dev/.keep")
    files = [*links, *(table for table in tables if table.exists())]
    return {str(file.relative_to("/")): file for file in files} | dict.fromkeys(empty, "")


def on_the_host(container: str, **changes: Any) -> dict[str, Any]:
    """A pod template that lets a container of a `HOST_IMAGE` see the host's programs. changes: to that container."""
    mounts = [*HOST_MOUNTS, *changes.pop("volumeMounts", ())]
    return {
        "spec": {
            "containers": [{"name": container, "volumeMounts": mounts, **changes}],
            "volumes": list(HOST_VOLUMES),
        }
    }


def _put(target: Path, content: Path | str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        target.write_text(content)
    elif content.parent == Path("/"):  # a link of a merged /usr
        target.symlink_to(content.readlink())
    else:
        shutil.copy(content, target)


def _checked(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}{done.stdout}")
