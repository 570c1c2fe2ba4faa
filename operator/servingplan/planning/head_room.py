"""Head room: how far needs of the past went beyond what was foreseen of them.

In: `Days`, and the usual day as it was known on each of them. Out: `HeadRoom` for both horizons. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from servingplan.planning import foresight
from servingplan.planning.foresight import FLOATS, ROOMS, TAIL_SHARE, Profile, Rates
from servingplan.planning.learned import BEYOND, FEWEST_DAYS, LEVEL_S, NOW_S, SLICE, SLOTS, HeadRoom
from servingplan.planning.past_days import PER_MINUTE, SLICE_S, Days

HOUR_LEAST, HOUR_MOST = 0.4, 2.5
"""How far the spread of an hour of the day may be from that of the whole day."""

UNLEARNED = 1.0
"""Head room where no request came yet."""

_LEAST = 1e-9
"""Requests. Where there were fewer there were none."""

_BEYOND = BEYOND // SLICE
_LONGEST_NOW = max(NOW_S) // SLICE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A forecast of the past. error: how far the need was off, in spreads. weight: what arrived until then."""

    error: float
    weight: float
    spread: float
    hour: int


def head_rooms(
    price: float, days: Days, profiles: Sequence[Sequence[float]], trust: Sequence[float], start: int
) -> tuple[HeadRoom, HeadRoom]:
    """Head room for the need one start from now, and for the most until then. start: in slices.

    price: in replica-hours, of missing all requests of a day.
    """
    planned = [profiles[place][slot] for place, slot in zip(days.place, days.slot, strict=True)]
    used = [trust[place] for place in days.place]
    rates = _rates(days, planned, [sum(profile) / SLOTS for profile in profiles])
    rising = _samples(
        days, rates, planned, used, need=_coming(days.need[start + 1 :], _BEYOND + 1),
        ahead=_coming(planned[start + 1 :], _BEYOND + 1), horizon=start + _BEYOND, past=start + _BEYOND + 2,
    )  # fmt: skip
    lasting = _samples(
        days, rates, planned, used, need=_coming(days.need, start + _BEYOND + 1),
        ahead=_coming(planned, start + _BEYOND + 1), horizon=start + _BEYOND, past=start + _BEYOND + 1,
    )  # fmt: skip
    return _head_room(rising, price), _head_room(lasting, price)


def first_that_counts(days: int) -> int:
    """Of so many days, the first one whose errors count: the very first had no profile, and counts until two did."""
    return 1 if days > FEWEST_DAYS else 0


def _rates(days: Days, planned: Sequence[float], usual: Sequence[float]) -> list[Rates]:
    """The rates of every minute, as they were known then."""
    there = [
        value * (1 - after + before) for value, before, after in zip(planned, days.gaps, days.gaps[1:], strict=False)
    ]
    expected = [0.0, *accumulate(there)]
    found = []
    for i in range(0, len(planned), PER_MINUTE):
        mean = usual[days.place[i]]
        level = foresight.level(
            FLOATS,
            observed=days.mean_before(days.sums, i, LEVEL_S // SLICE_S),
            expected=days.mean_before(expected, i, LEVEL_S // SLICE_S),
            usual=mean,
        )
        now = max(days.mean_before(days.sums, i, seconds // SLICE_S) for seconds in NOW_S)
        found.append(Rates(now=now, level=level if mean > 0 else 1.0))
    return found


def _samples(
    days: Days,
    rates: Sequence[Rates],
    planned: Sequence[float],
    used: Sequence[float],
    *,
    need: Sequence[float],
    ahead: Sequence[float],
    horizon: int,
    past: int,
) -> list[_Sample]:
    """One forecast a minute, where all was counted from the minutes before it until it is known how wrong it was."""
    found, first = [], first_that_counts(len(days.dates))
    for minute in range(len(rates) - -(-past // PER_MINUTE)):
        i = minute * PER_MINUTE
        if days.place[i] < first or days.gaps[i + past] > days.gaps[max(0, i - _LONGEST_NOW)]:
            continue
        profile = Profile(now=planned[i] * used[i], ahead=ahead[i] * used[i])
        expected = foresight.foreseen(FLOATS, rates[minute], profile)
        weight = (days.sums[i + horizon] - days.sums[i]) / horizon
        spread = expected**foresight.SPREAD_POWER
        found.append(_Sample(error=(need[i] - expected) / spread, weight=weight, spread=spread, hour=days.hour[i]))
    return found


def _coming(values: Sequence[float], window: int) -> list[float]:
    """The maximum of the `window` values from each place on, by doubling."""
    result, covered = list(values), 1
    while covered < window:
        step = min(covered, window - covered)
        result[: len(result) - step] = map(max, result, result[step:])
        covered += step
    return result


def _head_room(samples: Sequence[_Sample], price: float) -> HeadRoom:
    """The head room with the least loss, each hour of the day with a spread of its own."""
    by_hour = _spread_by_hour(samples)
    spread = sum(sample.spread * by_hour[sample.hour] for sample in samples) / max(len(samples), 1)
    ranked = sorted((sample.error / by_hour[sample.hour], sample.weight) for sample in samples)
    if sum(weight for _, weight in ranked) <= 0:
        return HeadRoom(room=UNLEARNED, by_hour=tuple(by_hour))

    left = _left_by(ranked)

    def loss(room: float) -> float:
        found: float = foresight.loss(FLOATS, room=room, share=left(room), spread=spread, price=price)
        return found

    return HeadRoom(room=min(ROOMS, key=loss), by_hour=tuple(by_hour))


def _left_by(ranked: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """The share of requests that a head room leaves. ranked: errors from the least on, with their weights."""
    errors = [error for error, _ in ranked]
    reached = [0.0, *accumulate(weight for _, weight in ranked)]
    total = reached[-1]
    edge = errors[min(bisect_left(reached, (1 - TAIL_SHARE) * total, lo=1) - 1, len(errors) - 1)]
    excess = sum((error - edge) * weight for error, weight in ranked if error > edge) / (TAIL_SHARE * total)

    def left(room: float) -> float:
        if room <= edge:
            return 1 - reached[bisect_right(errors, room)] / total
        found: float = foresight.tail(FLOATS, room=room, edge=edge, excess=excess)
        return found

    return left


def _spread_by_hour(samples: Sequence[_Sample]) -> list[float]:
    """How wide errors are at each hour of the day, against the whole day; the hours beside it count half."""
    squares, weights = [0.0] * 24, [0.0] * 24
    for sample in samples:
        squares[sample.hour] += sample.error**2 * sample.weight
        weights[sample.hour] += sample.weight
    each = [math.sqrt(square / max(weight, _LEAST)) for square, weight in zip(squares, weights, strict=True)]
    smooth = [(each[h] + (each[h - 1] + each[(h + 1) % 24]) / 2) / 2 for h in range(24)]
    whole = math.sqrt(sum(squares) / max(sum(weights), _LEAST))
    return [min(max(one / max(whole, 1e-6), HOUR_LEAST), HOUR_MOST) for one in smooth]
