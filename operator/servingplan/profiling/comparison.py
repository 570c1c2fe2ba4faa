"""A plan against what was observed: where it falls short, where it asks for too much, and the patch. Pure.

In: a `Plan`, its document, and a `Profile` in its time zone. Out: `Comparison`. The plan's ordinary week is compared
hour by hour: overrides and calendars are left out, and of cron windows counts what they ask for in every week.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from servingplan.errors import InputError, Problem
from servingplan.planning.calendar import Edge, offset_changes, resolve_wall
from servingplan.planning.demand import Requirement, requirements
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.sizing import need
from servingplan.planning.units import rate_number
from servingplan.profiling.lengths import Lengths
from servingplan.profiling.manifests import quantiles, week_of, window_document
from servingplan.profiling.profile import Profile
from servingplan.profiling.week import WeekSlot
from servingplan.profiling.windows import decimal_rate, round_up, schedules

_WEEKS = 4
"""Ordinary weeks whose smallest requirement counts: a window of one day in a month is in no ordinary week."""

_HOURS = 168
_HOUR, _SECOND = timedelta(hours=1), timedelta(seconds=1)

_LENGTHS_DIFFER = 0.2
"""Of a quantile of lengths: beyond, what one replica serves is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCompared:
    """One hour of the week.

    declared, needed: replicas without reserve. rate: declared requests/s, None where a total is stated.
    """

    slot: WeekSlot
    declared: int
    needed: int
    rate: Decimal | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Hours in a row, the same on several weekdays, in which a plan differs alike.

    start, end: minutes since midnight, up to 1,440. observed: the busiest five minutes, in requests/s.
    """

    days: tuple[int, ...]
    start: int
    end: int
    declared: int
    needed: int
    rate: Decimal | None
    observed: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensCompared:
    """A quantile of lengths that differs. side: input or output."""

    side: str
    quantile: str
    declared: int
    observed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs.

    short_hours: of a week, with too few replicas. spare_hours: replica-hours of a week that are too many. patch: a JSON
    merge patch of the ServingPlan; empty where nothing is to be edited.
    """

    slots: tuple[SlotCompared, ...]
    stretches: tuple[Stretch, ...]
    tokens: tuple[TokensCompared, ...]
    short_hours: int
    spare_hours: int
    patch: Mapping[str, Any]


def compared(plan: Plan, document: Mapping[str, Any], profile: Profile) -> Comparison:
    """The comparison. document: the ServingPlan as it is written.

    Raises InputError for a profile in another zone, and for one without a week.
    """
    if plan.zone.key != profile.time_zone:
        message = f"the profile's week is in {profile.time_zone}, the plan's in {plan.zone.key}: profile in that zone"
        raise InputError(Problem(path="spec.schedule.timeZone", reason="OtherTimeZone", message=message))
    week = _by_hour(week_of(profile))
    declared = _declared(plan, profile.end)
    slots = tuple(_slot(plan, most, slot) for most, slot in zip(declared, week, strict=True))
    tokens = tuple(_tokens(plan, profile))
    return Comparison(
        slots=slots,
        stretches=_stretches(slots),
        tokens=tokens,
        short_hours=sum(each.needed > each.declared for each in slots),
        spare_hours=sum(max(0, each.declared - each.needed) for each in slots),
        patch=_patch(plan, document, slots, tokens),
    )


def _slot(plan: Plan, declared: Requirement, slot: WeekSlot) -> SlotCompared:
    return SlotCompared(
        slot=slot,
        declared=declared.need,
        needed=_needed(plan, slot.rate),
        rate=declared.rate,
        source=str(declared.source),
    )


def _by_hour(week: Sequence[WeekSlot]) -> list[WeekSlot]:
    """Each hour by its busiest slot: ten minutes that need less are no reason to edit a plan."""
    slots = len(week) // _HOURS
    return [max(week[i * slots : (i + 1) * slots], key=lambda each: each.rate) for i in range(_HOURS)]


def _needed(plan: Plan, rate: float) -> int:
    return need(decimal_rate(rate), plan.capacity, plan.bounds.maximum).unbounded


def _declared(plan: Plan, after: datetime) -> Iterator[Requirement]:
    """By hour, the most that is required inside it, in that of some weeks in which it is least."""
    ordinary = replace(plan, overrides=(), calendars=())
    weeks = []
    for monday in itertools.islice(_ordinary_mondays(plan, after), _WEEKS):
        start = resolve_wall(monday, plan.zone, Edge.START)
        found = requirements(ordinary, start, start + _HOURS * _HOUR)
        starts = [start + i * _HOUR for i in range(_HOURS)]
        weeks.append([_most(found.values[i] for i in found.within(at, at + _HOUR - _SECOND)) for at in starts])
    yield from (min(same, key=lambda each: each.need) for same in zip(*weeks, strict=True))


def _most(found: Iterator[Requirement]) -> Requirement:
    return max(found, key=lambda each: each.need)


