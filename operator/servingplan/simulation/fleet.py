"""A fluid fleet: replicas that start, serve and leave, and the queue in front of them.

In: demand in replicas (1 is what one replica serves) and what a policy wants at each slice of time. Out: a `Ledger` by
hour. Many settings of a policy and many lanes (a tenant with one seed) go side by side; time alone is a loop.

A replica that is wanted at t serves from t + start on, if it is wanted all the while: what starts is cancelled first,
the newest of it before the rest. So ready(t) is the minimum of held(s) over t - start <= s <= t. One that leaves
takes no more requests and costs until it has drained. Requests wait in one queue, first come first served; one is good
if it waits at most `wait_limit_s`, and who would wait longer than `patience_s` goes away and is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np

from servingplan.simulation.windows import Array, SlidingExtreme
from servingplan.simulation.workload import HOUR_S, SLICE_S, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for every policy. All in seconds but `reserve`, replicas beyond what the policy wants."""

    start_s: float
    drain_s: float = 60
    wait_limit_s: float = 10
    patience_s: float = 60
    reserve: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a policy sees of the fleet, by [setting, lane].

    held: replicas that serve or start. queue: waiting work in seconds of one replica. busy: replicas' worth of
    requests that were served in the last slice.
    """

    held: Array
    queue: Array
    busy: Array


Policy: TypeAlias = Callable[[int, Seen], Array]
"""The replicas that are wanted at a slice, from what arrived before it: whole numbers by [setting, lane]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What came of it, by [hour, lane] or [hour, setting, lane].

    Requests in seconds of one replica's work; replicas in replica-hours: serving beyond the reserve, reserve, starting
    and draining. rising: of the first 15 minutes of rises alone. Gaps of the recording are left out of all of it.
    """

    requests: Array
    good: Array
    rising_requests: Array
    rising_good: Array
    serving: Array
    reserve: Array
    starting: Array
    draining: Array


_LEAST_WORK = np.float32(1e-6)
"""Seconds of work that are none: a queue that stays at its limit is in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One slice of a queue. good: the share of what arrives that is served in time; the rest as in `Seen`."""

    good: Array
    queue: Array
    busy: Array


def serve(queue: Array, demand: Array, ready: Array, rules: Rules) -> Served:
    """One slice of first come, first served: the queue goes linearly, and so do the waits.

    A request waits queue / ready; good is the part of the slice in which queue <= ready x limit.
    """
    end = queue + (demand - ready) * np.float32(SLICE_S)
    limit = ready * np.float32(rules.wait_limit_s)
    low, high = np.minimum(queue, end), np.maximum(queue, end)
    share = (limit - low + _LEAST_WORK) / (high - low + _LEAST_WORK)
    good = np.minimum(np.maximum(share, np.float32(0)), np.float32(1))
    busy = np.minimum(ready, queue / np.float32(SLICE_S) + demand)
    return Served(good=good, queue=np.clip(end, 0, ready * np.float32(rules.patience_s)), busy=busy)


def run(workload: Workload, policy: Policy, stabilizations_s: Sequence[float], rules: Rules) -> Ledger:
    """Follow all settings of a policy over all of the workload.

    stabilizations_s: of each setting, what it wanted at most within so many seconds is what it holds; equal ones beside
    each other are followed together.
    """
    slices, lanes = workload.demand.shape
    shape = (len(stabilizations_s), lanes)
    books = _Books(workload, shape, rules)
    down = _Stabilized(stabilizations_s, lanes)
    up = SlidingExtreme(np.minimum, round(rules.start_s / SLICE_S) + 1, shape, np.inf)
    ready = np.full(shape, 1 + rules.reserve, np.float32)
    held, nothing = ready, np.zeros(shape, np.float32)
    served = Served(good=nothing, queue=nothing, busy=nothing)
    # What the first slices have ready is one replica: it was held all along.
    for _ in range(round(rules.start_s / SLICE_S)):
        up.push(ready)
    for i in range(slices):
        wanted = policy(i, Seen(held=held, queue=served.queue, busy=served.busy))
        held = down.push(np.maximum(wanted, 1) + np.float32(rules.reserve))
        before, ready = ready, up.push(held)
        served = serve(served.queue, workload.demand[i], ready, rules)
        books.enter(i, served.good, held, ready, before)
    return books.closed()


class _Stabilized:
    """Settings with their stabilizations: runs of equal ones share a window."""

    def __init__(self, stabilizations_s: Sequence[float], lanes: int) -> None:
        self._parts: list[tuple[slice, SlidingExtreme]] = []
        begin = 0
        for seconds, run_of_equal in groupby(stabilizations_s):
            end = begin + len(list(run_of_equal))
            window = max(1, round(seconds / SLICE_S))
            self._parts.append((slice(begin, end), SlidingExtreme(np.maximum, window, (end - begin, lanes), 0)))
            begin = end

    def push(self, wanted: Array) -> Array:
        """What is held, once so much is wanted."""
        if len(self._parts) == 1:
            return self._parts[0][1].push(wanted)
        return np.concatenate([extreme.push(wanted[part]) for part, extreme in self._parts])


class _Books:
    """Sums by hour while the fleet runs: an hour is written down slice by slice, and summed up when it is full."""

    def __init__(self, workload: Workload, shape: tuple[int, int], rules: Rules) -> None:
        slices, lanes = workload.demand.shape
        hours = -(-slices * SLICE_S // HOUR_S)
        self._workload, self._rules = workload, rules
        self._flat = {name: np.zeros((hours, lanes), np.float32) for name in ("requests", "rising_requests")}
        names = ("good", "rising_good", "serving", "reserve", "starting", "draining")
        self._full = {name: np.zeros((hours, *shape), np.float32) for name in names}
        self._pages = np.zeros((4, HOUR_S // SLICE_S, *shape), np.float32)

    def enter(self, i: int, good: Array, held: Array, ready: Array, before: Array) -> None:
        """One slice: the share in time, replicas held, ready, and ready in the slice before."""
        line = i % (HOUR_S // SLICE_S)
        for page, values in enumerate((good, held, ready, before)):
            self._pages[page, line] = values
        if line == HOUR_S // SLICE_S - 1 or i == len(self._workload.demand) - 1:
            self._sum_up(i * SLICE_S // HOUR_S, i - line, line + 1)

    def _sum_up(self, hour: int, first: int, lines: int) -> None:
        load, of = self._workload, slice(first, first + lines)
        good, held, ready, before = self._pages[:, :lines]
        counted = load.counted[of]
        requests = load.demand[of] * counted * np.float32(SLICE_S)
        rising = requests * load.rising[of]
        hours = counted * np.float32(SLICE_S / HOUR_S)
        reserve = np.minimum(ready, self._rules.reserve)
        self._flat["requests"][hour] = requests.sum(axis=0)
        self._flat["rising_requests"][hour] = rising.sum(axis=0)
        self._full["good"][hour] = _total(good, requests)
        self._full["rising_good"][hour] = _total(good, rising)
        self._full["serving"][hour] = _total(ready - reserve, hours)
        self._full["reserve"][hour] = _total(reserve, hours)
        self._full["starting"][hour] = _total(held - ready, hours)
        leaving = np.maximum(before - ready, 0)
        self._full["draining"][hour] = _total(leaving, counted * np.float32(self._rules.drain_s / HOUR_S))

    def closed(self) -> Ledger:
        """What was entered."""
        return Ledger(**self._flat, **self._full)


def _total(values: Array, weights: Array) -> Array:
    """The weighted sum over slices: values by [slice, setting, lane], weights by [slice, lane]."""
    total: Array = np.einsum("tsl,tl->sl", values, weights)
    return total
