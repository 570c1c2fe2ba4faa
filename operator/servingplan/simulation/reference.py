"""What the same requests cost with hindsight: the fluid bound, and a fleet that knows all arrivals.

In: a workload. Out: replica-hours by lane. The clairvoyant fleet starts and drains as any other; what it holds is what
arrivals of the windows around each slice need, from a start time earlier on, times a factor that is chosen for each
lane so that the wanted attainment is just reached.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.curves import cost_at
from servingplan.simulation.fleet import Policy, Rules, run
from servingplan.simulation.policies import whole
from servingplan.simulation.scorecard import Period, scored
from servingplan.simulation.windows import coming_maximum
from servingplan.simulation.workload import HOUR_S, SLICE_S, Workload, needed

FACTORS = (0.85, 0.9, 0.93, 0.96, 0.98, 1.0, 1.03, 1.1)
"""Of what is needed. At 1 nearly all requests are in time; where a lane needs less than one replica, at all of them."""


def clairvoyant(load: Workload, rules: Rules, period: Period, attainment: float) -> NDArray[np.float64]:
    """Replica-hours by lane of a fleet that knows all arrivals, at an attainment; NaN for lanes without requests."""
    need = np.maximum(needed(load, rules.wait_limit_s), needed(load, rules.wait_limit_s, ahead=True))
    held = coming_maximum(need, round(rules.start_s / SLICE_S) + 1)
    factor = np.array(FACTORS, np.float32)[:, None]
    policy: Policy = lambda i, _seen: whole(held[i] * factor)  # noqa: E731  a policy is a function
    score = scored(run(load, policy, [0.0] * len(FACTORS), rules), period)
    lanes = range(score.hours.shape[1])
    return np.array([cost_at(score.attainment[:, i], score.hours[:, i], attainment) for i in lanes])


def fluid_bound(load: Workload, period: Period) -> NDArray[np.float64]:
    """Replica-hours by lane if replicas were divisible, started at once and were always full."""
    slices = slice(period.first_day * 24 * HOUR_S // SLICE_S, period.end_day * 24 * HOUR_S // SLICE_S)
    served = (load.demand[slices] * load.counted[slices]).sum(axis=0, dtype=np.float64)
    return np.asarray(served * (SLICE_S / HOUR_S))