def _ordinary_mondays(plan: Plan, after: datetime) -> Iterator[datetime]:
    """Mondays after an instant, of weeks in which clocks do not change."""
    last = after.astimezone(plan.zone).date()
    for week in itertools.count(1):
        monday = last + timedelta(days=7 * week - last.weekday())
        days = [monday + timedelta(days=i) for i in range(-1, 9)]
        if not any(offset_changes(day, plan.zone) for day in days):
            yield datetime.combine(monday, time())


# ---- stretches ------------------------------------------------------------------------------------------


def _stretches(slots: Sequence[SlotCompared]) -> tuple[Stretch, ...]:
    """Where a plan differs, weekdays that are alike put together, in the order of the week."""
    together: dict[tuple[int, int, str, bool], list[Stretch]] = {}
    for weekday in range(7):
        for stretch in _of_day(slots[weekday * 24 : weekday * 24 + 24], weekday):
            key = (stretch.start, stretch.end, stretch.source, stretch.needed > stretch.declared)
            together.setdefault(key, []).append(stretch)
    return tuple(_merged(found) for found in together.values())


def _of_day(slots: Sequence[SlotCompared], weekday: int) -> Iterator[Stretch]:
    def kind(each: SlotCompared) -> tuple[int, str]:
        return (each.needed > each.declared) - (each.needed < each.declared), each.source

    place = 0
    for (sign, source), group in itertools.groupby(slots, kind):
        same = list(group)
        start, place = place, place + len(same) * 60
        if sign:
            worst = max(same, key=lambda each: sign * (each.needed - each.declared))
            yield Stretch(
                days=(weekday,),
                start=start,
                end=place,
                declared=worst.declared,
                needed=worst.needed,
                rate=worst.rate,
                observed=max(each.slot.rate for each in same),
                source=source,
            )


def _merged(found: Sequence[Stretch]) -> Stretch:
    """The same hours of several weekdays, by the weekday that differs most."""
    worst = max(found, key=lambda each: abs(each.needed - each.declared))
    days = tuple(day for each in found for day in each.days)
    return replace(worst, days=days, observed=max(each.observed for each in found))


# ---- lengths --------------------------------------------------------------------------------------------


def _tokens(plan: Plan, profile: Profile) -> Iterator[TokensCompared]:
    stated = plan.workload.tokens
    for side, declared, observed in (("input", stated.input, profile.input), ("output", stated.output, profile.output)):
        found = quantiles(observed) if isinstance(observed, Lengths) else {}
        for quantile, tokens in declared:
            if quantile in found and abs(found[quantile] - tokens) > _LENGTHS_DIFFER * tokens:
                yield TokensCompared(side=side, quantile=quantile, declared=tokens, observed=found[quantile])


# ---- the patch --------------------------------------------------------------------------------------------


def _patch(
    plan: Plan, document: Mapping[str, Any], slots: Sequence[SlotCompared], tokens: Sequence[TokensCompared]
) -> dict[str, Any]:
    """Only what is to be edited: lists of windows whole, because a merge patch replaces lists."""
    schedule = _schedule_patch(plan, document["spec"]["schedule"], slots)
    edits: dict[str, Any] = {"schedule": schedule} if schedule else {}
    if tokens:
        changed: dict[str, dict[str, int]] = {}
        for each in tokens:
            changed.setdefault(each.side, {})[each.quantile] = each.observed
        edits["workload"] = {"tokens": changed}
    return {"spec": edits} if edits else {}


def _schedule_patch(plan: Plan, written: Mapping[str, Any], slots: Sequence[SlotCompared]) -> dict[str, Any]:
    windows = [_edited(plan, dict(window), slots) for window in written.get("windows", [])]
    by_base = np.array([each.source == Reason.BASE.value.lower() for each in slots]).reshape(7, -1)
    edits: dict[str, Any] = {}
    if by_base.any() and any(
        each.needed != each.declared for each, own in zip(slots, by_base.ravel(), strict=True) if own
    ):
        found = schedules([each.slot for each in slots], plan.capacity, by_base).best
        if found.base != plan.base.requests_per_second:
            edits["base"] = {"requestsPerSecond": rate_number(found.base)}
        taken = {window["name"] for window in windows}
        for window in found.windows:
            name = next(name for name in _names(window.name) if name not in taken)
            windows.append(window_document(replace(window, name=name)))
    if windows != written.get("windows", []):
        edits["windows"] = windows
    return edits


def _edited(plan: Plan, window: dict[str, Any], slots: Sequence[SlotCompared]) -> dict[str, Any]:
    """A window with the rate that was observed where it decides; as it is where that is as many replicas."""
    own = [each for each in slots if each.source == f"{Reason.WINDOW.value.lower()} {window['name']}"]
    if not own or "days" not in window or "requestsPerSecond" not in window:
        return window
    observed = round_up(max(each.slot.rate for each in own), plan.capacity)
    needed = need(observed, plan.capacity, plan.bounds.maximum).unbounded
    if needed == max(each.declared for each in own):
        return window
    return {**window, "requestsPerSecond": rate_number(observed)}


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{count}" for count in itertools.count(2))
