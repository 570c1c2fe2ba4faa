"""The profile: what is known of a workload, as it is kept and shown.

In: what was counted, a zone, and what to leave out. Out: `Profile`, which ``record`` keeps and ``manifests`` turns
into a plan. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np

from servingplan.errors import InputError, Problem
from servingplan.profiling.days import BUSIEST_SECONDS, Days, by_date
from servingplan.profiling.days_off import DayOff, Silence, days_off, like_weekday, silences
from servingplan.profiling.formats.format import FileRead
from servingplan.profiling.lengths import Lengths
from servingplan.profiling.predictability import Predictability, predictability
from servingplan.profiling.tally import Arrivals, Counted, Share
from servingplan.profiling.week import HOUR, Across, WeekSlot, fitting_minutes, ordinary_week

FORMAT = "servingplan.dev/profile/v1"
"""First in the file: what it is."""

_HOURS = 24
_FEWEST_IN_HOUR = 30
"""Requests of an hour whose spread over its minutes says something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a profile comes from: files, or queries of a Prometheus; and what people should know of how it was read."""

    files: tuple[FileRead, ...] = ()
    queries: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of a workload.

    start, end: of what was logged. step_seconds: the finest known time; where it is more than five minutes, rates are
    means of steps. requests: all, deferrable: those of them that can wait, which no rate holds. week: empty where less
    than a day was logged. across: what stands for several weeks. dispersion: variance over mean of one-minute counts,
    the median of hours; 1 is chance alone, None where steps are longer. days_off_like: weekday of the week that days
    off are like.
    """

    format: str = FORMAT
    time_zone: str
    source: Source
    start: datetime
    end: datetime
    step_seconds: float
    requests: float
    deferrable: float
    mean_rate: float
    slot_minutes: int
    across: Across
    week: tuple[WeekSlot, ...]
    input: Lengths | None
    output: Lengths | None
    prefix_share: float | None
    dispersion: float | None
    tenants: tuple[Share, ...]
    priorities: tuple[Share, ...]
    days_off: tuple[DayOff, ...]
    days_off_like: int | None
    silences: tuple[Silence, ...]
    predictability: Predictability

    @property
    def days(self) -> float:
        """How long was logged."""
        return (self.end - self.start).total_seconds() / 86400

    @property
    def peak(self) -> WeekSlot | None:
        """The busiest slot of the week."""
        return max(self.week, key=lambda slot: slot.rate, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What people may choose. slot_minutes: None for what the log allows. holidays: names by date."""

    slot_minutes: int | None = None
    across: Across = Across.MEDIAN
    holidays: Mapping[date, str]


def profile_of(counted: Counted, source: Source, zone: ZoneInfo, choices: Choices) -> Profile:
    """The profile. Raises InputError where every request can wait."""
    arrivals = counted.arrivals
    known = np.isfinite(arrivals.counts)
    if not known.any():
        raise InputError(Problem(path="", reason="NoRequests", message="no step holds a number of requests"))
    mean_rate = float(np.nanmean(arrivals.counts)) / arrivals.step
    logged = by_date(arrivals, zone, _HOURS)
    hours, off, silent = _cleaned(logged, choices.holidays)
    minutes = choices.slot_minutes or fitting_minutes(arrivals.step, mean_rate)
    days = hours if minutes == HOUR else _fine(arrivals, zone, minutes, hours)
    return Profile(
        time_zone=zone.key,
        source=source,
        start=datetime.fromtimestamp(arrivals.start, UTC),
        end=datetime.fromtimestamp(arrivals.end, UTC),
        step_seconds=arrivals.step,
        requests=counted.requests,
        deferrable=counted.deferrable,
        mean_rate=mean_rate,
        slot_minutes=minutes,
        across=choices.across,
        week=ordinary_week(days, choices.across),
        input=counted.input,
        output=counted.output,
        prefix_share=counted.prefix_share,
        dispersion=_dispersion(arrivals),
        tenants=counted.tenants,
        priorities=counted.priorities,
        days_off=off,
        days_off_like=like_weekday(logged, off),
        silences=silent,
        predictability=predictability(hours),
    )


def _cleaned(logged: Days, names: Mapping[date, str]) -> tuple[Days, tuple[DayOff, ...], tuple[Silence, ...]]:
    """Hours without silences and days off, and both by themselves."""
    marked, silent = silences(logged)
    heard = logged.without_slots(marked)
    off = days_off(heard, names)
    return heard.without(_rows(heard, off)), off, silent


def _rows(days: Days, off: tuple[DayOff, ...]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    dates = {each.day for each in off}
    return np.array([day in dates for day in days.dates])


def _fine(arrivals: Arrivals, zone: ZoneInfo, minutes: int, hours: Days) -> Days:
    """Finer slots of the same hours: what was taken out of those is taken out here."""
    fine = by_date(arrivals, zone, _HOURS * HOUR // minutes)
    return fine.without_slots(np.repeat(np.isnan(hours.mean), HOUR // minutes, axis=1))


def _dispersion(arrivals: Arrivals) -> float | None:
    if arrivals.step > 60:
        return None
    minutes = len(arrivals.counts) // HOUR * HOUR
    hours = arrivals.counts[:minutes].reshape(-1, HOUR)
    busy = hours[hours.sum(axis=1) >= _FEWEST_IN_HOUR]
    return float(np.median(busy.var(axis=1, ddof=1) / busy.mean(axis=1))) if len(busy) else None


def busiest_is_known(profile: Profile) -> bool:
    """Whether rates are of the busiest five minutes, or of longer steps."""
    return profile.step_seconds <= BUSIEST_SECONDS
