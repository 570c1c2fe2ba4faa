"""What people apply: the profile as a ConfigMap, holidays as another, and a suggested ServingPlan. Pure.

In: a `Profile`, and what only people know (`Wishes`). Out: objects as plain dicts, and what to add or to know. A plan
without a stated capacity is not whole: nothing is put in its place, and `Suggestion.remarks` says what to add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.api.calendars import DATES_KEY, VALID_UNTIL_KEY
from servingplan.api.profiles import PROFILE_KEY
from servingplan.api.v1alpha1 import API_VERSION, KIND
from servingplan.errors import InputError, Problem
from servingplan.planning.plan import WEEKDAYS, Capacity
from servingplan.planning.sizing import need
from servingplan.planning.units import format_duration, format_rate, rate_number
from servingplan.profiling.lengths import Lengths
from servingplan.profiling.predictability import Verdict
from servingplan.profiling.profile import Profile
from servingplan.profiling.week import HOUR, Across, WeekSlot
from servingplan.profiling.windows import FittedWindow, Schedule, Schedules, capacity_of, round_up, schedules
from servingplan.rendering.metadata import CONFIG_LABEL

_RESERVE = 1
_GREW = 1.1
"""The last week's level from which on people should know that the median lies below it."""

_ABOVE_HIGHEST = Fraction(5, 4)
"""`maxReplicas` serves a quarter more than was ever logged: a bound is to stop mistakes, not growth."""


class Follow(StrEnum):
    """What the plan's schedule is made of."""

    WINDOWS = "windows"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What no log says. capacity: of one replica, in requests/s. target: apiVersion, kind and name.

    windows: how many, None for those that pay. holidays: names by date, of the years that the calendar covers.
    """

    name: str
    namespace: str
    target: Mapping[str, str]
    capacity: Decimal | None
    lead: timedelta
    follow: Follow
    windows: int | None
    holidays: Mapping[date, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Objects in the order in which they are applied; and what people should know, a sentence each."""

    objects: tuple[dict[str, Any], ...]
    remarks: tuple[str, ...]


def week_of(profile: Profile) -> tuple[WeekSlot, ...]:
    """The week. Raises InputError where the profile has none."""
    if not profile.week:
        message = (
            f"{profile.days * 24:.1f} hours are not enough: a profile needs every time of the day at least once, and "
            "is worth more with two weeks or four"
        )
        raise InputError(Problem(path="", reason="LogTooShort", message=message))
    return profile.week


def schedules_of(profile: Profile, capacity: Capacity | None) -> Schedules:
    """The schedules that a profile suggests. Raises InputError where it has no week."""
    return schedules(week_of(profile), capacity)


def suggestion(profile: Profile, wishes: Wishes) -> Suggestion:
    """The ConfigMaps and the plan. Raises InputError where the profile has no week."""
    capacity = None if wishes.capacity is None else capacity_of(wishes.capacity)
    found = schedules_of(profile, capacity)
    chosen = schedule_for(profile, found, wishes)
    dates, calendar_remark = _calendar(profile, wishes)
    profile_map = _config_map(f"{wishes.name}-profile", wishes, {PROFILE_KEY: profile_csv(profile.week)})
    calendar_map = [_config_map(f"{wishes.name}-holidays", wishes, dates)] if dates else []
    return Suggestion(
        objects=(profile_map, *calendar_map, _plan(profile, wishes, chosen, with_calendar=bool(dates))),
        remarks=tuple(_remarks(profile, wishes, chosen, calendar_remark)),
    )


def profile_csv(week: Sequence[WeekSlot]) -> str:
    """The week as ``profile.csv``: 168 rows, or 1,008 with the column minute."""
    fine = len(week) > 7 * 24
    rows = ["weekday,hour,minute,requests_per_second" if fine else "weekday,hour,requests_per_second"]
    for slot in week:
        minute = f"{slot.minute}," if fine else ""
        rate = format_rate(Decimal(f"{slot.rate:.4g}"))
        rows.append(f"{WEEKDAYS[slot.weekday]},{slot.hour},{minute}{rate}")
    return "\n".join(rows) + "\n"


