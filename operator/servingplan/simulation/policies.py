"""The policies that are compared. Each takes a workload and its settings and gives a `Policy` for the fleet.

A policy sees what arrived before a slice, its own fleet, and, as far as it has a schedule, earlier days. All but
`foresighted` are what teams run today.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, islice, pairwise

import numpy as np

from servingplan.planning import foresight
from servingplan.simulation.fleet import Policy, Seen
from servingplan.simulation.history import Forecast, History, profile
from servingplan.simulation.windows import Array, coming_maximum, trailing_mean
from servingplan.simulation.workload import DAY_S, HOUR_S, SLICE_S, Workload

TOLERANCE = 0.1
"""Of an HPA: it leaves replicas alone while the metric is within a tenth of its target (Kubernetes' default)."""

HPA_STABILIZATION_S = 300.0
"""Kubernetes' default for scaling down."""

RATE_WINDOW_S = 120
"""Over how long a rate is taken: as PromQL's ``[2m]`` at usual scrape intervals."""

SERVICE_S = 10.0
"""How long a request is being served at capacity: 240 output tokens at 40 ms and a second to the first."""

PANIC_S, STABLE_S = 60, 180
"""The two windows of a Knative-style autoscaler as AIBrix has it."""


def _column(values: Sequence[float]) -> Array:
    return np.array(values, np.float32)[:, None]


def whole(wanted: Array) -> Array:
    """Whole replicas; rounding errors start none."""
    rounded: Array = np.ceil(wanted - np.float32(foresight.SMALLEST))
    return rounded


def static_peak(load: Workload, shares: Sequence[float], *, known_days: int) -> Policy:
    """As many as `shares` of the largest rate of the first days need, at all times."""
    fixed = whole(load.rates[: known_days * DAY_S // load.step_s].max(axis=0) * _column(shares))
    return lambda _i, _seen: fixed


class _InFlight:
    """Requests in flight in units of one replica's at capacity, averaged over so many of the last slices.

    Little's law: those being served are busy x service time; those waiting are added.
    """

    def __init__(self, slices: int) -> None:
        self._slices = slices
        self._last: deque[Array] = deque(maxlen=slices)

    def __call__(self, seen: Seen) -> Array:
        self._last.append(seen.busy + seen.queue / np.float32(SERVICE_S))
        total = self._last[0]
        for one in islice(self._last, 1, None):
            total = total + one
        return total / np.float32(len(self._last))


def _hpa(in_flight: Array, target: Array, held: Array) -> Array:
    """The HPA's rule: ceil(metric / target), unless that is within the tolerance of what is there."""
    ratio = in_flight / (target * held)
    return np.where(np.abs(ratio - 1) <= TOLERANCE, held, whole(in_flight / target))


def hpa_in_flight(targets: Sequence[float], windows_s: Sequence[int]) -> Policy:
    """An HPA on requests in flight per replica; targets as shares of what one has at capacity.

    windows_s: over how long the metric is averaged. The settings are all targets with the first, then with the next.
    """
    target = _column([*targets] * len(windows_s))
    measured = [_InFlight(max(1, seconds // SLICE_S)) for seconds in windows_s]
    parts = [slice(k * len(targets), (k + 1) * len(targets)) for k in range(len(windows_s))]

    def wanted(_i: int, seen: Seen) -> Array:
        in_flight = np.concatenate([one(seen)[part] for one, part in zip(measured, parts, strict=True)])
        return _hpa(in_flight, target, seen.held)

    return wanted


def keda_cron(load: Workload, targets: Sequence[float], crons: Sequence[float], *, start_s: float) -> Policy:
    """KEDA: an HPA on requests in flight, and a cron trigger per hour of the day whose replicas are a minimum.

    The cron has `crons` of each hour's largest rate on earlier days, and begins a start time early: better than most.
    """
    target, share, measured = _column(targets), _column(crons), _InFlight(1)
    floor = _hourly(load, start_s)

    def wanted(i: int, seen: Seen) -> Array:
        return np.maximum(_hpa(measured(seen), target, seen.held), whole(floor[i] * share))

    return wanted


def rate_reactive(load: Workload, margins: Sequence[float], windows_s: Sequence[int]) -> Policy:
    """The measured arrival rate over the known capacity, times a margin; each margin with its own window."""
    rates = {seconds: trailing_mean(load.sums, seconds // SLICE_S) for seconds in set(windows_s)}
    margin = _column(margins)
    return lambda i, _seen: whole(np.stack([rates[seconds][i] for seconds in windows_s]) * margin)


def cron_rate(load: Workload, margins: Sequence[float], crons: Sequence[float], *, start_s: float) -> Policy:
    """The larger of an hourly cron, as KEDA's, and the measured rate of the last 2 minutes times a margin."""
    rate, floor = trailing_mean(load.sums, RATE_WINDOW_S // SLICE_S), _hourly(load, start_s)
    margin, share = _column(margins), _column(crons)
    return lambda i, _seen: whole(np.maximum(rate[i] * margin, floor[i] * share))


def schedule_alone(load: Workload, margins: Sequence[float], *, start_s: float) -> Policy:
    """The learned profile, a start time ahead, times a margin; deaf to what arrives."""
    ahead, margin = coming_maximum(load.by_slice(profile(load)), round(start_s / SLICE_S) + 1), _column(margins)
    return lambda i, _seen: whole(ahead[i] * margin)


def knative_like(targets: Sequence[float], panics: Sequence[float]) -> Policy:
    """AIBrix-like: a stable and a panic window over requests in flight; in panic it only goes up.

    Panic begins where the short window asks for `panics` times what is there, and ends a stable window later.
    """
    target, panic = _column(targets), _column(panics)
    stable, short = _InFlight(STABLE_S // SLICE_S), _InFlight(PANIC_S // SLICE_S)
    state: dict[str, Array] = {}

    def wanted(_i: int, seen: Seen) -> Array:
        calm, hasty = whole(stable(seen) / target), whole(short(seen) / target)
        left = state.get("left", np.zeros_like(seen.held))
        left = np.where(hasty >= panic * seen.held, np.float32(STABLE_S / SLICE_S), np.maximum(left - 1, 0))
        state["left"] = left
        return np.where(left > 0, np.maximum(np.maximum(calm, hasty), seen.held), calm)

    return wanted


def foresighted(*histories: History) -> Policy:
    """Foresight, with all prices of the histories side by side."""
    ends = accumulate(history.rising.head_room.shape[1] for history in histories)
    parts = [slice(begin, end) for begin, end in pairwise((0, *ends))]

    def wanted(i: int, seen: Seen) -> Array:
        return np.concatenate(
            [
                _foreseen(history, i, held=seen.held[part], queue=seen.queue[part])
                for history, part in zip(histories, parts, strict=True)
            ]
        )

    return wanted


def _foreseen(history: History, i: int, *, held: Array, queue: Array) -> Array:
    day = i * SLICE_S // DAY_S

    def sized(forecast: Forecast) -> Array:
        size: Array = foresight.with_head_room(
            np,
            forecast.expected[i],
            head_room=forecast.head_room[day],
            spread=forecast.spread[i],
            most=history.most[day],
            now=history.now[i],
        )
        return size

    replicas: Array = foresight.replicas(
        np, raise_to=sized(history.rising), keep_to=sized(history.lasting), held=held, backlog_s=queue
    )
    return replicas


def _hourly(load: Workload, start_s: float) -> Array:
    """The mean over earlier days of its kind of each hour's largest rate, from a start time before the hour on."""
    per_hour, per_day = HOUR_S // load.step_s, DAY_S // load.step_s
    days = len(load.rates) // per_day
    hours = load.rates[: days * per_day].reshape(days, 24, per_hour, -1).max(axis=2)
    floors = np.zeros_like(hours)
    for day in range(1, days):
        same = load.days_off[:day] == load.days_off[day]
        floors[day] = hours[:day][same if same.any() else ~same].mean(axis=0)
    slices = np.repeat(floors.reshape(-1, hours.shape[-1]), HOUR_S // SLICE_S, axis=0)
    return coming_maximum(slices, round(start_s / SLICE_S) + 1)
