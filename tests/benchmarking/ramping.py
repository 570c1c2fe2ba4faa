"""Whole ramps on a simulated server, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

import numpy as np

from servingplan.benchmarking.effort import STANDARD, Effort
from servingplan.benchmarking.goodput import blocks, criteria
from servingplan.benchmarking.run import Run
from servingplan.benchmarking.search import Finding, Measure, Ramp, next_step
from servingplan.planning.plan import Objectives
from support.queueing import COOL_DOWN_S, STEEP, Server, true_capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramped:
    """How a ramp ended, and all that it measured."""

    finding: Finding
    runs: tuple[Run, ...]


def measure(
    server: Server, step: Measure, objectives: Objectives, rng: np.random.Generator, *, burstiness: float = 1.0,
    effort: Effort = STANDARD,
) -> Run:  # fmt: skip
    """One run of the simulated server."""
    window = effort.window_s * (2 if step.extended else 1)
    seconds = effort.warm_up_s + window + COOL_DOWN_S
    requests = server.serve(rng, rate=step.rate, seconds=seconds, burstiness=burstiness)
    return Run(
        rate=step.rate,
        seed=int(rng.integers(2**31)),
        extended=step.extended,
        took_s=seconds,
        window_s=window,
        blocks=blocks(requests, objectives, start=effort.warm_up_s, length=window),
    )


def ramp_up(
    server: Server, objectives: Objectives, *, start: float, seed: int, burstiness: float = 1.0,
    effort: Effort = STANDARD, longest_s: float = 1e9,
) -> Ramped:  # fmt: skip
    """A whole ramp. seed: of all noise."""
    rng = np.random.default_rng(seed)
    ramp = Ramp(criteria=criteria(objectives), effort=effort, start=start, longest_s=longest_s, seed=seed)
    runs: list[Run] = []
    while isinstance(step := next_step(ramp, runs), Measure):
        runs.append(measure(server, step, objectives, rng, burstiness=burstiness, effort=effort))
    return Ramped(finding=step, runs=tuple(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Ramps on one server. offs: capacity found / truth - 1. covers: whether the interval held the truth.

    widths: failing / capacity. minutes: of a ramp.
    """

    truth: float
    offs: tuple[float, ...]
    covers: tuple[bool, ...]
    widths: tuple[float, ...]
    minutes: float


def accounted(name: str, *, each: int, runs: int = 150) -> Account:
    """So many ramps on one of the servers of `STEEP`, from starts between a quarter and two thirds of its capacity.

    runs: by which the truth is found.
    """
    server, objectives, burstiness = STEEP[name]
    number = list(STEEP).index(name)
    truth = true_capacity(server, objectives, burstiness=burstiness, runs=runs)
    starts = np.random.default_rng(number).uniform(1.5, 4, each)
    ramps = [
        ramp_up(server, objectives, start=truth / start, seed=1000 * number + seed, burstiness=burstiness)
        for seed, start in enumerate(starts)
    ]
    found = [(ramp.finding.capacity or 0.0, ramp.finding.failing or np.inf) for ramp in ramps]
    return Account(
        truth=truth,
        offs=tuple(capacity / truth - 1 for capacity, _ in found),
        covers=tuple(capacity <= truth <= failing for capacity, failing in found),
        widths=tuple(failing / capacity if capacity else np.inf for capacity, failing in found),
        minutes=mean(sum(run.took_s for run in ramp.runs) / 60 for ramp in ramps),
    )
