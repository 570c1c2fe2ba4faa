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
    """How maxima and roundings are taken. The module numpy is one; `FLOATS` is one for single numbers."""

    def maximum(self, first: Number, second: Number, /) -> Number:
        """The larger one."""

    def minimum(self, first: Number, second: Number, /) -> Number:
        """The smaller one."""

    def ceil(self, value: Number, /) -> Number:
        """The smallest whole number that is not below it."""


class _Floats:
    """`Numbers` for single numbers."""

    def maximum(self, first: float, second: float, /) -> float:
        return first if first >= second else second

    def minimum(self, first: float, second: float, /) -> float:
        return first if first <= second else second

    def ceil(self, value: float, /) -> float:
        return float(math.ceil(value))


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

PROFILE_SHARE = 0.5
"""Of what the profile foresees, what is kept whatever the rates say: a replica that starts would come too late."""

HEAD_ROOM_CAP = 1.4
"""Head room ends at this multiple of the most that was ever needed: a learned tail is no reason to build a hall."""

BACKLOG_S = 60.0
"""Waiting work is to be served within a minute."""

SMALLEST = 1e-4
"""Replicas. Rounding errors of that size start no replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Arrivals, in replicas. now: the larger of the last 2 and 5 minutes. level: today against the profile."""

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


def with_head_room(numbers: Numbers, forecast: Number, *, head_room: Number, spread: Number, most: Number) -> Number:
    """The forecast with its head room: head_room x spread, up to 1.4 times the most that was needed so far."""
    cap = numbers.maximum(forecast, HEAD_ROOM_CAP * most)
    return numbers.minimum(forecast + head_room * spread, cap)


def replicas(
    numbers: Numbers, *, raise_to: Number, keep_to: Number, held: Number, backlog_s: Number, ahead: Number
) -> Number:
    """Whole replicas: at least `raise_to`, of those `held` as many as `keep_to`, never less than half the profile.

    backlog_s: waiting work, in seconds of one replica.
    """
    backlog = backlog_s / BACKLOG_S
    rise = numbers.ceil(raise_to + backlog - SMALLEST)
    keep = numbers.ceil(keep_to + backlog - SMALLEST)
    floor = numbers.ceil(PROFILE_SHARE * ahead - SMALLEST)
    return numbers.maximum(numbers.maximum(rise, numbers.minimum(held, keep)), floor)
