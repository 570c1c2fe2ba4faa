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
from servingplan.hardware.model import AttentionLayer, Model, Role, StateLayer
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

_ROUNDS = 2000
_STEPS = 60
_PRECISION, _NOTHING = 1e-6, 1e-9
_HOPELESS = 1e3
"""Seconds a token at which the fixed point is not worth finding."""

_ENDLESS = Occupancy(in_flight=math.inf, tokens=math.inf, deviation=math.inf)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a step and a prompt cost a replica, worked out once.

    fixed, expert: bytes of weights that every step reads, and of all experts; taken: share of these for one token.
    token: bytes read for a token in the cache at a step, over all GPUs. bandwidth: bytes/s, flops: FLOPS/s of all GPUs
    of a stage together, efficiencies not included. overhead: seconds of a step. active: parameters that a token passes.
    attention: elements of hidden states over the layers that look back.
    """

    fixed: float
    expert: float
    taken: float
    token: float
    bandwidth: float
    flops: float
    overhead: float
    active: int
    attention: int
    pipeline: int

    def decode(self, batch: float, tokens: float) -> float:
        """Seconds of one decoding step of `batch` requests that hold `tokens` in the cache.

        (weights that are touched + tokens x bytes) / (0.75 bandwidth tensor) + 3 ms + 2 layers all-reduces, and not
        below 2 active parameters x batch / (0.5 FLOPS tensor). Of E experts a step touches E (1 - (1 - k / E)^batch).
        A pipeline decodes as many batches at once as it has stages, each on its way through all of them.
        """
        batch, tokens = batch / self.pipeline, tokens / self.pipeline
        experts = self.expert * (1 - math.pow(1 - self.taken, max(batch, 1.0)))
        touched = self.fixed + experts + tokens * self.token
        read = touched / (BANDWIDTH_SHARE * self.bandwidth) + self.overhead
        return max(read, 2 * self.active * batch / (DECODE_SHARE * self.flops))

    def prefill(self, length: float) -> float:
        """Seconds of a prompt of s tokens: (2 active parameters s + 2 layers hidden s^2) / (0.45 FLOPS tensor)."""
        return (2 * self.active * length + 2 * self.attention * length**2) / (PREFILL_SHARE * self.flops)


def costs(replica: Replica) -> Costs:
    """The costs of a replica."""
    model, tensor, accelerator = replica.model, replica.layout.tensor, replica.accelerator
    reduces = 2 * len(model.layers) * ALL_REDUCE_SECONDS[accelerator.link] if tensor > 1 else 0.0
    looking = sum(1 for cache in model.caches if not isinstance(cache, StateLayer))
    return Costs(
        fixed=sum(part.size for part in model.weights if part.role is not Role.EXPERTS and model.computes(part.role)),
        expert=sum(part.size for part in model.weights if part.role is Role.EXPERTS),
        taken=1.0 if model.experts is None else model.experts.per_token / model.experts.count,
        token=_cache_traffic(replica),
        bandwidth=accelerator.bandwidth * tensor,
        flops=flops(replica) * tensor,
        overhead=STEP_SECONDS + reduces,
        active=model.active_parameters,
        attention=looking * model.hidden,
        pipeline=replica.layout.pipeline,
    )


def _cache_traffic(replica: Replica) -> float:
    """Bytes read for each token in the cache at a step, over all GPUs; layers with a window or state read less."""
    layout = replica.layout
    return sum(
        float(token_bytes(cache, layout, replica.engine, replica.model.dtype_bytes)) * layout.tensor
        for cache in replica.model.caches
        if isinstance(cache, AttentionLayer) and cache.kind.keeps_all
    )


def flops(replica: Replica) -> float:
    """Peak FLOPS/s of one GPU for these weights: at 8 bits where they and the GPU have it."""
    accelerator, method = replica.accelerator, replica.model.quantization
    eight = method in {"fp8", "fbgemm_fp8", "modelopt", "int8"} or (
        method == "compressed-tensors" and 8 <= replica.model.weight_bits < 16
    )
    tflops = accelerator.tflops_8bit if eight and accelerator.tflops_8bit is not None else accelerator.tflops
    return tflops * 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """Prefill over the lengths of prompts: mean seconds, squared coefficient of variation, seconds at p95."""

    mean: float
    variation: float
    p95: float


def _prompts(cost: Costs, input_: Lengths) -> _Prompts:
    times = [cost.prefill(input_.quantile((i + 0.5) / _STEPS)) for i in range(_STEPS)]
    mean = sum(times) / _STEPS
    variation = sum((time - mean) ** 2 for time in times) / _STEPS / mean**2
    return _Prompts(mean=mean, variation=variation, p95=cost.prefill(input_.quantile(0.95)))


def speed(replica: Replica, workload: Workload, rate: float) -> Speed:
    """One replica at `rate` requests/s, to a fixed point.

    busy = rate E[prefill] / pipeline; TPOT = decode / (1 - busy); batch = rate TPOT E[out]; TTFT p95 = prefill of the
    p95 prompt + a step + 3 busy (1 + cv^2) E[prefill] / (2 (1 - busy)), the wait of a queue.
    """
    cost = costs(replica)
    return _speed(cost, _prompts(cost, workload.input), workload, rate)


def _speed(cost: Costs, prompts: _Prompts, workload: Workload, rate: float) -> Speed:
    busy = rate * prompts.mean / cost.pipeline
    if busy >= 1:
        return Speed(rate=rate, tpot=math.inf, ttft=math.inf, e2el=math.inf, busy=busy, held=_ENDLESS)
    tpot, held = _settled(cost, workload, rate, busy)
    wait = 3 * busy * (1 + prompts.variation) * prompts.mean / (2 * (1 - busy))
    ttft = prompts.p95 + tpot + wait
    e2el = ttft + tpot * workload.output.quantile(0.95)
    return Speed(rate=rate, tpot=tpot, ttft=ttft, e2el=e2el, busy=busy, held=held)


def _settled(cost: Costs, workload: Workload, rate: float, busy: float) -> tuple[float, Occupancy]:
    """TPOT and what is held, each of which follows from the other."""
    tpot = cost.decode(1, 0) / (1 - busy)
    held = occupancy(rate, tpot, workload.input, workload.output)
    for _ in range(_ROUNDS):
        step = cost.decode(max(held.in_flight, 1), held.tokens) / (1 - busy)
        held = occupancy(rate, step, workload.input, workload.output)
        if math.isclose(step, tpot, rel_tol=1e-6):
            return step, held
        if step > _HOPELESS:
            break
        tpot = step
    # Each request that waits makes the others wait longer: there is no steady state.
    return math.inf, _ENDLESS


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
    cost = costs(replica)
    prompts = _prompts(cost, workload.input)

    def at(rate: float) -> tuple[Speed, Bound | None]:
        found = _speed(cost, prompts, workload, rate)
        return found, next(broken(replica, workload, found), None)

    highest = cost.pipeline / prompts.mean
    low, high = 0.0, highest
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[1] is None else (low, middle)
        if high < _NOTHING * highest:
            low = 0.0
            break
    return Estimate(capacity=low, bound=at(high)[1] or Bound.COMPUTE, at_capacity=at(low)[0])
