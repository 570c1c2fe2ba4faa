"""How the layers of a model are spread over the GPUs of one replica.

In: tensor and pipeline sizes. Out: which layers a pipeline stage holds, as vLLM divides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """GPUs of one replica: tensor parallel within a stage, pipeline stages one after the other."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def gpus(self) -> int:
        """GPUs per replica."""
        return self.tensor * self.pipeline

    def __str__(self) -> str:
        """``TP2``, or ``TP8 x PP2``."""
        return f"TP{self.tensor}" if self.pipeline == 1 else f"TP{self.tensor} x PP{self.pipeline}"


def stages(layers: int, pipeline: int) -> Sequence[range]:
    """The layers of each pipeline stage.

    What does not divide goes to the stages before the last, from the back, because the last one holds the output layer
    (vLLM, `get_pp_indices`).
    """
    sizes = [layers // pipeline] * pipeline
    for i in range(2, layers % pipeline + 2):
        sizes[-i] += 1
    found, start = [], 0
    for size in sizes:
        found.append(range(start, start + size))
        start += size
    return found