def schedule_for(profile: Profile, found: Schedules, wishes: Wishes) -> Schedule:
    """The schedule that fits the wishes, and that pays."""
    if wishes.windows is not None:
        return max((s for s in found.by_windows if len(s.windows) <= wishes.windows), key=lambda s: len(s.windows))
    if profile.predictability.verdict in {Verdict.STEADY, Verdict.FEEDBACK_ALONE}:
        return one_level(profile, wishes.capacity)
    return found.best


def one_level(profile: Profile, capacity: Decimal | None) -> Schedule:
    """Base alone: the highest of a steady week; else the median, which feedback raises."""
    rates = sorted(slot.rate for slot in profile.week)
    steady = profile.predictability.verdict is Verdict.STEADY
    rate = rates[-1] if steady else rates[len(rates) // 2]
    unit = capacity_of(capacity if capacity is not None else Decimal(str(max(rates[-1], 1e-6))))
    base = round_up(rate, unit)
    each = float(need(base, unit, 1).unbounded) if capacity is not None else rate
    short = sum(1 for other in rates if need(Decimal(str(other)), unit, 1).unbounded > need(base, unit, 1).unbounded)
    return Schedule(base=base, windows=(), hours=each * 168, short_hours=short * profile.slot_minutes / HOUR)


def _plan(profile: Profile, wishes: Wishes, chosen: Schedule, *, with_calendar: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"targetRef": dict(wishes.target)}
    if tokens := _tokens(profile):
        spec["workload"] = {"tokens": tokens}
    if wishes.capacity is not None:
        spec["capacity"] = {"requestsPerSecond": rate_number(wishes.capacity)}
    spec["reserve"] = {"replicas": _RESERVE}
    spec["schedule"] = _schedule(profile, wishes, chosen, with_calendar=with_calendar)
    spec["leadTime"] = {"declared": format_duration(wishes.lead)}
    if wishes.capacity is not None:
        spec["bounds"] = {"maxReplicas": _most(profile, wishes.capacity)}
    if profile.predictability.verdict is Verdict.FEEDBACK_ALONE:
        spec["feedback"] = {"prometheus": {"source": "default"}}
        if wishes.capacity is not None:
            spec["feedback"]["maxExtra"] = _most(profile, wishes.capacity) - _RESERVE
    metadata = {"name": wishes.name, "namespace": wishes.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _schedule(profile: Profile, wishes: Wishes, chosen: Schedule, *, with_calendar: bool) -> dict[str, Any]:
    schedule: dict[str, Any] = {"timeZone": profile.time_zone}
    if wishes.follow is Follow.PROFILE:
        lowest = round_up(min(slot.rate for slot in profile.week), capacity_of(wishes.capacity or Decimal(1)))
        schedule["base"] = {"requestsPerSecond": rate_number(lowest)}
        schedule["profile"] = {"configMap": {"name": f"{wishes.name}-profile"}}
    else:
        schedule["base"] = {"requestsPerSecond": rate_number(chosen.base)}
        if chosen.windows:
            schedule["windows"] = [window_document(window) for window in chosen.windows]
    if with_calendar:
        like = profile.days_off_like
        treat_as = "Base" if like is None else WEEKDAYS[like]
        config_map = {"name": f"{wishes.name}-holidays"}
        schedule["calendars"] = [{"name": "holidays", "configMap": config_map, "treatAs": treat_as}]
    return schedule


def window_document(window: FittedWindow) -> dict[str, Any]:
    """A window as the API has it."""
    return {
        "name": window.name,
        "days": [WEEKDAYS[day] for day in window.days],
        "start": f"{window.start:%H:%M}",
        "end": f"{window.end:%H:%M}",
        "requestsPerSecond": rate_number(window.rate),
    }


def _tokens(profile: Profile) -> dict[str, dict[str, int]]:
    both = {"input": profile.input, "output": profile.output}
    return {side: quantiles(lengths) for side, lengths in both.items() if lengths is not None}


def quantiles(lengths: Lengths) -> dict[str, int]:
    """Lengths as the API states them: at least one token each."""
    stated = {"p50": lengths.p50, "p90": lengths.p90, "p95": lengths.p95, "p99": lengths.p99}
    return {name: max(1, tokens) for name, tokens in stated.items()}


def _most(profile: Profile, capacity: Decimal) -> int:
    highest = Fraction(Decimal(str(max(slot.highest for slot in profile.week)))) * _ABOVE_HIGHEST
    return max(1, -(-highest // Fraction(capacity))) + _RESERVE


def _config_map(name: str, wishes: Wishes, data: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": wishes.namespace, "labels": {CONFIG_LABEL: "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


# ---- days off ---------------------------------------------------------------------------------------------


def _calendar(profile: Profile, wishes: Wishes) -> tuple[dict[str, str], str | None]:
    """The calendar's data, or why there is none."""
    if not wishes.holidays:
        return {}, None
    zone = ZoneInfo(profile.time_zone)
    first, last = profile.start.astimezone(zone).date(), profile.end.astimezone(zone).date()
    inside = {day for day in wishes.holidays if first <= day < last and day.weekday() not in _rest_days(profile)}
    off = {each.day for each in profile.days_off}
    if not inside:
        return {}, "no holiday on a working day lies in the log, so whether they are quieter is not known: no calendar"
    if len(inside & off) * 2 < len(inside):
        seen = ", ".join(f"{wishes.holidays[day]} ({day})" for day in sorted(inside - off))
        return {}, f"holidays are as busy as other days here ({seen}), so no calendar is suggested"
    coming = sorted(day for day in wishes.holidays if day >= first)
    lines = [f"{day}  # {wishes.holidays[day]}" for day in coming]
    return {DATES_KEY: "\n".join(lines) + "\n", VALID_UNTIL_KEY: f"{coming[-1].year}-12-31"}, None


def _rest_days(profile: Profile) -> set[int]:
    """Weekdays far quieter than the busiest."""
    means = [sum(slot.mean for slot in profile.week if slot.weekday == day) for day in range(7)]
    return {day for day in range(7) if means[day] <= max(means) * 0.6}


def _remarks(profile: Profile, wishes: Wishes, chosen: Schedule, calendar: str | None) -> list[str]:
    found = [*_missing(wishes), *_of_the_future(profile, wishes)]
    if chosen.short_hours and wishes.follow is Follow.WINDOWS:
        found.append(
            f"{chosen.short_hours:g} hours of the ordinary week lie above the windows: too short to be worth one"
        )
    if profile.prefix_share:
        found.append(f"Benchmark with --prefix-hit-share {profile.prefix_share:.2f}: so much of the prompts repeats")
    if calendar is not None:
        found.append(calendar[0].upper() + calendar[1:])
    elif profile.days_off and not wishes.holidays:
        days = ", ".join(str(each.day) for each in profile.days_off)
        found.append(f"Days off were left out ({days}): name them in a calendar, or state --holidays, as in DE-BE")
    return found


def _missing(wishes: Wishes) -> Iterator[str]:
    if wishes.capacity is None:
        yield (
            "The plan lacks spec.capacity and spec.bounds.maxReplicas, which no log says: measure with "
            "`servingplan bench run`, then state --capacity"
        )


def _of_the_future(profile: Profile, wishes: Wishes) -> Iterator[str]:
    """Whether the next week will be like the plan."""
    verdict, level = profile.predictability.verdict, profile.predictability.level
    if verdict is Verdict.FEEDBACK_ALONE and wishes.windows is None:
        yield "A schedule will not help here: base is the median, and feedback raises it, from the source `default`"
    elif verdict is Verdict.TOO_SHORT:
        yield "Whether the next week will be like this one is not known from so short a log"
    if level is not None and level > _GREW and profile.across is Across.MEDIAN:
        yield (
            f"The last week had {level - 1:.0%} more requests than the weeks before led to expect, and the median of "
            "the weeks is stated: --across highest states the busiest"
        )
