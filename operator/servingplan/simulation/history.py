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
from servingplan.planning.foresight import ROOMS, TAIL_SHARE, Profile, Rates
from servingplan.planning.head_room import HOUR_LEAST, HOUR_MOST, UNLEARNED, first_that_counts
from servingplan.planning.learned import BEYOND, LEVEL_S, NOW_S
from servingplan.planning.learning import AGE_WEIGHT, OTHER_CLASS_WEIGHT, TRUSTED_FROM
from servingplan.simulation.windows import (
    Array,
    coming_maximum,
    coming_mean,
    later,
    running_sums,
    trailing_mean,
)
from servingplan.simulation.workload import DAY_S, HOUR_S, SLICE_S, Workload, needed

SAMPLE = 2
"""Every how many slices a forecast is judged: once a minute, as the operator's history has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A forecast for one horizon, by [slice, lane]: `expected` replicas, and how far off they may be in `spread`."""

    expected: Array
    spread: Array
    head_room: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the policy knows, for one start time.

    rising: of the need one start from now. lasting: of the most until then. now: the rate, by [slice, lane]. most: what
    was needed at most on earlier days, by [day, lane].
    """

    rising: Forecast
    lasting: Forecast
    now: Array
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


def trust(load: Workload, steps: Array) -> Array:
    """How far the profile is used, by [day, lane], 0 to 1: by how well it told the earlier days, from day 2 on.

    steps: what `profile` said.
    """
    per_day = DAY_S // load.step_s
    days = len(load.rates) // per_day
    result = np.ones((days, load.rates.shape[1]), np.float32)
    for day in range(2, days):
        known = slice(per_day, day * per_day)
        said, came = steps[known].astype(np.float64), load.rates[known].astype(np.float64)
        said, came = said - said.mean(axis=0), came - came.mean(axis=0)
        scale = np.sqrt((said**2).sum(axis=0) * (came**2).sum(axis=0))
        correlation = (said * came).sum(axis=0) / np.maximum(scale, 1e-9)
        result[day] = np.clip(correlation / TRUSTED_FROM, 0, 1)
    return result


def cheapest_rooms(errors: Array, weights: Array, spread: Array, prices: Sequence[float]) -> Array:
    """The head room with the least loss, by [price, lane]; where no request came yet, what is `UNLEARNED`.

    errors, weights: by [sample, lane]; spread: by [lane].
    """
    lanes, rooms = np.arange(errors.shape[1]), np.array(ROOMS)[:, None]
    order = np.argsort(errors, axis=0)
    ranked = np.take_along_axis(errors, order, axis=0)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0, dtype=np.float64)
    total = np.maximum(reached[-1], 1e-9)
    edge = ranked[np.minimum((reached < (1 - TAIL_SHARE) * total).sum(axis=0), len(errors) - 1), lanes]
    excess = (np.maximum(errors - edge, 0) * weights).sum(axis=0, dtype=np.float64) / (TAIL_SHARE * total)
    below = np.stack([np.searchsorted(column, ROOMS, side="right") for column in ranked.T], axis=1)
    served = np.where(below > 0, reached[np.maximum(below - 1, 0), lanes], 0) / total
    left = np.where(rooms <= edge, 1 - served, foresight.tail(np, room=rooms, edge=edge, excess=excess))
    cheapest = np.stack(
        [
            rooms[foresight.loss(np, room=rooms, share=left, spread=spread, price=price).argmin(axis=0), 0]
            for price in prices
        ]
    )
    return np.where(reached[-1] > 0, cheapest, UNLEARNED).astype(np.float32)


def learn(
    load: Workload, *, start_s: float, wait_limit_s: float, prices: Sequence[float], profiled: bool = True
) -> History:
    """What is known at each slice. prices: replica-hours that it is worth not to miss all requests of a day.

    profiled: False leaves the profile out, whatever it told.
    """
    steps = profile(load)
    used = np.repeat(trust(load, steps) * profiled, DAY_S // SLICE_S, axis=0)
    planned = load.by_slice(steps)
    known = planned * used
    rates = _rates(load, planned, load.by_slice(_day_means(steps, DAY_S // load.step_s)))
    start = round(start_s / SLICE_S)
    beyond = round(BEYOND.total_seconds() / SLICE_S)
    need = needed(load, wait_limit_s)
    ahead = coming_maximum(planned, start + beyond + 1) * used
    then = coming_maximum(later(planned, start + 1), beyond + 1) * used
    coming = coming_maximum(later(need, start + 1), beyond + 1)
    until = coming_maximum(need, start + beyond + 1)
    weights, past = coming_mean(load.sums, start + beyond), start + beyond + 1
    return History(
        rising=_forecast(rates, Profile(now=known, ahead=then), coming, weights=weights, past=past + 1, prices=prices),
        lasting=_forecast(rates, Profile(now=known, ahead=ahead), until, weights=weights, past=past, prices=prices),
        now=rates.now,
        most=_most_before(need),
    )


def _most_before(need: Array) -> Array:
    """The most that was needed on all earlier days, by [day, lane]; unbounded on the first."""
    most = np.maximum.accumulate(need.reshape(-1, DAY_S // SLICE_S, need.shape[1]).max(axis=1), axis=0)
    return np.concatenate([np.full_like(most[:1], np.inf), most[:-1]])


def _rates(load: Workload, planned: Array, usual: Array) -> Rates:
    observed = trailing_mean(load.sums, LEVEL_S // SLICE_S)
    expected = trailing_mean(running_sums(planned), LEVEL_S // SLICE_S)
    now = np.max([trailing_mean(load.sums, seconds // SLICE_S) for seconds in NOW_S], axis=0)
    today = foresight.level(np, observed=observed, expected=expected, usual=usual)
    return Rates(now=now, level=np.where(usual > 0, today, 1).astype(np.float32))


def _day_means(steps: Array, per_day: int) -> Array:
    """The mean of each day, for each of its steps."""
    return np.repeat(steps.reshape(-1, per_day, steps.shape[1]).mean(axis=1), per_day, axis=0)


def _forecast(
    rates: Rates, known: Profile, need: Array, *, weights: Array, past: int, prices: Sequence[float]
) -> Forecast:
    """A forecast with the head room that its errors on earlier days ask for.

    past: after how many slices it is known how wrong a forecast was.
    """
    expected = foresight.foreseen(np, rates, known).astype(np.float32)
    spread = (expected**foresight.SPREAD_POWER).astype(np.float32)
    errors, per_day = ((need - expected) / spread)[::SAMPLE], DAY_S // SLICE_S // SAMPLE
    days = len(errors) // per_day
    rooms = [np.full((len(prices), errors.shape[1]), UNLEARNED, np.float32)]
    hours = [np.ones((24, errors.shape[1]), np.float32)]
    for day in range(1, days):
        of = slice(per_day * first_that_counts(day), day * per_day - -(-past // SAMPLE))
        seen, came = errors[of], weights[::SAMPLE][of]
        by_hour, hour = _spread_by_hour(seen, came)
        wide = (spread[::SAMPLE][of] * by_hour[hour]).mean(axis=0)
        hours.append(by_hour)
        rooms.append(cheapest_rooms(seen / by_hour[hour], came, wide, prices))
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
