"""How fast a replica is, by a roofline: an estimate of TPOT, TTFT and capacity before anything can be measured.

In: a model, a layout, an accelerator, a memory and a workload. Out: `Speed` at a rate, and the rate at which an
objective breaks. Method of arXiv 2402.16363; efficiencies are our own, and the result is within a factor of 1.5 at
best. It never feeds a plan by itself: a benchmark replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from servingplan.hardware.accelerator import Accelerator, Link
from servingplan.hardware.engine import Engine
from servingplan.hardware.lengths import Lengths
from servingplan.hardware.memory import Memory
from servingplan.hardware.model import Attention, AttentionLayer, Model, Role, StateLayer
from servingplan.hardware.pages import token_bytes
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.traffic import Occupancy, Workload, fits, occupancy

ERROR_FACTOR = 1.5
"""How far the estimate may be off, either way."""

BANDWIDTH_SHARE = 0.75
"""Share of the memory's bandwidth that decoding reaches."""

DECODE_SHARE, PREFILL_SHARE = 0.5, 0.45
"""Shares of the peak FLOPS that decoding and prefill reach."""

STEP_SECONDS = 3e-3
"""What scheduling and sampling add to each step."""

ALL_REDUCE_SECONDS = {Link.NVLINK: 15e-6, Link.PCIE: 50e-6}
"""One all-reduce of a decoding step; two a layer."""

_ROUNDS = 200
_STEPS = 60


class Bound(StrEnum):
    """What breaks first when the rate rises."""

    MEMORY = "KV cache"
    SEQUENCES = "max_num_seqs"
    TPOT = "TPOT"
    TTFT = "TTFT"
    E2EL = "E2EL"
    COMPUTE = "prefill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica: the model on its GPUs."""

    model: Model
    layout: Layout
    engine: Engine
    accelerator: Accelerator
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One replica at a rate. Seconds; `ttft` p95, infinite where prefill takes more than all the time.

    busy: share of the time that prefill takes.
    """

    rate: float
    tpot: float
    ttft: float
    e2el: float
    busy: float
    held: Occupancy


def decode_seconds(replica: Replica, batch: float, tokens: float) -> float:
    """One decoding step of `batch` requests that hold `tokens` in the cache.

    (weights that are touched + tokens x bytes) / (0.75 bandwidth tensor) + 3 ms + 2 layers all-reduces, and not below
    2 active parameters x batch / (0.5 FLOPS tensor). A pipeline decodes pipeline batches at once, each on its way
    through all stages.
    """
    model, layout, accelerator = replica.model, replica.layout, replica.accelerator
    batch, tokens = batch / layout.pipeline, tokens / layout.pipeline
    traffic = touched_bytes(model, batch) + tokens * cache_traffic(replica)
    read = traffic / (BANDWIDTH_SHARE * accelerator.bandwidth * layout.tensor)
    compute = 2 * model.active_parameters * batch / (DECODE_SHARE * flops(replica) * layout.tensor)
    reduces = 2 * len(model.layers) * ALL_REDUCE_SECONDS[accelerator.link] if layout.tensor > 1 else 0.0
    return max(read + STEP_SECONDS + reduces, compute)


def touched_bytes(model: Model, batch: float) -> float:
    """Bytes of weights that a step reads: of E experts, E (1 - (1 - k / E)^batch)."""
    total = 0.0
    for part in model.weights:
        if part.role is Role.ENCODER or (part.role is Role.EMBEDDING and not model.tied):
            continue
        share = 1.0
        if part.role is Role.EXPERTS and model.experts is not None:
            share = 1 - (1 - model.experts.per_token / model.experts.count) ** max(batch, 1.0)
        total += part.size * share
    return total


def cache_traffic(replica: Replica) -> float:
    """Bytes read for each token in the cache at a step, over all GPUs; layers with a window or state read less."""
    layout = replica.layout
    return sum(
        float(token_bytes(cache, layout, replica.engine, replica.model.dtype_bytes)) * layout.tensor
        for cache in replica.model.caches
        if isinstance(cache, AttentionLayer) and cache.kind in {Attention.FULL, Attention.LATENT}
    )


def flops(replica: Replica) -> float:
    """Peak FLOPS/s of one GPU for these weights: at 8 bits where they and the GPU have it."""
    accelerator, method = replica.accelerator, replica.model.quantization
    eight = method in {"fp8", "fbgemm_fp8", "modelopt", "int8"} or (
        method == "compressed-tensors" and 8 <= replica.model.weight_bits < 16
    )
    tflops = accelerator.tflops_8bit if eight and accelerator.tflops_8bit is not None else accelerator.tflops
    return tflops * 1e12


def prefill_seconds(replica: Replica, length: float) -> float:
    """A prompt of `length` tokens: (2 active parameters s + 2 layers hidden s^2) / (0.45 FLOPS tensor)."""
    model = replica.model
    attention = sum(1 for cache in model.caches if not isinstance(cache, StateLayer))
    work = 2 * model.active_parameters * length + 2 * attention * model.hidden * length**2
    return work / (PREFILL_SHARE * flops(replica) * replica.layout.tensor)


def _mean_prefill(replica: Replica, input_: Lengths) -> tuple[float, float]:
    """Mean of the prefill time, and its squared coefficient of variation, over the prompts' lengths."""
    times = [prefill_seconds(replica, input_.quantile((i + 0.5) / _STEPS)) for i in range(_STEPS)]
    mean = sum(times) / _STEPS
    return mean, sum((time - mean) ** 2 for time in times) / _STEPS / mean**2


