"""Demand: what the plan asks for at each instant, and which part of the schedule asks for it.

In: a plan and a range of instants. Out: a step function of `Requirement`, the least that must be ready, without
lead. The order of precedence stands here: override, then the largest of calendar rates, active windows and the
profile, then the base, which counts only where nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from servingplan.planning.calendar import (
    MAX_CRON_DURATION,
    Edge,
    Interval,
    cron_instance,
    dates_between,
    local_date,
    offset_changes,
    override_interval,
    resolve_wall,
    window_instance,
)
from servingplan.planning.plan import Calendar, Level, Plan, Rate, Total
from servingplan.planning.reasons import Reason
from servingplan.planning.series import StepFunction, step_function
from servingplan.planning.sizing import need


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which part of the schedule asks: ``window working-day``, ``base``."""

    reason: Reason
    name: str = ""

    def __str__(self) -> str:
        """As people read it."""
        return f"{self.reason.value.lower()} {self.name}".strip()

    @property
    def precedence(self) -> tuple[int, str]:
        """Breaks ties between equal totals, so that the order in a list never matters."""
        return (_PRECEDENCE.index(self.reason), self.name)


_PRECEDENCE = (Reason.OVERRIDE, Reason.CALENDAR, Reason.WINDOW, Reason.PROFILE, Reason.BASE)
_STATED = frozenset({Reason.OVERRIDE, Reason.CALENDAR, Reason.WINDOW})
"""Where people stated a level for this very time: no quiet hours there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A level that a part of the schedule asks for during an interval."""

    interval: Interval
    level: Level
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The least that must be ready.

    replicas: the total, inside the bounds. need, reserve: what it consists of. unbounded: the total without
    bounds. rate: requests/s, None where a total is stated.
    """

    replicas: int
    need: int
    reserve: int
    unbounded: int
    rate: Decimal | None
    source: Source


def requirements(plan: Plan, start: datetime, end: datetime) -> StepFunction[Requirement]:
    """What is required at every instant of [start, end)."""
    claims = sorted(claims_between(plan, start, end), key=lambda claim: claim.interval.start)
    points: list[tuple[datetime, Requirement]] = []
    active: list[Claim] = []
    waiting = iter(claims)
    following = next(waiting, None)
    for instant in _boundaries(plan, claims, start, end):
        while following is not None and following.interval.start <= instant:
            active.append(following)
            following = next(waiting, None)
        active = [claim for claim in active if instant < claim.interval.end]
        points.append((instant, _required(plan, active, instant)))
    return step_function(points, end=end)


def claims_between(plan: Plan, start: datetime, end: datetime) -> Iterator[Claim]:
    """All claims of overrides, windows, cron windows and calendar rates that touch [start, end)."""
    for claim in _all_claims(plan, start, end):
        if not claim.interval.empty and claim.interval.start < end and start < claim.interval.end:
            yield claim


def _all_claims(plan: Plan, start: datetime, end: datetime) -> Iterator[Claim]:
    zone = plan.zone
    for override in plan.overrides:
        source = Source(reason=Reason.OVERRIDE, name=override.name)
        yield Claim(interval=override_interval(override, zone), level=override.level, source=source)
    first, last = local_date(start, zone), local_date(end, zone)
    for day in dates_between(first - timedelta(days=2), last):
        yield from _claims_of_date(plan, day)
    for day in dates_between(first - MAX_CRON_DURATION - timedelta(days=1), last):
        yield from _cron_claims_of_date(plan, day)


def _claims_of_date(plan: Plan, day: date) -> Iterator[Claim]:
    """What starts on a local date: calendars govern it, else its weekday does."""
    calendars = calendars_of(plan, day)
    for calendar in calendars:
        if isinstance(calendar.treat_as, Rate):
            source = Source(reason=Reason.CALENDAR, name=calendar.name)
            yield Claim(interval=_whole_date(day, plan.zone), level=calendar.treat_as, source=source)
    weekdays = weekdays_of(calendars, day)
    for window in plan.windows:
        if window.days & weekdays:
            source = Source(reason=Reason.WINDOW, name=window.name)
            interval = window_instance(window, day, plan.zone)
            yield Claim(interval=interval, level=window.level, source=source)


def _cron_claims_of_date(plan: Plan, day: date) -> Iterator[Claim]:
    for window in plan.cron_windows:
        interval = cron_instance(window, day, plan.zone)
        if interval is not None:
            source = Source(reason=Reason.WINDOW, name=window.name)
            yield Claim(interval=interval, level=window.level, source=source)


def calendars_of(plan: Plan, day: date) -> tuple[Calendar, ...]:
    """The calendars that name a local date."""
    return tuple(calendar for calendar in plan.calendars if day in calendar.dates)


def weekdays_of(calendars: Sequence[Calendar], day: date) -> frozenset[int]:
    """The weekdays whose windows and profile a date takes; none where it is treated as Base or has a rate.

    Where several calendars name one date, each word counts and the largest of what they ask for wins.
    """
    if not calendars:
        return frozenset({day.weekday()})
    return frozenset(c.treat_as for c in calendars if isinstance(c.treat_as, int))


def _whole_date(day: date, zone: ZoneInfo) -> Interval:
    # Both midnights are the first instant of their date, which is what START resolves to.
    midnight = [datetime.combine(d, time()) for d in (day, day + timedelta(days=1))]
    return Interval(start=resolve_wall(midnight[0], zone, Edge.START), end=resolve_wall(midnight[1], zone, Edge.START))


def _boundaries(plan: Plan, claims: Sequence[Claim], start: datetime, end: datetime) -> list[datetime]:
    """Every instant of [start, end) at which the requirement can change."""
    instants = {start}
    for claim in claims:
        instants |= {claim.interval.start, claim.interval.end}
    if plan.profile is not None:
        for day in dates_between(local_date(start, plan.zone), local_date(end, plan.zone)):
            instants |= _slot_starts(plan.profile.slot, day, plan.zone)
    return sorted(instant for instant in instants if start <= instant < end)


@lru_cache(maxsize=1024)
def _slot_starts(slot: timedelta, day: date, zone: ZoneInfo) -> frozenset[datetime]:
    """The instants at which a local date passes from one slot of a profile to the next."""
    midnight = datetime.combine(day, time())
    walls = [midnight + i * slot for i in range(timedelta(days=1) // slot)]
    return frozenset(
        {resolve_wall(wall, zone, edge) for wall in walls for edge in Edge}.union(offset_changes(day, zone))
    )


def _required(plan: Plan, active: Sequence[Claim], instant: datetime) -> Requirement:
    """The requirement that wins at an instant, given the claims that are active there."""
    overrides = [claim for claim in active if claim.source.reason is Reason.OVERRIDE]
    if overrides:
        latest = max(claim.interval.start for claim in overrides)
        claims = [(c.level, c.source) for c in overrides if c.interval.start == latest]
    else:
        claims = [(c.level, c.source) for c in active] + _profile_claims(plan, instant)
    claims = claims or [(plan.base, Source(reason=Reason.BASE))]
    stated = any(source.reason in _STATED for _, source in claims)
    candidates = [_sized(plan, level, source, stated=stated) for level, source in claims]
    return min(candidates, key=lambda r: (-r.replicas, -r.unbounded, *r.source.precedence))


def _profile_claims(plan: Plan, instant: datetime) -> list[tuple[Level, Source]]:
    if plan.profile is None:
        return []
    wall = instant.astimezone(plan.zone)
    weekdays = weekdays_of(calendars_of(plan, wall.date()), wall.date())
    since_midnight = timedelta(hours=wall.hour, minutes=wall.minute, seconds=wall.second)
    source = Source(reason=Reason.PROFILE)
    return [
        (Rate(requests_per_second=plan.profile.rates[slot]), source)
        for weekday in sorted(weekdays)
        for slot in [(timedelta(days=weekday) + since_midnight) // plan.profile.slot]
    ]


def _sized(plan: Plan, level: Level, source: Source, *, stated: bool) -> Requirement:
    """A level as a requirement: need plus reserve, or the stated total, inside the bounds."""
    if isinstance(level, Total):
        unbounded, rate = level.replicas, None
        needed = max(0, level.replicas - plan.reserve.replicas)
    else:
        rate = level.requests_per_second
        size = need(rate, plan.capacity, plan.bounds.maximum)
        needed = size.replicas
        reserve = plan.reserve.replicas if stated or not _is_quiet(plan, needed) else plan.reserve.quiet
        unbounded = size.unbounded + reserve
    replicas = max(plan.bounds.minimum, min(unbounded, plan.bounds.maximum))
    return Requirement(
        replicas=replicas,
        need=min(needed, replicas),
        reserve=max(0, min(unbounded, replicas) - needed),
        unbounded=unbounded,
        rate=rate,
        source=source,
    )


def _is_quiet(plan: Plan, needed: int) -> bool:
    """Quiet hours: nothing was stated for now, and the need is at most the base's."""
    base = need(plan.base.requests_per_second, plan.capacity, plan.bounds.maximum)
    return needed <= base.replicas


def first_instant(plan: Plan, day: date) -> datetime:
    """The first instant of a local date."""
    return _whole_date(day, plan.zone).start
