"""What vLLM logged when it started: versions, settings and bytes, in the place of estimates.

In: the text of a log, as `kubectl logs` prints it. Out: an `EngineLog`. Lines are known of v0.8 to v0.32: sizes of the
cache on one line or two, per worker or once. Of several workers the one with the least room counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from servingplan.hardware.accelerator import GIB
from servingplan.hardware.engine import Version
from servingplan.inventory.files import read_bytes, refuse

MAX_LOG_BYTES = 512 * 1024 * 1024

_PATTERNS = {
    "version": re.compile(r"(?:vLLM API server version|LLM engine \(v|\bversion) ?v?(\d+\.\d+[.\w]*)"),
    "tensor": re.compile(r"tensor_parallel_size=(\d+)"),
    "pipeline": re.compile(r"pipeline_parallel_size=(\d+)"),
    "max_len": re.compile(r"(?:max_seq_len=|Using max model len )(\d+)"),
    "cache_dtype": re.compile(r"kv_cache_dtype=['\"]?(\w+)"),
    "seqs": re.compile(r"(?:Defaulting max_num_seqs to |'max_num_seqs': )(\d+)"),
    "batched": re.compile(r"max_num_batched_tokens(?:=| to |': )(\d+)"),
    "utilization": re.compile(
        r"(?:GPU memory utilization is \(|'gpu_memory_utilization': |--gpu-memory-utilization(?:=| from ))(\d\.\d+)"
    ),
    "prefix_caching": re.compile(r"enable_prefix_caching=(True|False)"),
    "weights": re.compile(r"Model loading took ([\d.]+) GiB"),
    "activation": re.compile(r"torch peak memory increase: ([\d.]+) ?GiB"),
    "outside_torch": re.compile(r"non-torch forward increase memory: ([\d.]+) ?GiB"),
    "graphs": re.compile(r"Estimated CUDA graph memory: ([\d.]+) GiB total"),
    "cache": re.compile(r"Available KV cache memory: ([\d.]+) GiB"),
    "tokens": re.compile(r"KV cache size: (\d[\d,]*) tokens"),
    "concurrency": re.compile(r"tokens per request: (\d+(?:\.\d+)?)x"),
    "device": re.compile(r"total_memory=([\d.]+) ?GiB"),
}

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """One start. Bytes are of one GPU; None where the log does not say.

    cache: bytes for the KV cache. tokens, concurrency: as printed. device: bytes of the GPU.
    """

    path: str
    version: Version
    tensor: int
    pipeline: int
    max_len: int
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    utilization: float | None
    cache_dtype: str
    prefix_caching: bool
    weights: int | None
    activation: int | None
    outside_torch: int | None
    graphs: int | None
    cache: int | None
    tokens: int
    concurrency: float
    device: int | None


def read_log(path: Path) -> EngineLog:
    """The log of a start. Raises InputError for what is none, or ended before the cache was sized."""
    return parse_log(str(path), read_bytes(path, MAX_LOG_BYTES).decode("utf-8", errors="replace"))


def parse_log(path: str, text: str) -> EngineLog:
    """As `read_log`, from text."""
    text = _ANSI.sub("", text)
    found = {name: pattern.findall(text) for name, pattern in _PATTERNS.items()}
    if not found["version"]:
        refuse(path, "NoLog", "it names no version of vLLM: save the log from the start of the server on")
    missing = [name for name in ("tokens", "concurrency", "max_len") if not found[name]]
    if missing:
        refuse(path, "LogIncomplete", f"it does not say {_WORDS[missing[0]]}: the server did not start, or log INFO")
    tokens = min(int(number.replace(",", "")) for number in found["tokens"])
    if tokens == 0:
        refuse(path, "NoCache", "its KV cache holds no token: the server did not start")
    return EngineLog(
        path=path,
        version=Version.parse(found["version"][0]),
        tensor=_number(found["tensor"]) or 1,
        pipeline=_number(found["pipeline"]) or 1,
        max_len=int(found["max_len"][-1]),
        max_num_seqs=_number(found["seqs"]),
        max_num_batched_tokens=_number(found["batched"]),
        utilization=float(found["utilization"][0]) if found["utilization"] else None,
        cache_dtype=_cache_dtype(found["cache_dtype"]),
        prefix_caching=found["prefix_caching"][-1:] != ["False"],
        weights=_bytes(found["weights"], max),
        activation=_bytes(found["activation"], max),
        outside_torch=_bytes(found["outside_torch"], max),
        graphs=_bytes(found["graphs"], max),
        cache=_bytes(found["cache"], min),
        tokens=tokens,
        concurrency=min(float(number) for number in found["concurrency"]),
        device=_bytes(found["device"], min),
    )


_WORDS = {
    "tokens": "how large the KV cache is",
    "concurrency": "the maximum concurrency",
    "max_len": "the context length",
}


def _number(found: list[str]) -> int | None:
    return int(found[-1]) if found else None


def _bytes(found: list[str], choose: Callable[[Iterable[float]], float]) -> int | None:
    return round(choose([float(number) for number in found]) * GIB) if found else None


def _cache_dtype(found: list[str]) -> str:
    return found[-1] if found else "auto"