def speed(replica: Replica, workload: Workload, rate: float) -> Speed:
    """One replica at `rate` requests/s, to a fixed point.

    busy = rate E[prefill] / pipeline; TPOT = decode / (1 - busy); batch = rate TPOT E[out]; TTFT p95 = prefill of the
    p95 prompt + a step + 3 busy (1 + cv^2) E[prefill] / (2 (1 - busy)), the wait of a queue.
    """
    mean, variation = _mean_prefill(replica, workload.input)
    busy = rate * mean / replica.layout.pipeline
    if busy >= 1:
        endless = Occupancy(in_flight=math.inf, tokens=math.inf, deviation=math.inf)
        return Speed(rate=rate, tpot=math.inf, ttft=math.inf, e2el=math.inf, busy=busy, held=endless)
    tpot = decode_seconds(replica, 1, 0) / (1 - busy)
    held = occupancy(rate, tpot, workload.input, workload.output)
    for _ in range(_ROUNDS):
        step = decode_seconds(replica, max(held.in_flight, 1), held.tokens) / (1 - busy)
        if not math.isfinite(step) or step > 1e3:
            break
        settled = math.isclose(step, tpot, rel_tol=1e-6)
        tpot = step
        held = occupancy(rate, tpot, workload.input, workload.output)
        if settled:
            break
    wait = 3 * busy * (1 + variation) * mean / (2 * (1 - busy))
    ttft = prefill_seconds(replica, workload.input.quantile(0.95)) + tpot + wait
    return Speed(
        rate=rate, tpot=tpot, ttft=ttft, e2el=ttft + tpot * workload.output.quantile(0.95), busy=busy, held=held
    )


def broken(replica: Replica, workload: Workload, found: Speed) -> Iterator[Bound]:
    """What does not hold at this speed, in the order in which one would look."""
    limits = workload.objectives
    pool = replica.memory.pool
    if found.busy >= 1:
        yield Bound.COMPUTE
        return
    if pool is not None and not fits(pool, found.held, workload.input, workload.output):
        yield Bound.MEMORY
    if found.held.in_flight > replica.engine.max_num_seqs:
        yield Bound.SEQUENCES
    for bound, objective, seconds in (
        (Bound.TPOT, limits.tpot, found.tpot),
        (Bound.TTFT, limits.ttft, found.ttft),
        (Bound.E2EL, limits.e2el, found.e2el),
    ):
        if objective is not None and seconds > objective.limit / timedelta(seconds=1):
            yield bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimated capacity of one replica, what binds it, and its speed there. capacity: requests/s."""

    capacity: float
    bound: Bound
    at_capacity: Speed


def estimate(replica: Replica, workload: Workload) -> Estimate:
    """The largest rate at which everything holds, by bisection; 0 where nothing does."""
    highest = replica.layout.pipeline / _mean_prefill(replica, workload.input)[0]
    low, high = 0.0, highest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if next(broken(replica, workload, speed(replica, workload, middle)), None) is None:
            low = middle
        else:
            high = middle
    bound = next(broken(replica, workload, speed(replica, workload, high)), Bound.COMPUTE)
    return Estimate(
        capacity=low if low > 1e-9 * highest else 0.0, bound=bound, at_capacity=speed(replica, workload, low)
    )
