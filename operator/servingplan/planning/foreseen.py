"""Foreseen: what foresight says about a plan now.

In: a `Case` with what was learned. Out: a `Verdict` beside those of `planning.evidence`, with every term in its words.
All of it is as of the newest readings, so that time alone changes nothing of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from servingplan.planning import foresight
from servingplan.planning.evidence import Case, Verdict
from servingplan.planning.foresight import FLOATS, Profile, Rates
from servingplan.planning.learned import BEYOND, LEVEL_S, SLICE, SLOTS, HeadRoom, Learned
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Signals
from servingplan.planning.sizing import need
from servingplan.planning.units import exact, format_duration

SIGNAL = "foresight"
"""What its verdict is called, and the field of the plan that asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Everything that foresight weighs, in replicas of the smallest pool.

    profile: usual now; ahead: the most that is usual until a start from now, then: from there on; all as far as the
    profile is trusted. rising, lasting: forecasts; their sizes are with head room. backlog: waiting work, in seconds of
    one replica. raise_to, keep_to: whole replicas.
    """

    profile: float
    ahead: float
    then: float
    level: float
    now: float
    rising: float
    rising_size: float
    lasting: float
    lasting_size: float
    backlog_s: float
    raise_to: int
    keep_to: int


def foreseen(case: Case) -> Verdict:
    """Raises to what is foreseen one start from now, and keeps what is foreseen until then. Reserve included."""
    learned, now = case.learned, case.signals.arrivals_now
    if learned is None:
        return Verdict(signal=SIGNAL, reason=Reason.NOT_KNOWN, message="nothing is learned of the last days yet")
    if learned.rising is None or learned.lasting is None:
        message = "less than a day of arrivals is known: the other signals alone"
        return Verdict(signal=SIGNAL, reason=Reason.HISTORY_SHORT, message=message)
    if now is None:
        return Verdict(signal=SIGNAL, reason=Reason.NOT_KNOWN, message="not heard for two minutes yet")
    found = terms(case.plan, case.signals, learned, now=now, rising=learned.rising, lasting=learned.lasting)
    reserve = case.required.at(case.now).reserve
    wants, keeps = (
        _pool(case.plan, learned, found.raise_to) + reserve,
        _pool(case.plan, learned, found.keep_to) + reserve,
    )
    message = _words(found, learned, wants=wants, reserve=reserve)
    if wants <= case.due:
        return Verdict(signal=SIGNAL, reason=Reason.WITHIN_PLAN, message=message, keeps=keeps)
    return Verdict(signal=SIGNAL, reason=Reason.FORESEEN, message=message, wants=wants, sure=wants, keeps=keeps)


def terms(plan: Plan, signals: Signals, learned: Learned, *, now: float, rising: HeadRoom, lasting: HeadRoom) -> Terms:
    """All terms as of the readings. now: the rate, in requests/s."""
    at, served = signals.at, at_start(signals.at, learned)
    used = learned.trust if learned.has_profile else 0.0
    profile = used * learned.planned(plan, at)
    ahead = used * learned.most_planned(plan, at, served + BEYOND)
    then = used * learned.most_planned(plan, served + SLICE, served + SLICE + BEYOND)
    rates = Rates(now=now / learned.unit, level=_level(plan, signals, learned) if used else 1.0)
    soon = foresight.foreseen(FLOATS, rates, Profile(now=profile, ahead=then))
    until = foresight.foreseen(FLOATS, rates, Profile(now=profile, ahead=ahead))
    hour = at.astimezone(plan.zone).hour
    soon_size, until_size = (
        _sized(learned, forecast, room, hour, rates.now) for forecast, room in ((soon, rising), (until, lasting))
    )
    backlog_s = signals.waiting.least / learned.unit
    raise_to, keep_to = (
        foresight.replicas(FLOATS, raise_to=soon_size, keep_to=until_size, held=held, backlog_s=backlog_s)
        for held in (0.0, math.inf)
    )
    return Terms(
        profile=profile,
        ahead=ahead,
        then=then,
        level=rates.level,
        now=rates.now,
        rising=soon,
        rising_size=soon_size,
        lasting=until,
        lasting_size=until_size,
        backlog_s=backlog_s,
        raise_to=round(raise_to),
        keep_to=round(keep_to),
    )


def at_start(at: datetime, learned: Learned) -> datetime:
    """When a replica that is asked for now serves."""
    return at + learned.start


def _sized(learned: Learned, forecast: float, room: HeadRoom, hour: int, now: float) -> float:
    spread = forecast**foresight.SPREAD_POWER * room.by_hour[hour]
    size: float = foresight.with_head_room(
        FLOATS, forecast, head_room=room.room, spread=spread, most=learned.most, now=now
    )
    return size


def _level(plan: Plan, signals: Signals, learned: Learned) -> float:
    """How much busier the last hours were than usual; of the minutes that were heard, or counted before."""
    usual = sum(learned.usual_day(plan, signals.at.astimezone(plan.zone).date())) / SLOTS
    heard = list(_minutes(signals, learned))
    if not usual or not heard:
        return 1.0
    found: float = foresight.level(
        FLOATS,
        observed=sum(rate for _, rate in heard) / len(heard),
        expected=sum(learned.planned_at(plan, (minute for minute, _ in heard))) / len(heard),
        usual=usual,
    )
    return found


def _minutes(signals: Signals, learned: Learned) -> Iterator[tuple[datetime, float]]:
    """The whole minutes of the last hours with their rates, in replicas."""
    last, recent = int(signals.at.timestamp()) // 60, learned.recent
    begin = int(recent.start.timestamp()) // 60
    for minute in range(last - LEVEL_S // 60, last):
        counted = signals.minutes.get(minute)
        rate = math.nan if counted is None else counted / 60
        if counted is None and 0 <= minute - begin < len(recent.rates):
            rate = recent.rates[minute - begin]
        if not math.isnan(rate):
            yield datetime.fromtimestamp(minute * 60, UTC), rate / learned.unit


def _pool(plan: Plan, learned: Learned, replicas: int) -> int:
    """Replicas of the pool that serves as much as so many of the smallest: together, each may serve more."""
    return need(exact(replicas * learned.unit), plan.capacity, plan.bounds.maximum).unbounded


def _words(found: Terms, learned: Learned, *, wants: int, reserve: int) -> str:
    """Every term, in the order in which they are weighed."""
    profile = "no usual day is used"
    if learned.has_profile:
        start = format_duration(learned.start)
        trusted = f" (trusted by {learned.trust:.0%})" if learned.trust < 1 else ""
        profile = f"usual{trusted} {found.profile:.3g} now, {found.then:.3g} in {start}, busier by {found.level:.3g}"
    room, waiting = found.rising_size - found.rising, found.backlog_s / foresight.BACKLOG_S
    return (
        f"{profile}; {found.now:.3g} arrive; {found.rising:.3g} foreseen, {room:.3g} of head room, {waiting:.3g} for "
        f"what waits, {reserve} in reserve: {wants} replicas"
    )
