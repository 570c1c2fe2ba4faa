"""Learning: the last days of a plan's arrivals become a usual day and head room.

In: arrivals by the minute. Out: `Learned`. The same numbers as the benchmark's ``simulation.history``, of one workload
and its newest morning, in plain Python: a fortnight takes some tenths of a second. Pure; never in an event loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from servingplan.planning.foresight import HOURS
from servingplan.planning.head_room import head_rooms
from servingplan.planning.learned import FEWEST_DAYS, LEVEL_S, MINUTE, SLICE, SLOTS, Learned, Past, is_day_off
from servingplan.planning.past_days import Days
from servingplan.planning.plan import Plan
from servingplan.planning.sizing import capacity_per_replica

LONGEST = timedelta(days=14)
"""How far back days count: a fortnight has each kind of day often enough, and Prometheus keeps it by default."""

AGE_WEIGHT = 0.9
"""What a day of the profile weighs against the day after it."""

OTHER_CLASS_WEIGHT = 0.15
"""What a working day weighs in the profile of a day off, and the other way round."""

TRUSTED_FROM = 0.7
"""Where what the profile said went with what came at least so well (correlation), it is used as it is."""

_LEAST = 1e-9
"""So that days without arrivals have a correlation, of 0."""


def first_day(day: date) -> date:
    """The first local date that is learned from for `day`."""
    return day - LONGEST


def learn(plan: Plan, past: Past, *, start: timedelta, day: date) -> Learned:
    """What the days before the local date `day` teach. start: how long a replica takes; of use until it changes."""
    unit = float(capacity_per_replica(plan.capacity, 1))
    days = Days.of(plan, past, day, unit)
    off = [is_day_off(plan, each) for each in (*days.dates, day)]
    slots = days.slot_means()
    profiles = [_profile(slots[:place], off[:place], is_off=off[place]) for place in range(len(slots) + 1)]
    trust = [_trust(profiles[:place], slots[:place]) for place in range(len(slots) + 1)]
    slices = round(start / SLICE)
    rising, lasting = (None, None)
    if days.counted >= timedelta(days=1):
        rising, lasting = head_rooms(_miss_price(plan) * _day_hours(days), days, profiles, trust, slices)
    return Learned(
        day=day,
        days=days.counted / timedelta(days=1),
        unit=unit,
        start=slices * SLICE,
        working=_profile(slots, off[:-1], is_off=False),
        off=_profile(slots, off[:-1], is_off=True),
        trust=trust[-1],
        rising=rising,
        lasting=lasting,
        most=max(days.need, default=math.inf),
        recent=_recent(past),
    )


def _miss_price(plan: Plan) -> float:
    if plan.foresight is None:
        raise ValueError(f"plan {plan.key} asks for no foresight")
    return float(plan.foresight.miss_price)


def _day_hours(days: Days) -> float:
    """The replica-hours that serving the requests of a day takes, at capacity."""
    counted = len(days.need) - days.gaps[-1]
    return HOURS * days.sums[-1] / counted


def _recent(past: Past) -> Past:
    """The last minutes, which the level of today is made from."""
    kept = min(len(past.rates), LEVEL_S // 60)
    begin = len(past.rates) - kept
    return Past(start=past.start + begin * MINUTE, rates=tuple(past.rates[begin:]))


def _profile(slots: Sequence[Sequence[float]], off: Sequence[bool], *, is_off: bool) -> tuple[float, ...]:
    """The mean of earlier days by slot, weighted by age and kind of day; 0 where nothing is known."""
    weights = [
        AGE_WEIGHT**age * (1.0 if one is is_off else OTHER_CLASS_WEIGHT)
        for age, one in zip(range(len(slots) - 1, -1, -1), off, strict=True)
    ]
    return tuple(
        _weighted_mean([(day[slot], weight) for day, weight in zip(slots, weights, strict=True)])
        for slot in range(SLOTS)
    )


def _weighted_mean(pairs: Iterable[tuple[float, float]]) -> float:
    known = [(value, weight) for value, weight in pairs if not math.isnan(value)]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else 0.0


def _trust(profiles: Sequence[Sequence[float]], slots: Sequence[Sequence[float]]) -> float:
    """How far the profile is used, 0 to 1: by how well it told all days but the first. Of one nobody can tell."""
    if len(slots) < FEWEST_DAYS:
        return 1.0
    pairs = [
        (said, came)
        for profile, day in zip(profiles[1:], slots[1:], strict=True)
        for said, came in zip(profile, day, strict=True)
        if not math.isnan(came)
    ]
    if not pairs:
        return 0.0
    means = [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]
    offsets = [(said - means[0], came - means[1]) for said, came in pairs]
    scale = math.sqrt(sum(a * a for a, _ in offsets) * sum(b * b for _, b in offsets))
    correlation: float = sum(a * b for a, b in offsets) / max(scale, _LEAST)
    return min(max(correlation / TRUSTED_FROM, 0.0), 1.0)
