"""Stand-ins for libraries that PyTorch's build for GPUs is linked against, so that it can be imported without them.

In: the folder torch/lib of an environment that has none of the GPU libraries. Out: one small shared library beside
PyTorch's own for each that they name and that is not there, with the symbols that they need of it. Every function
answers that there is no device, so no code for a GPU ever runs. Needs gcc and binutils (readelf, nm).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

Symbols = dict[str, dict[str, set[str]]]
"""Library, version ("" where symbols have none), names."""

OPENED_ON_USE = frozenset({"libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so"})
"""PyTorch opens these only when a GPU is used."""

FROM_THE_SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libgomp)\.so")

NO_DEVICE = 100
"""cudaErrorNoDevice, the code that PyTorch takes as "this machine has no GPU"."""

ANSWERS: Mapping[str, str] = {
    "cudaGetDeviceCount": f"int cudaGetDeviceCount(int *count) {{ if (count) *count = 0; return {NO_DEVICE}; }}",
    "cudaDriverGetVersion": "int cudaDriverGetVersion(int *version) { if (version) *version = 0; return 0; }",
    "cudaRuntimeGetVersion": "int cudaRuntimeGetVersion(int *version) { if (version) *version = 13000; return 0; }",
    "cudaGetLastError": "int cudaGetLastError(void) { return 0; }",
    "cudaPeekAtLastError": "int cudaPeekAtLastError(void) { return 0; }",
}
"""The functions whose answer PyTorch looks at while it is imported."""

SAYS_TEXT = re.compile(r"(Error(String|Name)|LastError)$")


def make_stubs(folder: Path) -> list[str]:
    """Write the missing libraries into `folder`, torch/lib; their names. Raises CalledProcessError where gcc fails."""
    libraries = [library for library in sorted(folder.glob("lib*.so")) if library.name not in OPENED_ON_USE]
    present = {library.name for library in folder.glob("lib*.so*")}
    missing = {name for library in libraries for name in _needed(library) if name not in present}
    symbols: Symbols = {name: defaultdict(set) for name in missing}
    for library in libraries:
        for name, version, symbol in _wanted(library, missing):
            symbols[name][version].add(symbol)
    for name in sorted(missing):
        _compile(folder / name, symbols[name])
    return sorted(missing)


def _needed(library: Path) -> Iterator[str]:
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", _output("readelf", "-dW", str(library))):
        if not FROM_THE_SYSTEM.match(name):
            yield name


def _wanted(library: Path, missing: set[str]) -> Iterator[tuple[str, str, str]]:
    """Library, version and name of each symbol that `library` wants of those that are missing."""
    owners = _owners_of_versions(library)
    for line in _output("nm", "-D", "--undefined-only", str(library)).splitlines():
        symbol, _, version = line.split()[-1].replace("@@", "@").partition("@")
        owner = owners.get(version) if version else _owner_by_name(symbol, missing)
        if owner in missing:
            yield str(owner), version, symbol


def _owners_of_versions(library: Path) -> dict[str, str]:
    """The library that each version of a symbol is wanted from."""
    owners: dict[str, str] = {}
    owner = ""
    for line in _output("readelf", "-VW", str(library)).splitlines():
        if file := re.search(r"File: (\S+)", line):
            owner = file[1]
        elif owner and (version := re.search(r"Name: (\S+)", line)):
            owners[version[1]] = owner
    return owners


def _owner_by_name(symbol: str, missing: set[str]) -> str | None:
    """Symbols without a version begin with the name of their library, as ncclSend of libnccl; the longest fits."""
    named = {name.removeprefix("lib").partition(".")[0].lower(): name for name in missing}
    fitting = [stem for stem in named if symbol.lower().startswith(stem)]
    return named[max(fitting, key=len)] if fitting else None


def _compile(library: Path, symbols: Mapping[str, set[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, versions = Path(folder, "stubs.c"), Path(folder, "versions")
        names = sorted(name for some in symbols.values() for name in some)
        source.write_text("".join(f"{_function(name)}\n" for name in names))
        command = ["gcc", "-shared", "-fPIC", "-Os", "-w", "-s", "-fno-builtin", f"-Wl,-soname,{library.name}"]
        if any(symbols):
            blocks = (
                f"{version} {{ global: {'; '.join(sorted(symbols[version]))}; }};" for version in symbols if version
            )
            versions.write_text("\n".join(blocks))
            command.append(f"-Wl,--version-script={versions}")
        subprocess.run([*command, "-o", str(library), str(source)], check=True)


def _function(name: str) -> str:
    if name in ANSWERS:
        return ANSWERS[name]
    if SAYS_TEXT.search(name):
        return f'const char *{name}(void) {{ return "there is no GPU here"; }}'
    return f"long {name}(void) {{ return {NO_DEVICE}; }}"


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
