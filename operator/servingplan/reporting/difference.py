"""What a change of a plan changes: where replicas differ, and what that costs a week.

In: two outlooks over the same range, the old plan's and the new one's. Out: a `Difference`, and its document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from servingplan.planning.series import StepFunction
from servingplan.rendering.times import wire_time
from servingplan.reporting.hours import GpuHours
from servingplan.reporting.outlook import Outlook, Usual, moves, tenth, usual

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Replicas on [start, end) that were `old` and become `new`."""

    start: datetime
    end: datetime
    old: int
    new: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualChange:
    """Changes that are alike but for their date."""

    first: Changed
    dates: Sequence[date]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where required and asked-for replicas differ, and the GPU-hours of a week of the range, old and new."""

    old: Outlook
    new: Outlook
    required: Sequence[Changed]
    asked: Sequence[Changed]

    @property
    def old_week(self) -> float:
        """Planned GPU-hours a week, before."""
        return _a_week(self.old, lambda hours: hours.planned)

    @property
    def new_week(self) -> float:
        """Planned GPU-hours a week, after."""
        return _a_week(self.new, lambda hours: hours.planned)

    @property
    def week(self) -> float:
        """The difference in planned GPU-hours a week; positive where the new plan holds more."""
        return self.new_week - self.old_week


def difference(old: Outlook, new: Outlook) -> Difference:
    """Compare two outlooks that start together; where one is longer, its rest is left out."""
    return Difference(
        old=old,
        new=new,
        required=_changed(old.course.required_function, new.course.required_function),
        asked=_changed(old.course.asked_function, new.course.asked_function),
    )


def _changed(old: StepFunction[int], new: StepFunction[int]) -> tuple[Changed, ...]:
    start, end = max(old.start, new.start), min(old.end, new.end)
    times = sorted({start, *(t for t in (*old.times, *new.times) if start < t < end)})
    found: list[Changed] = []
    for time, following in zip(times, [*times[1:], end], strict=True):
        before, after = old.at(time), new.at(time)
        last = found[-1] if found else None
        if last is not None and (last.end, last.old, last.new) == (time, before, after):
            found[-1] = Changed(start=last.start, end=following, old=before, new=after)
        elif before != after:
            found.append(Changed(start=time, end=following, old=before, new=after))
    return tuple(found)


def usual_changes(found: Sequence[Changed], outlook: Outlook) -> tuple[UsualChange, ...]:
    """Changes that are alike but for their date, together, by their first time of day."""
    zone = outlook.plan.zone
    groups: dict[object, list[Changed]] = {}
    for change in found:
        key = (change.start.astimezone(zone).time(), change.end.astimezone(zone).time(), change.old, change.new)
        groups.setdefault((*key, (change.end - change.start).days), []).append(change)
    together = [
        UsualChange(first=group[0], dates=tuple(change.start.astimezone(zone).date() for change in group))
        for group in groups.values()
    ]
    return tuple(sorted(together, key=lambda u: (u.first.start.astimezone(zone).time(), u.first.start)))


def changed_moves(found: Difference) -> tuple[tuple[Usual, ...], tuple[Usual, ...]]:
    """Rises and falls that only the old plan has, and those that only the new one has."""
    old, new = moves(found.old), moves(found.new)
    gone, added = [move for move in old if move not in new], [move for move in new if move not in old]
    return usual(gone, found.new), usual(added, found.new)


def _a_week(outlook: Outlook, figure: Callable[[GpuHours], float]) -> float:
    return figure(outlook.hours) * (_WEEK / (outlook.end - outlook.start))


def difference_document(found: Difference) -> dict[str, Any]:
    """The difference as ``plan --against OLD -o json`` adds it under ``against``."""
    return {
        "plan": {"namespace": found.old.plan.namespace, "name": found.old.plan.name},
        "required": [_entry(change) for change in found.required],
        "asked": [_entry(change) for change in found.asked],
        "gpuHoursPerWeek": {
            "old": round(found.old_week, 1),
            "new": round(found.new_week, 1),
            "difference": tenth(found.week),
        },
    }


def _entry(change: Changed) -> dict[str, Any]:
    return {"from": wire_time(change.start), "to": wire_time(change.end), "old": change.old, "new": change.new}
