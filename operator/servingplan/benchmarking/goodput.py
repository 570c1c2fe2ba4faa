"""Which requests are good, and how many of each block.

In: the requests of a run and a plan's objectives. Out: criteria, each a share that must be reached, and counts by
block. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from servingplan.benchmarking.requests import Flags, Requests
from servingplan.planning.plan import Objectives

BLOCK_S = 30.0
"""Long against a request, short against a run: what waits together falls into one block."""

GOOD = "good"
"""The criterion of all objectives together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A share of requests that must be reached. name: ``good``, or the objective whose percentile it is."""

    name: str
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """So many requests were sent in a stretch of the window, and of them so many met each criterion, in their order."""

    sent: int
    met: tuple[int, ...]


def criteria(objectives: Objectives) -> tuple[Criterion, ...]:
    """The goodput share first, then every percentile that asks for more than it.

    A percentile is within its limit where that share of the requests is; one that the goodput share reaches is implied.
    """
    if objectives.goodput_share is None:
        raise ValueError("objectives without any limit: there is nothing to be good at")
    share = objectives.goodput_share
    percentiles = [(name, Decimal(objective.percentile[1:]) / 100) for name, objective in objectives.stated]
    stricter = tuple(Criterion(name=name, target=float(target)) for name, target in percentiles if target > share)
    return (Criterion(name=GOOD, target=float(share)), *stricter)


def met(requests: Requests, objectives: Objectives) -> dict[str, Flags]:
    """Which requests met each limit, and under ``good`` which met all. A failed one met none."""
    values = {"ttft": requests.ttft, "tpot": requests.tpot, "e2el": requests.latency}
    flags = {
        name: ~requests.failed & (values[name] <= objective.limit.total_seconds())
        for name, objective in objectives.stated
    }
    flags[GOOD] = np.logical_and.reduce([~requests.failed, *flags.values()])
    return flags


def blocks(requests: Requests, objectives: Objectives, *, start: float, length: float) -> tuple[Block, ...]:
    """The requests that started in [start, start + length) by block, all blocks equally long and about `BLOCK_S`."""
    wanted = criteria(objectives)
    flags = met(requests, objectives)
    edges = np.linspace(start, start + length, max(1, round(length / BLOCK_S)) + 1)
    place = np.searchsorted(edges, requests.started, side="right") - 1
    return tuple(
        Block(
            sent=int((place == index).sum()),
            met=tuple(int((flags[criterion.name] & (place == index)).sum()) for criterion in wanted),
        )
        for index in range(len(edges) - 1)
    )
