"""Builders of a past, and of what was learned of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from servingplan.planning.learned import SLOTS, HeadRoom, Learned, Past
from servingplan.planning.plan import Capacity, Foresight, Plan, PoolCapacity, RaiseWhen, Rate
from support.plans import a_plan
from support.signals import a_feedback

UNIT = 5.0
"""Requests/s that one replica serves."""

MISS_PRICE = 20.0
"""Of all requests, as a multiple of what serving them takes."""

MONDAY = date(2026, 3, 2)
SHORT_SIGHTED = a_feedback(max_extra=10, raise_when=RaiseWhen())
"""The same feedback without foresight."""

NO_NEED = HeadRoom(room=0.0, by_hour=(1.0,) * 24)


def a_foresight() -> Foresight:
    """The foresight of the plans here."""
    return Foresight(miss_price=Decimal(str(MISS_PRICE)))


def a_learner(**changes: Any) -> Plan:
    """A plan in UTC that looks ahead: its schedule has one replica and one in reserve, and feedback up to ten more."""
    plan = a_plan(
        zone=ZoneInfo("UTC"),
        feedback=replace(SHORT_SIGHTED, foresight=a_foresight()),
        capacity=Capacity(points=(PoolCapacity(replicas=1, requests_per_second=Decimal(5)),)),
        base=Rate(requests_per_second=Decimal(3)),
        windows=(),
    )
    return replace(plan, bounds=replace(plan.bounds, maximum=40), **changes)


def a_learned(working: Sequence[float], **changes: Any) -> Learned:
    """A usual day by slot, the same on days off, without head room."""
    learned = Learned(
        day=MONDAY,
        days=14.0,
        unit=UNIT,
        start=timedelta(minutes=10),
        working=tuple(working),
        off=tuple(working),
        trust=1.0,
        rising=NO_NEED,
        lasting=NO_NEED,
        most=20.0,
        recent=Past(start=datetime(2026, 3, 1, 21, tzinfo=UTC), rates=()),
    )
    return replace(learned, **changes)


def office_day(quiet: float = 0.5, busy: float = 6.0) -> tuple[float, ...]:
    """Replicas by slot: busy from 8 to 18 o'clock."""
    return tuple(busy if 48 <= slot < 108 else quiet for slot in range(SLOTS))


def restless_offices(minutes: int, seed: int = 1) -> np.ndarray:
    """Replicas' worth of arrivals by the minute from Monday on: busy from 8 to 18 o'clock, quiet at weekends."""
    draw = np.random.default_rng(seed)
    minute = np.arange(minutes)
    hour, weekday = minute // 60 % 24, minute // 1440 % 7
    busy = np.where((hour >= 8) & (hour < 18) & (weekday < 5), 6.0, 0.8)
    sway = np.repeat(draw.gamma(20, 1 / 20, minutes // 10 + 1), 10)[:minutes]
    return draw.gamma(busy * sway * 8, 1 / 8)


def past(demand: np.ndarray, zone: str = "UTC") -> Past:
    """Replicas' worth of arrivals by the minute as a past that begins on Monday."""
    start = datetime.combine(MONDAY, datetime.min.time(), tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return Past(start=start, rates=(demand * UNIT).tolist())
