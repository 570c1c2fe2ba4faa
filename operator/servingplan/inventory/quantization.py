"""How a checkpoint's weights are stored: bits of a linear weight, and which layers are left alone.

In: ``quantization_config`` of a config. Out: `Stored`. Bits include the scales that come with each group of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from servingplan.inventory.fields import Config

SCALE_BITS = 16
"""A group's scale, where the method does not say otherwise."""

MOST_BITS = 64

MXFP4_BITS, NVFP4_BITS = 4.25, 4.5
"""4 bits and a scale of 8 bits for each 32 (MXFP4) or 16 (NVFP4) weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How weights are stored.

    bits: of a linear weight, scales included. method: None where nothing is quantised. experts_only: other layers are
    in the model's own format.
    """

    bits: float
    method: str | None
    experts_only: bool = False


def stored(config: Config, dtype_bytes: int) -> Stored:
    """How the checkpoint is stored. Raises InputError for methods that are not known."""
    section = config.section("quantization_config") or config.section("compression_config")
    if not section:
        return Stored(bits=8.0 * dtype_bytes, method=None)
    method = str(section.get("quant_method") or section.get("quantization_method") or "")
    reader = _METHODS.get(method)
    if reader is None:
        config.refuse(
            "NotSupported",
            f"quantization_config.quant_method {method!r} is not known; known are {', '.join(sorted(_METHODS))}",
        )
    try:
        bits = reader(section)
    except (KeyError, TypeError, ValueError, StopIteration, AttributeError, ArithmeticError, IndexError):
        bits = 0.0
    if not 1 <= bits <= MOST_BITS:
        config.refuse("InvalidField", f"quantization_config of {method} does not say how many bits its weights have")
    return Stored(bits=bits, method=method, experts_only=method in _EXPERTS_ONLY)


def _grouped(bits: Any, group: Any, zero_bits: float = 0.0) -> float:
    """Bits and the share of a group's scale and zero point; a group of -1 is a whole row."""
    size = int(group)
    return float(bits) + ((SCALE_BITS + zero_bits) / size if size > 0 else 0.0)


def _gptq(section: Mapping[str, Any]) -> float:
    return _grouped(section["bits"], section.get("group_size", -1), float(section["bits"]))


def _awq(section: Mapping[str, Any]) -> float:
    bits = section["bits"] if "bits" in section else section["w_bit"]
    return _grouped(bits, section.get("group_size", section.get("q_group_size", -1)), float(bits))


def _fp8(section: Mapping[str, Any]) -> float:
    block = section.get("weight_block_size")
    return 8.0 + (32.0 / (block[0] * block[1]) if block else 0.0)


def _compressed(section: Mapping[str, Any]) -> float:
    weights = next(iter(section["config_groups"].values()))["weights"]
    if weights.get("type") == "float" and weights["num_bits"] == 4:
        return NVFP4_BITS if int(weights.get("group_size") or 16) == 16 else MXFP4_BITS
    return _grouped(weights["num_bits"], weights.get("group_size") or -1)


def _bits_and_bytes(section: Mapping[str, Any]) -> float:
    return 4.5 if section.get("load_in_4bit") or section.get("_load_in_4bit") else 8.0


def _modelopt(section: Mapping[str, Any]) -> float:
    algorithm = str(section["quant_algo"])
    return {"FP8": 8.0, "NVFP4": NVFP4_BITS, "MXFP8": 8.25}[algorithm]


_METHODS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "gptq": _gptq,
    "gptq_marlin": _gptq,
    "awq": _awq,
    "awq_marlin": _awq,
    "compressed-tensors": _compressed,
    "bitsandbytes": _bits_and_bytes,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "mxfp4": lambda _: MXFP4_BITS,
}

_EXPERTS_ONLY = frozenset({"mxfp4"})
