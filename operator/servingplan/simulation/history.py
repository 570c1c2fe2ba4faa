"""What was learned of each lane by each morning: profile, level, and how wrong forecasts were.

In: a workload. Out: a `History` for one start time: forecasts by [slice, lane], and head room by [day, setting, lane],
from all earlier days alone. Night by night as the operator would, but for all lanes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servingplan.planning import foresight
from servingplan.planning.foresight import Profile, Rates
from servingplan.simulation.windows import (
    Array,
    coming_maximum,
    coming_mean,
    later,
    running_sums,
    trailing_mean,
)
from servingplan.simulation.workload import DAY_S, HOUR_S, SLICE_S, Workload, needed

AGE_WEIGHT = 0.9
"""What a day of the profile weighs against the day after it."""

OTHER_CLASS_WEIGHT = 0.15
"""What a working day weighs in the profile of a day off, and the other way round."""

LEVEL_S = 3 * HOUR_S
"""Over how long today is compared with the profile."""

NOW_S = (60, 120, 300)
"""Over how long the rate now is looked at; the largest counts."""

BEYOND_START_S = 45
"""How much longer than a start a horizon is: the decision, and its rounding to slices."""

PREDICTABLE = 0.5
"""Where a day says less of the next one than this (correlation at 24 h), the profile is not used."""

HOUR_LEAST, HOUR_MOST = 0.4, 2.5
"""How far the spread of an hour of the day may be from that of the whole day."""

SAMPLE = 2
"""Every how many slices a forecast is judged: once a minute, as the operator's history has it."""

