"""How a model is served: vLLM's settings as far as they decide memory.

In: flags, a plan's engine or a log. Out: read by `pages`, `kv_cache` and `margins`. Defaults are vLLM's own, by its
version and the accelerator's memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

BLOCK_TOKENS = 16
"""Tokens a KV block, vLLM's default on GPUs."""

CACHE_BYTES: Mapping[str, Fraction] = {
    "bfloat16": Fraction(2),
    "float16": Fraction(2),
    "fp8": Fraction(1),
    "fp8_e4m3": Fraction(1),
    "fp8_e5m2": Fraction(1),
}
"""Bytes of an element in the KV cache, by ``--kv-cache-dtype``; ``auto`` takes the model's own."""

LATENT_TOKEN_BYTES: Mapping[str, int] = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
"""Bytes a token and layer of the packed formats that only latent attention has (vLLM, mla_attention.py)."""

CACHE_DTYPES = ("auto", *CACHE_BYTES, *LATENT_TOKEN_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Version:
    """A release of vLLM."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Version:
        """``0.19.0`` or ``v0.32``. Raises ValueError where the text is none."""
        found = re.match(r"v?(\d+)\.(\d+)", text)
        if found is None:
            raise ValueError(f"{text!r} is no version of vLLM: write for example 0.32")
        return cls(major=int(found[1]), minor=int(found[2]))

    def __str__(self) -> str:
        """``0.32``."""
        return f"{self.major}.{self.minor}"


KNOWN_VERSION = Version(major=0, minor=32)
"""The release whose source these rules were read in."""

TOKENS_BY_GROUP = Version(major=0, minor=19)
"""Up to here the log counts blocks // groups x 16 as the cache's size, later concurrency x max_model_len."""

GRAPHS_COUNTED = Version(major=0, minor=21)
"""From here on the memory of CUDA graphs is taken off before the cache is sized (said by vLLM's own log)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One replica's settings.

    max_model_len, max_num_batched_tokens: tokens. max_num_seqs: requests that run at once. utilization: share of the
    GPU's memory that vLLM may take. cache_dtype: one of `CACHE_DTYPES`. prefix_caching: whether prompts share blocks.
    """

    version: Version = KNOWN_VERSION
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    utilization: float
    cache_dtype: str = "auto"
    prefix_caching: bool = True

    def tokens_in_flight(self, pipeline: int) -> int:
        """Tokens scheduled and not yet settled, which sliding and chunked layers hold beyond their window.

        One batch up to v0.19. Later one a pipeline stage and one more, as batches are scheduled ahead (vLLM,
        `VllmConfig.max_in_flight_tokens`; without its second model runner a deeper pipeline holds one less).
        """
        batches = 1 if self.version <= TOKENS_BY_GROUP else pipeline + 1
        return batches * self.max_num_batched_tokens


LARGE_GPU_GIB = 70
HUGE_GPU_GIB = 160


def default_max_num_seqs(memory_gib: float, *, ampere: bool) -> int:
    """Requests at once where nothing is said: 1,024 on large GPUs but the A100, else 256 (`get_batch_defaults`)."""
    return 1024 if memory_gib >= LARGE_GPU_GIB and not ampere else 256


def default_max_num_batched_tokens(memory_gib: float, *, ampere: bool) -> int:
    """Tokens a step where nothing is said (vLLM, `get_batch_defaults`)."""
    if memory_gib >= HUGE_GPU_GIB:
        return 16384
    return 8192 if memory_gib >= LARGE_GPU_GIB and not ampere else 2048


def default_utilization(version: Version) -> float:
    """``--gpu-memory-utilization`` where nothing is said: 0.92, and 0.9 up to v0.19."""
    return 0.9 if version <= TOKENS_BY_GROUP else 0.92
