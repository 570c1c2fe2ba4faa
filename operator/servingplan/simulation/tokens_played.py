"""What was played, served once more token by token: the replicas that a policy had, and the requests that came.

In: a trace, the replicas that were ready in each of its slices, an engine, lengths of tokens. Out: a `TokenStanding`.
The policy decided on what the fluid model showed it; here its replicas meet single requests with tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servingplan.planning.plan import Objectives
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.token_fleet import Wanted, followed
from servingplan.simulation.tokens import EngineLimits, StepCost, TokenRequest
from servingplan.simulation.tokens_capacity import attainment, capacity
from servingplan.simulation.tokens_drawn import Lengths, drawn
from servingplan.simulation.tokens_replica import Answer

WARM_UP_SLICES = 20
"""Ten minutes before the first request that counts: engines are as full as they would be."""

_SAMPLE = np.ones(600, np.int64)
"""Requests by which a capacity is found: it is sure to about 5 %, enough to see that a profile is of another engine."""

PERCENTILE = 95
"""Of latencies, as objectives usually name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEngine:
    """An engine, what its steps cost, and the most tokens of a prompt and its answer together."""

    limits: EngineLimits
    cost: StepCost
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStanding:
    """Requests that count, and the share of them that keeps every limit. Latencies: p95 in seconds.

    preempted: the share that was computed anew at least once. capacity: requests/s that one replica serves at the
    objectives, by this model; None where they hold for no rate, or for any.
    """

    requests: int
    attainment: float
    ttft_s: float
    tpot_s: float
    e2el_s: float
    preempted: float
    capacity: float | None


def token_standing(
    requests: NDArray[np.float64],
    judged: NDArray[np.bool_],
    ready: NDArray[np.float32],
    engine: TokenEngine,
    *,
    prompt: Lengths,
    output: Lengths,
    objectives: Objectives,
    seed: int,
) -> TokenStanding | None:
    """Serve them. requests, judged, ready: by slice. None where no request counts.

    Raises ValueError where there is a slice without any replica, or no objective.
    """
    first = max(0, int(np.argmax(judged)) - WARM_UP_SLICES)
    asked = drawn(_whole(requests[first:]), SLICE_S, prompt=prompt, output=output, longest=engine.longest, seed=seed)
    run = followed(asked, changes(ready[first:]), engine.limits, engine.cost, start_s=0)
    answers = [each for each in run.answers if judged[first + int(each.asked.arrival_s // SLICE_S)]]
    if not answers:
        return None
    sample = drawn(_SAMPLE, 1.0, prompt=prompt, output=output, longest=engine.longest, seed=seed)
    return _standing(answers, objectives, _capacity(sample, engine, objectives))


def _capacity(sample: Sequence[TokenRequest], engine: TokenEngine, objectives: Objectives) -> float | None:
    share = objectives.goodput_share
    if share is None:
        raise ValueError("objectives without any limit: there is nothing to be good at")
    try:
        return capacity(sample, engine.limits, engine.cost, objectives, share=float(share))
    except ValueError:
        return None


def _whole(requests: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole requests by slice, and none gets lost: what is left of one slice is added to the next."""
    return np.diff(np.floor(np.cumsum(requests) + 0.5), prepend=0).astype(np.int64)


def changes(ready: NDArray[np.float32] | NDArray[np.int64]) -> list[Wanted]:
    """The instants at which other replicas are ready, by slice; they have started before."""
    places = [0, *(np.flatnonzero(np.diff(ready)) + 1).tolist()]
    return [Wanted(at_s=place * SLICE_S, replicas=int(ready[place])) for place in places]


def _standing(answers: Sequence[Answer], objectives: Objectives, capacity_rps: float | None) -> TokenStanding:
    def p95(values: list[float]) -> float:
        return float(np.percentile(values, PERCENTILE))

    return TokenStanding(
        requests=len(answers),
        attainment=attainment(answers, objectives),
        ttft_s=p95([each.ttft_s for each in answers]),
        tpot_s=p95([each.tpot_s for each in answers]),
        e2el_s=p95([each.e2el_s for each in answers]),
        preempted=sum(each.preempted > 0 for each in answers) / len(answers),
        capacity=capacity_rps,
    )
