"""What is asked of the replicas, and what that holds in the KV cache: Little's law, and Campbell's for tokens.

In: a rate, token lengths, the time of an output token. Out: requests in flight, tokens in the cache and their spread,
blocks of the pool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from servingplan.hardware.kv_cache import Pool, request_blocks
from servingplan.hardware.lengths import Lengths
from servingplan.planning.plan import Objectives

Z_99 = 2.326
"""Standard deviations of the 99 % quantile of a normal distribution."""

POOL_SHARE = 0.95
"""The share of the pool that may be full at p99: beyond, vLLM starts to preempt. Our own rule."""

LONG = 0.95
"""The quantile of lengths that stands for a long request where layers hold a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a request looks like, when it is good, and how much comes.

    rate: requests/s of the busiest ordinary time. burst: times `rate`, for `burst_duration`.
    """

    rate: float
    input: Lengths
    output: Lengths
    objectives: Objectives
    burst: float
    burst_duration: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """What is in flight. tokens: in the cache, mean and standard deviation. in_flight: requests that decode."""

    in_flight: float
    tokens: float
    deviation: float

    @property
    def p99(self) -> float:
        """Tokens that are not exceeded 99 % of the time."""
        return self.tokens + Z_99 * self.deviation


def occupancy(rate: float, tpot: float, input_: Lengths, output: Lengths) -> Occupancy:
    """What a replica holds at `rate` requests/s, `tpot` seconds an output token.

    in flight = rate TPOT E[out] (Little); tokens = rate TPOT E[in out + out^2 / 2], variance = rate TPOT
    E[in^2 out + in out^2 + out^3 / 3] (Campbell: each request holds in + k tokens for TPOT after its k-th token).
    """
    i1, i2 = input_.moment(1), input_.moment(2)
    o1, o2, o3 = output.moment(1), output.moment(2), output.moment(3)
    load = rate * tpot
    return Occupancy(
        in_flight=load * o1,
        tokens=load * (i1 * o1 + o2 / 2),
        deviation=math.sqrt(load * (i2 * o1 + i1 * o2 + o3 / 3)),
    )


def blocks_p99(pool: Pool, held: Occupancy, input_: Lengths, output: Lengths) -> float:
    """Blocks of the pool that are not exceeded 99 % of the time.

    Groups that keep all tokens hold them all; those with a window or a state hold for each request what a long one
    needs at most.
    """
    everything = [group for group in pool.groups if group.first.kind is not None and group.first.kind.keeps_all]
    limited = [group for group in pool.groups if group not in everything]
    requests = held.in_flight + Z_99 * math.sqrt(held.in_flight)
    long = math.ceil(input_.quantile(LONG) + output.quantile(LONG))
    needed = sum(held.p99 / group.first.tokens for group in everything)
    return needed + (requests * request_blocks(limited, long, 0) if limited else 0.0)


def fits(pool: Pool, held: Occupancy, input_: Lengths, output: Lengths) -> bool:
    """Whether the cache holds it: p99 within 95 % of the pool."""
    return blocks_p99(pool, held, input_, output) <= POOL_SHARE * pool.blocks


def lengths_blocks(pool: Pool, input_: Lengths, output: Lengths, share: float) -> int:
    """Blocks of one request whose prompt and answer are both at this quantile, at its end."""
    return request_blocks(pool.groups, max(1, math.ceil(input_.quantile(share) + output.quantile(share))), 0)