UNLEARNED = 1.0
"""Head room of the first day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A forecast for one horizon, by [slice, lane]: `expected` replicas, and how far off they may be in `spread`."""

    expected: Array
    spread: Array
    head_room: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the policy knows, for one start time.

    rising: of the need one start from now. lasting: of the most until then. ahead: the most of the profile until then,
    0 where the profile is not used. most: what was needed at most on earlier days, by [day, lane].
    """

    rising: Forecast
    lasting: Forecast
    ahead: Array
    most: Array


def profile(load: Workload) -> Array:
    """The mean rate of earlier days at the same time of day, by [step, lane]; 0 on the first day.

    Weighted by age and by kind of day: a working day says little about a day off.
    """
    days = len(load.rates) * load.step_s // DAY_S
    rates = load.rates[: days * DAY_S // load.step_s].reshape(days, DAY_S // load.step_s, -1)
    result = np.zeros_like(rates)
    for day in range(1, days):
        age = np.arange(day - 1, -1, -1)
        same = load.days_off[:day] == load.days_off[day]
        weights = AGE_WEIGHT**age * np.where(same, 1, OTHER_CLASS_WEIGHT)
        result[day] = np.tensordot(weights / weights.sum(), rates[:day], 1)
    return result.reshape(-1, rates.shape[-1])


def predictable(load: Workload) -> Array:
    """1 on days, by [day, lane], whose earlier days repeat each other: correlation at 24 h, from day 2 on."""
    per_day = DAY_S // load.step_s
    days = len(load.rates) // per_day
    result = np.ones((days, load.rates.shape[1]), np.float32)
    for day in range(2, days):
        known = load.rates[: day * per_day].astype(np.float64)
        first, second = known[:-per_day], known[per_day:]
        first, second = first - first.mean(axis=0), second - second.mean(axis=0)
        scale = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
        correlation = (first * second).sum(axis=0) / np.maximum(scale, 1e-9)
        result[day] = correlation >= PREDICTABLE
    return result


def weighted_quantiles(values: Array, weights: Array, shares: Sequence[float]) -> Array:
    """By [share, lane]: the value below which the share of all weight lies. values, weights: by [sample, lane]."""
    order = np.argsort(values, axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0, dtype=np.float64)
    lanes = np.arange(values.shape[1])
    places = [np.minimum((reached < share * reached[-1]).sum(axis=0), len(values) - 1) for share in shares]
    return np.stack([ranked[place, lanes] for place in places])


def learn(load: Workload, *, start_s: float, wait_limit_s: float, shares: Sequence[float]) -> History:
    """What is known at each slice. shares: of requests, what head room is to leave without a replica in time.

    A replica that is let go is missed at once, so that head room is to leave half as many there.
    """
    steps = profile(load)
    used = np.repeat(predictable(load), DAY_S // SLICE_S, axis=0)
    planned = load.by_slice(steps)
    known = planned * used
    rates = _rates(load, known, load.by_slice(_day_means(steps, DAY_S // load.step_s)) * used)
    start = round(start_s / SLICE_S)
    beyond = -(-BEYOND_START_S // SLICE_S)
    need = needed(load, wait_limit_s)
    ahead = coming_maximum(planned, start + beyond + 1) * used
    then = coming_maximum(later(planned, start + 1), beyond + 1) * used
    coming = coming_maximum(later(need, start + 1), beyond + 1)
    until = coming_maximum(need, start + beyond + 1)
    weights, past = coming_mean(load.sums, start + beyond), start + beyond + 1
    halves = [share / 2 for share in shares]
    return History(
        rising=_forecast(rates, Profile(now=known, ahead=then), coming, weights=weights, past=past + 1, shares=shares),
        lasting=_forecast(rates, Profile(now=known, ahead=ahead), until, weights=weights, past=past, shares=halves),
        ahead=ahead,
        most=_most_before(need),
    )


def _most_before(need: Array) -> Array:
    """The most that was needed on all earlier days, by [day, lane]; unbounded on the first."""
    most = np.maximum.accumulate(need.reshape(-1, DAY_S // SLICE_S, need.shape[1]).max(axis=1), axis=0)
    return np.concatenate([np.full_like(most[:1], np.inf), most[:-1]])


def _rates(load: Workload, known: Array, usual: Array) -> Rates:
    observed = trailing_mean(load.sums, LEVEL_S // SLICE_S)
    expected = trailing_mean(running_sums(known), LEVEL_S // SLICE_S)
    now = np.max([trailing_mean(load.sums, seconds // SLICE_S) for seconds in NOW_S], axis=0)
    today = foresight.level(np, observed=observed, expected=expected, usual=usual)
    return Rates(now=now, level=np.where(usual > 0, today, 1).astype(np.float32))


def _day_means(steps: Array, per_day: int) -> Array:
    """The mean of each day, for each of its steps."""
    return np.repeat(steps.reshape(-1, per_day, steps.shape[1]).mean(axis=1), per_day, axis=0)


def _forecast(
    rates: Rates, known: Profile, need: Array, *, weights: Array, past: int, shares: Sequence[float]
) -> Forecast:
    """A forecast with the head room that its errors on earlier days ask for.

    past: after how many slices it is known how wrong a forecast was.
    """
    expected = foresight.foreseen(np, rates, known).astype(np.float32)
    spread = (expected**foresight.SPREAD_POWER).astype(np.float32)
    errors, per_day = ((need - expected) / spread)[::SAMPLE], DAY_S // SLICE_S // SAMPLE
    weights = weights[::SAMPLE]
    days = len(errors) // per_day
    rooms = [np.full((len(shares), errors.shape[1]), UNLEARNED, np.float32)]
    hours = [np.ones((24, errors.shape[1]), np.float32)]
    for day in range(1, days):
        end = day * per_day - -(-past // SAMPLE)
        by_hour, hour = _spread_by_hour(errors[:end], weights[:end])
        hours.append(by_hour)
        rooms.append(weighted_quantiles(errors[:end] / by_hour[hour], weights[:end], [1 - s for s in shares]))
    hourly = np.repeat(np.concatenate(hours), HOUR_S // SLICE_S, axis=0)
    return Forecast(expected=expected, spread=spread * hourly, head_room=np.stack(rooms))


def _spread_by_hour(errors: Array, weights: Array) -> tuple[Array, NDArray[np.int64]]:
    """How wide errors are at each hour of the day, against the whole day; and each sample's hour.

    The hours beside it count half: an hour has few samples.
    """
    hour = np.arange(len(errors)) * (SAMPLE * SLICE_S) // HOUR_S % 24
    squares, weight = np.zeros((24, errors.shape[1])), np.zeros((24, errors.shape[1]))
    np.add.at(squares, hour, errors**2 * weights)
    np.add.at(weight, hour, weights)
    each = np.sqrt(squares / np.maximum(weight, 1e-9))
    smooth = (each + (np.roll(each, 1, axis=0) + np.roll(each, -1, axis=0)) / 2) / 2
    whole = np.sqrt(squares.sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-9))
    ratio = np.clip(smooth / np.maximum(whole, 1e-6), HOUR_LEAST, HOUR_MOST)
    return ratio.astype(np.float32), hour
