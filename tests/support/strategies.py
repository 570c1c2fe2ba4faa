"""Plans nobody would write by hand: seeded ones around clock changes, and Hypothesis' own.

Seeded plans are for long comparisons that must be the same on every machine; Hypothesis' shrink to the smallest plan
that breaks a property.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from servingplan.planning.plan import (
    Bounds,
    Calendar,
    Capacity,
    CronWindow,
    Lead,
    Level,
    Override,
    Plan,
    PoolCapacity,
    Profile,
    Rate,
    Reserve,
    ScaleDown,
    Total,
    TreatAs,
    Window,
)
from support.plans import a_capacity, a_plan

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "UTC")
"""Two changes a year, one of half an hour, half-hour offsets, beyond the date line, and none."""

DAY = timedelta(days=1)
WALLS = tuple(
    time(*divmod(minutes, 60))
    for minutes in (0, 15, 60, 90, 100, 105, 110, 120, 125, 135, 140, 150, 165, 175, 180, 190, 240, 360, 1350, 1439)
)
"""Wall times near midnight and in and around every gap and doubled hour of `ZONES`."""
OFFICE = (time(8), time(9, 30), time(12), time(17, 45), time(20))
CRONS = ("{} * * *", "{} 1 * *", "{} * * 0", "{} 1-7 * 1", "{} */2 3,10 *", "{} * * 6,7", "{} 25-31 3,4,10,11 *")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a zone's offset: the first instant of the new one."""

    instant: datetime
    before: timedelta
    after: timedelta


def offset_changes_of(zone: ZoneInfo, first_year: int, last_year: int) -> list[Change]:
    """All offset changes of a zone, found by reading its clock at every minute near a day that differs."""
    changes = []
    day = datetime(first_year, 1, 1, tzinfo=UTC)
    while day.year <= last_year:
        if _offset(day, zone) != _offset(day + DAY, zone):
            minutes = [day + timedelta(minutes=m) for m in range(1441)]
            instant = next(m for m in minutes if _offset(m, zone) != _offset(day, zone))
            changes.append(Change(instant=instant, before=_offset(day, zone), after=_offset(instant, zone)))
        day += DAY
    return changes


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


class SeededPlans:
    """Plans of one zone from a seed, with their dates near `dates` of interest."""

    def __init__(self, zone: str, dates: Sequence[date], seed: int) -> None:
        self.zone = ZoneInfo(zone)
        self.dates = dates
        self.random = Random(f"{zone} {seed}")  # noqa: S311 - the same plans on every machine

    def plan(self) -> Plan:
        """The next plan."""
        pick = self.random
        maximum = pick.randint(4, 30)
        return a_plan(
            zone=self.zone,
            base=Rate(requests_per_second=pick.choice([Decimal(0), Decimal("0.5"), Decimal(2), Decimal("10.1")])),
            capacity=self._capacity(),
            reserve=Reserve(replicas=pick.randint(0, 3), quiet=pick.randint(0, 3)),
            bounds=Bounds(minimum=pick.randint(0, 2), maximum=maximum),
            windows=self._windows(),
            cron_windows=tuple(self._cron(i) for i in range(pick.choice([0, 0, 1, 2]))),
            profile=self._profile(),
            calendars=tuple(self._calendar(i) for i in range(pick.choice([0, 1, 2, 3]))),
            overrides=tuple(self._override(i) for i in range(pick.choice([0, 1, 3, 6]))),
        )

    def _level(self) -> Level:
        if self.random.random() < 0.4:
            return Total(replicas=self.random.randint(0, 12))
        return self._rate()

    def _rate(self) -> Rate:
        return Rate(requests_per_second=Decimal(self.random.randint(0, 600)) / 10)

    def _wall(self) -> time:
        return self.random.choice(OFFICE if self.random.random() < 0.25 else WALLS)

    def _capacity(self) -> Capacity:
        if self.random.random() < 0.6:
            return a_capacity(self.random.choice(["5", "2.4", "0.3"]))
        points = ((1, "2.4"), (4, "3.1"), (8, "3.4"))
        return Capacity(points=tuple(PoolCapacity(replicas=n, requests_per_second=Decimal(c)) for n, c in points))

    def _windows(self) -> tuple[Window, ...]:
        """A few windows in any order; half of the time one begins where another ends."""
        windows: list[Window] = []
        for i in range(self.random.randint(0, 5)):
            adjacent = windows and self.random.random() < 0.5
            start = self.random.choice(windows).end if adjacent else self._wall()
            days = frozenset(self.random.sample(range(7), self.random.randint(1, 7)))
            windows.append(Window(name=f"w{i}", days=days, start=start, end=self._wall(), level=self._level()))
        self.random.shuffle(windows)
        return tuple(windows)

    def _cron(self, i: int) -> CronWindow:
        at = self._wall()
        cron = self.random.choice(CRONS).format(f"{at.minute} {at.hour}")
        duration = timedelta(minutes=self.random.choice([30, 60, 90, 480, 1440, 2000, 10080]))
        return CronWindow(name=f"c{i}", cron=cron, at=at, duration=duration, level=self._level())

    def _profile(self) -> Profile | None:
        length = self.random.choice([0, 0, 0, 168, 168, 1008])
        rates = tuple(Decimal(self.random.choice([0, 1, 2, 5, 10, 18, 40])) for _ in range(length))
        return Profile(rates=rates) if length else None

    def _calendar(self, i: int) -> Calendar:
        days = self.random.sample(list(self.dates), min(len(self.dates), self.random.randint(5, 60)))
        near = [day + self.random.randint(-1, 1) * DAY for day in days]
        word: TreatAs | int | Rate = self.random.choice([TreatAs.BASE, self.random.randint(0, 6), self._rate()])
        return Calendar(name=f"k{i}", dates=frozenset(near), treat_as=word)

    def _override(self, i: int) -> Override:
        day = self.random.choice(self.dates) + self.random.randint(-1, 1) * DAY
        start = datetime.combine(day, self._wall())
        end = start + timedelta(minutes=self.random.choice([30, 45, 60, 600, 1440, 3000]))
        return Override(name=f"o{i}", start=start, end=end, level=self._level())


