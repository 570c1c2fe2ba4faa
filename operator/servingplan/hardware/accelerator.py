"""An accelerator: what a GPU has, how many stand in a node, and what one costs.

In: made by `inventory`, from the table that ships with the package or one of a user's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GIB = 1024**3


class Link(StrEnum):
    """How the GPUs of a node talk to each other."""

    NVLINK = "NVLink"
    PCIE = "PCIe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One kind of GPU.

    memory: bytes that the driver shows, less than the name says. bandwidth: bytes/s of its memory. tflops: dense
    TFLOPS at 16 bits. tflops_8bit: at 8 bits, None where it has no units for them. price: of one GPU and hour, in any
    currency, None where it is not known. ampere: vLLM's defaults are smaller on the A100.
    """

    name: str
    memory: int
    bandwidth: float
    tflops: float
    tflops_8bit: float | None
    link: Link
    gpus_per_node: int
    price: float | None
    ampere: bool

    @property
    def memory_gib(self) -> float:
        """GiB that the driver shows."""
        return self.memory / GIB
