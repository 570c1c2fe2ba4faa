"""Offline throughput: what ``vllm bench throughput`` measured, and what it means for a batch on the reserve.

In: its JSON, or a model to run it on. Out: requests and tokens a second of one replica, and hours of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from servingplan.benchmarking.child import BenchFailed, Child
from servingplan.benchmarking.results import invalid, parsed
from servingplan.planning.plan import Plan

LONGEST_S = 4 * 3600.0
"""For one run: far more than a thousand requests take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Of one replica without any objective; tokens are those of prompts and answers."""

    requests_per_second: float
    tokens_per_second: float

    @property
    def lines(self) -> tuple[str, ...]:
        """For people."""
        return (f"{self.requests_per_second:.4g} requests/s, {self.tokens_per_second:,.0f} tokens/s a replica",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """How long `requests` take: hours by number of replicas."""

    requests: int
    hours: Mapping[int, float]

    @property
    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "requests": self.requests,
            "hours": [{"replicas": replicas, "hours": round(hours, 3)} for replicas, hours in self.hours.items()],
        }

    @property
    def lines(self) -> tuple[str, ...]:
        """For people."""
        return tuple(
            f"{self.requests:,} requests take {hours:.2f} h on {replicas} replica{'' if replicas == 1 else 's'}"
            for replicas, hours in self.hours.items()
        )


def read_throughput(path: Path) -> Throughput:
    """The result in a file. Raises InputError that names the key and what to do."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise invalid(str(path), "", f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise invalid(str(path), "", f"it is no JSON ({error}): was the run cut off?") from error
    found = parsed(text, str(path), program="vllm bench throughput")
    return Throughput(
        requests_per_second=_positive(found, "requests_per_second", path),
        tokens_per_second=_positive(found, "tokens_per_second", path),
    )


def _positive(found: Mapping[str, Any], key: str, path: Path) -> float:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 < value < math.inf):
        raise invalid(str(path), key, "it is no positive number: name what `vllm bench throughput` wrote")
    return float(value)


def batch_on_reserve(found: Throughput, requests: int, plan: Plan | None) -> BatchTime:
    """Hours of a batch on one replica, and on the quiet reserve of a plan where that is another number."""
    sizes = {1} if plan is None else {1, max(1, plan.reserve.quiet)}
    return BatchTime(
        requests=requests,
        hours={size: requests / (found.requests_per_second * size) / 3600 for size in sorted(sizes)},
    )


async def measure(
    model: str, *, vllm: str, input_len: int, output_len: int, num_prompts: int, arguments: Sequence[str]
) -> Throughput:
    """Run ``vllm bench throughput`` here. Raises `BenchFailed` with its last lines, UsageError without the program."""
    with TemporaryDirectory(prefix="servingplan-bench-") as folder:
        result = Path(folder) / "throughput.json"
        command = [
            vllm, "bench", "throughput",
            "--model", model,
            "--dataset-name", "random",
            "--random-input-len", str(input_len),
            "--random-output-len", str(output_len),
            "--num-prompts", str(num_prompts),
            "--output-json", str(result),
            *arguments,
        ]  # fmt: skip
        child = await Child.start(command, log=Path(folder) / "log")
        ended = await child.wait(LONGEST_S)
        if ended.code != 0 or not result.exists():
            how = "did not end in time" if ended.code is None else f"ended with {ended.code}"
            raise BenchFailed(f"`vllm bench throughput` {how}; its last lines:\n{ended.output}")
        return read_throughput(result)