def rates(highest: int = 200) -> st.SearchStrategy[Decimal]:
    """Rates in requests/s with up to two decimals."""
    return st.integers(0, highest * 100).map(lambda n: Decimal(n) / 100)


def levels() -> st.SearchStrategy[Level]:
    """Rates and stated totals."""
    return st.one_of(
        rates().map(lambda r: Rate(requests_per_second=r)), st.integers(0, 40).map(lambda n: Total(replicas=n))
    )


def capacities() -> st.SearchStrategy[Capacity]:
    """One number, or up to four pool sizes with any goodput."""
    sizes = st.lists(st.integers(1, 24), min_size=1, max_size=4, unique=True).map(sorted)
    goodput = st.integers(1, 1200).map(lambda n: Decimal(n) / 100)
    return sizes.flatmap(
        lambda ns: st.tuples(*[goodput] * len(ns)).map(
            lambda cs: Capacity(
                points=tuple(PoolCapacity(replicas=n, requests_per_second=c) for n, c in zip(ns, cs, strict=True))
            )
        )
    )


def wall_times() -> st.SearchStrategy[time]:
    """Every five minutes of a day."""
    return st.integers(0, 287).map(lambda n: time(*divmod(n * 5, 60)))


def windows() -> st.SearchStrategy[tuple[Window, ...]]:
    """Up to four windows."""
    one = st.builds(
        Window,
        name=st.just("w"),
        days=st.frozensets(st.integers(0, 6), min_size=1),
        start=wall_times(),
        end=wall_times(),
        level=levels(),
    )
    return st.lists(one, max_size=4).map(lambda ws: tuple(_renamed(ws)))


def overrides(near: date) -> st.SearchStrategy[tuple[Override, ...]]:
    """Up to three overrides that start within three days of a date."""

    def build(offset: int, at: time, minutes: int, level: Level) -> Override:
        start = datetime.combine(near + timedelta(days=offset), at)
        return Override(name="o", start=start, end=start + timedelta(minutes=minutes), level=level)

    one = st.builds(build, st.integers(-3, 3), wall_times(), st.integers(1, 60).map(lambda n: n * 30), levels())
    return st.lists(one, max_size=3).map(lambda os: tuple(_renamed(os)))


def _renamed(items: Sequence[Any]) -> list[Any]:
    return [replace(item, name=f"{item.name}{i}") for i, item in enumerate(items)]


def bounds() -> st.SearchStrategy[Bounds]:
    """A minimum of up to 4 and a maximum of up to 40."""
    return st.tuples(st.integers(0, 4), st.integers(4, 40)).map(lambda b: Bounds(minimum=b[0], maximum=b[1]))


def leads() -> st.SearchStrategy[Lead]:
    """Leads from nothing to two hours, without margin."""
    return st.integers(0, 120).map(
        lambda m: Lead(declared=timedelta(minutes=m), margin=Fraction(0), maximum=timedelta(minutes=m))
    )


def scale_downs() -> st.SearchStrategy[ScaleDown]:
    """Steps of 1 to 5, every 30 s to 30 min."""
    return st.builds(
        ScaleDown, step=st.integers(1, 5), every=st.integers(1, 60).map(lambda n: timedelta(seconds=30 * n))
    )


@st.composite
def plans(draw: st.DrawFn, near: date = date(2026, 3, 29)) -> Plan:
    """Any plan, with its overrides and calendar dates near a date: by default a clock change in Berlin."""
    word = st.one_of(st.just(TreatAs.BASE), st.integers(0, 6), rates().map(lambda r: Rate(requests_per_second=r)))
    dates = st.frozensets(st.integers(-4, 4).map(lambda n: near + timedelta(days=n)), max_size=3)
    calendars = draw(st.lists(st.tuples(dates, word), max_size=2))
    day = draw(st.none() | st.lists(rates(), min_size=8, max_size=8))
    return a_plan(
        zone=ZoneInfo(draw(st.sampled_from(ZONES))),
        base=Rate(requests_per_second=draw(rates(20))),
        capacity=draw(capacities()),
        reserve=Reserve(replicas=draw(st.integers(0, 3)), quiet=draw(st.integers(0, 3))),
        bounds=draw(bounds()),
        windows=draw(windows()),
        profile=day and Profile(rates=tuple(day) * 21),
        overrides=draw(overrides(near)),
        calendars=tuple(Calendar(name=f"k{i}", dates=d, treat_as=w) for i, (d, w) in enumerate(calendars)),
        lead=draw(leads()),
        scale_down=draw(scale_downs()),
    )
