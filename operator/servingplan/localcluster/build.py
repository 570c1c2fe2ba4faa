"""Builds the programs of the local cluster once, into the user's cache folder.

In: the Go sources that lie beside this file. Out: `Programs`, paths of what was built. A build is keyed by a digest
over its sources, so that an upgrade builds anew and everything else starts from the cache, also without Go.
One program after the other: each go build uses all cores.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servingplan.errors import Problem
from servingplan.localcluster.failures import ToolchainProblem
from servingplan.localcluster.progress import BuildProgress
from servingplan.localcluster.toolchain import Go, find_go, module_version

SOURCES = Path(__file__).parent
STAGE_CRD = "kustomize/crd/bases/kwok.x-k8s.io_stages.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one program is built.

    name: of the program and of its source folder. package: what ``go build`` is given. version_of: the module whose
    version goes into ``version_variables``. shipped: files of modules that are kept beside the program (file name to
    module and path in it). links: further names of the program.
    """

    name: str
    package: str
    why: str
    version_of: str
    version_variables: tuple[str, ...]
    shipped: Mapping[str, tuple[str, str]]
    links: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its sources lie."""
        return SOURCES / self.name

    @property
    def linker_flags(self) -> str:
        """No symbol tables, and the version that the program states."""
        version = module_version((self.folder / "go.mod").read_text(), self.version_of)
        stated = (f"-X {variable}={version}" for variable in self.version_variables)
        return " ".join(("-s -w", *stated))


CONTROL_PLANE = Recipe(
    name="controlplane",
    package=".",
    why="etcd, the Kubernetes control plane and kubectl: about 2,000 Go packages, 4 to 10 minutes on 2 cores, once",
    version_of="k8s.io/kubernetes",
    version_variables=("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"),
    shipped={},
    links=("kubectl",),
)
KWOK = Recipe(
    name="kwok",
    package="sigs.k8s.io/kwok/cmd/kwok",
    why="kwok, which plays nodes and pods: 1 to 4 minutes on 2 cores, once",
    version_of="sigs.k8s.io/kwok",
    version_variables=("sigs.k8s.io/kwok/pkg/consts.Version",),
    shipped={"stages.yaml": ("sigs.k8s.io/kwok", STAGE_CRD)},
    links=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What a local cluster runs.

    controlplane: one program; its first argument, or the name it is called by, says which component. kubectl: a link
    to it. stage_crd: the CustomResourceDefinition of kwok's Stage.
    """

    controlplane: Path
    kubectl: Path
    kwok: Path
    stage_crd: Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/servingplan/localcluster``, by default below ``~/.cache``."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path counts as not set.
    root = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return root / "servingplan" / "localcluster"


def digest(recipe: Recipe) -> str:
    """The key of a build: its Go sources, go.mod, go.sum, flags and the machine's kind; 16 hex digits.

    Go's own version is not in it: any Go from the one in go.mod on builds the same modules, and a cached program
    has to start where Go is missing or was upgraded.
    """
    hashed = hashlib.sha256()
    for part in (recipe.package, recipe.linker_flags, platform.system(), platform.machine()):
        hashed.update(part.encode() + b"\0")
    for file in _source_files(recipe):
        content = file.read_bytes()
        hashed.update(f"{file.name}\0{len(content)}\0".encode() + content)
    return hashed.hexdigest()[:16]


def ensure_built(cache: Path | None = None) -> Programs:
    """The programs, from the cache or built now with progress on standard error.

    Safe against other processes that do the same. Raises `ToolchainProblem` when Go is missing, too old or fails.
    """
    cache = cache or cache_folder()
    controlplane, kwok = (_ensure(recipe, cache) for recipe in (CONTROL_PLANE, KWOK))
    return Programs(
        controlplane=controlplane / "controlplane",
        kubectl=controlplane / "kubectl",
        kwok=kwok / "kwok",
        stage_crd=kwok / "stages.yaml",
    )


def _source_files(recipe: Recipe) -> list[Path]:
    return sorted(file for file in recipe.folder.iterdir() if file.suffix == ".go" or file.name in {"go.mod", "go.sum"})


def _ensure(recipe: Recipe, cache: Path) -> Path:
    target = cache / f"{recipe.name}-{digest(recipe)}"
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{recipe.name}.lock", recipe):
        if not target.is_dir():
            _build(recipe, target)
    return target


@contextmanager
def _locked(lock: Path, recipe: Recipe) -> Iterator[None]:
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with BuildProgress(f"Waiting for another process that builds {recipe.name}"):
                fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _build(recipe: Recipe, target: Path) -> None:
    # Beside the target, so that the rename at the end is atomic; a killed build leaves a folder that no one takes
    # for a result, and the next build of this recipe removes it.
    for left_over in target.parent.glob(f".{recipe.name}-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{recipe.name}-", dir=target.parent))
    try:
        go = find_go(recipe.folder)
        with BuildProgress(f"Building {recipe.why}") as progress:
            _compile(recipe, go, unfinished, progress)
        for link in recipe.links:
            (unfinished / link).symlink_to(recipe.name)
        for name, (module, path) in recipe.shipped.items():
            shutil.copyfile(_module_folder(go, recipe, module) / path, unfinished / name)
        unfinished.chmod(0o755)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _compile(recipe: Recipe, go: Go, into: Path, progress: BuildProgress) -> None:
    command = (
        *(str(go.program), "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath"),
        f"-ldflags={recipe.linker_flags}",
        *("-o", str(into / recipe.name), recipe.package),
    )
    with subprocess.Popen(  # noqa: S603 - the go program that find_go found
        command, cwd=recipe.folder, env=_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None  # noqa: S101 - asked for as a pipe above
        for line in process.stderr:
            progress.saw(line.rstrip())
    if process.returncode != 0:
        raise ToolchainProblem(
            Problem(
                path=str(recipe.folder),
                reason="BuildFailed",
                message=f"`go build` ended with {process.returncode}; its last lines: {progress.last_lines()}",
            )
        )


def _module_folder(go: Go, recipe: Recipe, module: str) -> Path:
    answer = subprocess.run(  # noqa: S603 - the go program that find_go found
        [str(go.program), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module],
        cwd=recipe.folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(answer.stdout.strip())


def _environment() -> dict[str, str]:
    # Without cgo a build needs no C compiler; a go.work around the sources would pull in unrelated modules.
    return os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
