"""Foresight: what arrivals of the past days and minutes say about the replicas that the next minutes need.

In: rates in replicas (1 is what one replica serves) of now, of the last hours and of the learned profile; the head
room that was learned. Out: replicas. The same lines work on single numbers and on arrays of tenants and settings:
`numbers` says how a maximum is taken, numpy itself or `FLOATS`. Nothing falls where a rate rises.

Two horizons. A replica that is asked for now serves a start time later: `raise_to` looks at the need then. One that is
let go now is missed at once: `keep_to` looks at everything until then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Number: TypeAlias = Any
"""A float, or an array of floats: every function here takes and gives either, all of one shape."""


class Numbers(Protocol):
    """How maxima, roundings and powers are taken. The module numpy is one; `FLOATS` is one for single numbers."""

    def maximum(self, first: Number, second: Number, /) -> Number:
        """The larger one."""

    def minimum(self, first: Number, second: Number, /) -> Number:
        """The smaller one."""

    def ceil(self, value: Number, /) -> Number:
        """The smallest whole number that is not below it."""

    def exp(self, value: Number, /) -> Number:
        """The power of e."""


class _Floats:
    """`Numbers` for single numbers."""

    def maximum(self, first: float, second: float, /) -> float:
        return first if first >= second else second

    def minimum(self, first: float, second: float, /) -> float:
        return first if first <= second else second

    def ceil(self, value: float, /) -> float:
        return float(math.ceil(value))

    def exp(self, value: float, /) -> float:
        return math.exp(value)


FLOATS = _Floats()

LEVEL_SHRUNK_BY = 0.1
"""Of a usual day's mean rate, added to both sides of the level: a quiet night says little about the day."""

LEVEL_LEAST, LEVEL_MOST = 0.3, 3.0
"""Beyond these, the profile is not that of today, and the rate now decides."""

DEVIATION_LASTS = 0.6
"""The share of a deviation from the profile that is still there a start time later: 0.8 did no better, 0.4 worse."""

LEAST_SPREAD = 0.1
"""Replicas. What is added to every forecast, so that head room grows from more than nothing."""

SPREAD_POWER = 0.75
"""Head room grows like rate^0.75: between independent requests (0.5) and everything swaying together (1)."""

CAP_OF_MOST, CAP_OF_FORECAST = 1.4, 2.5
"""Head room ends at the larger of so many times the most that was ever needed and the forecast: a learned tail is no
reason to build a hall, and who starts from nothing has needed little so far."""

BACKLOG_S = 30.0
"""Waiting work is to be served within half a minute."""

TAIL_SHARE = 0.05
"""Of requests. Beyond the errors of so many, a few days have too few to count: a tail of their mean excess goes on."""

UNSEEN_SHARE = 0.03
"""Of requests. What head room of nothing would leave of what no day has shown yet; of one spread a quarter of it."""

HOURS = 24
"""Of a day: prices of misses are of a day's."""

ROOMS = (*(step / 10 for step in range(-10, 1)), *(0.02 * 2.0 ** (step / 8) for step in range(89)))
"""Head rooms to choose from, in spreads: from -1 to 0 a tenth apart, then from 0.02 to 41 by a tenth of each."""

LEAST_EXCESS = 1e-3
"""Spreads. So that a tail without any errors in it ends."""

SMALLEST = 1e-4
"""Replicas. Rounding errors of that size start no replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Arrivals, in replicas. now: the largest of the last 1, 2 and 5 minutes. level: today against the profile."""

    now: Number
    level: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What the learned profile says, in replicas. now: at this time of day. ahead: the most within a horizon."""

    now: Number
    ahead: Number


def level(numbers: Numbers, *, observed: Number, expected: Number, usual: Number) -> Number:
    """How much busier the last hours were than the profile says. usual: the mean of a day's profile, in replicas."""
    shrink = LEVEL_SHRUNK_BY * usual + 1e-6
    ratio = (observed + shrink) / (expected + shrink)
    return numbers.minimum(numbers.maximum(ratio, LEVEL_LEAST), LEVEL_MOST)


def foreseen(numbers: Numbers, rates: Rates, profile: Profile) -> Number:
    """The rate that is expected within a horizon, in replicas.

    Half of the bold forecast, max(ahead x level, now), and half of the sober one, ahead + 0.6 (now - profile now).
    """
    bold = numbers.maximum(profile.ahead * rates.level, rates.now)
    sober = numbers.maximum(profile.ahead + DEVIATION_LASTS * (rates.now - profile.now), 0.0)
    return (bold + sober) / 2 + LEAST_SPREAD


def with_head_room(
    numbers: Numbers, forecast: Number, *, head_room: Number, spread: Number, most: Number, now: Number
) -> Number:
    """The forecast with its head room, head_room x spread, and never less than what arrives now.

    most: what was needed at most so far.
    """
    cap = numbers.maximum(CAP_OF_FORECAST * forecast, CAP_OF_MOST * most)
    return numbers.maximum(numbers.minimum(forecast + head_room * spread, cap), now)


def tail(numbers: Numbers, *, room: Number, edge: Number, excess: Number) -> Number:
    """The share of requests that a head room beyond the edge leaves: errors fall off exponentially there.

    edge: what leaves `TAIL_SHARE`. excess: the mean of what errors beyond the edge have on top of it.
    """
    over = numbers.maximum(room - edge, 0.0) / numbers.maximum(excess, LEAST_EXCESS)
    return TAIL_SHARE * numbers.exp(-over)


def loss(numbers: Numbers, *, room: Number, share: Number, spread: Number, price: Number) -> Number:
    """What a head room costs in a day, in replica-hours: its replicas, and the requests that it leaves, at a price.

    share: of requests, as far as days have shown. spread: the mean of a day. price: of missing all requests of a day.
    """
    unseen = UNSEEN_SHARE / (1 + numbers.maximum(room, 0.0)) ** 2
    return HOURS * spread * room + price * (share + unseen)


def replicas(numbers: Numbers, *, raise_to: Number, keep_to: Number, held: Number, backlog_s: Number) -> Number:
    """Whole replicas: at least `raise_to`, and of those `held` as many as `keep_to`.

    backlog_s: waiting work, in seconds of one replica.
    """
    backlog = backlog_s / BACKLOG_S
    rise = numbers.ceil(raise_to + backlog - SMALLEST)
    keep = numbers.ceil(keep_to + backlog - SMALLEST)
    return numbers.maximum(rise, numbers.minimum(held, keep))
