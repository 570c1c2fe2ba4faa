"""The coming days of a plan: what is required, what is asked for, and what it costs.

In: a plan and a range. Out: an `Outlook`, and as a JSON document the contract of ``plan -o json``. Everything that
people see of a plan (tables, charts, pages) is a view of this. No clock, no I/O.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from servingplan.errors import Problem
from servingplan.planning.demand import Requirement, Source
from servingplan.planning.plan import Plan
from servingplan.planning.series import Piece
from servingplan.planning.timeline import Asked, Direction
from servingplan.rendering.acceptance import unaccepted
from servingplan.rendering.times import wire_time
from servingplan.reporting.hours import Course, GpuHours, counted_gpus, course, gpu_hours, nominal_month
from servingplan.reporting.local import after_days

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A plan's course over some days, its GPU-hours, and those of its nominal month.

    gpu_hour: what one GPU-hour costs, in any currency; None where it is not said.
    """

    plan: Plan
    course: Course
    hours: GpuHours
    month: GpuHours
    warnings: Sequence[Problem]
    gpu_hour: Decimal | None = None

    @property
    def start(self) -> datetime:
        """The first instant."""
        return self.course.start

    @property
    def end(self) -> datetime:
        """The first instant that does not belong to it."""
        return self.course.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One rise, or one fall with all its steps. end: when the last step is made. ready_by: when a rise is needed."""

    start: datetime
    end: datetime
    before: int
    after: int
    because: str
    ready_by: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """Moves that are alike but for their date."""

    moves: Sequence[Move]
    dates: Sequence[date]

    @property
    def first(self) -> Move:
        """The earliest, which stands for all."""
        return self.moves[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShare:
    """A level that a part of the schedule asks for, and how long it holds.

    slowest, fastest: the range of rates (requests/s) that come to this level; None where a total is stated.
    """

    source: Source
    need: int
    reserve: int
    replicas: int
    unbounded: int
    slowest: Decimal | None
    fastest: Decimal | None
    time: timedelta


def coming_days(plan: Plan, start: datetime, days: int, gpu_hour: Decimal | None = None) -> Outlook:
    """The plan from `start` (aware) for so many local days. gpu_hour: what one GPU-hour costs."""
    end = after_days(start, days, plan.zone)
    found = course(plan, start.astimezone(end.tzinfo), end)
    return Outlook(
        plan=plan,
        course=found,
        hours=gpu_hours(found, counted_gpus(plan)),
        month=nominal_month(plan),
        warnings=(*plan.warnings, *unaccepted(plan), *_unknown_gpus(plan), *_no_past(plan)),
        gpu_hour=gpu_hour,
    )


def _unknown_gpus(plan: Plan) -> tuple[Problem, ...]:
    if plan.gpus_per_replica is not None:
        return ()
    message = "is not stated and only the target's pods can tell: GPU-hours count 1 GPU a replica; state it to be exact"
    return (Problem(path="spec.gpusPerReplica", reason="GPUsUnknown", message=message),)


def _no_past(plan: Plan) -> tuple[Problem, ...]:
    if plan.foresight is None:
        return ()
    message = "learns from what a Prometheus remembers, which is not asked here: it can only add to what is shown"
    return (Problem(path="spec.feedback.foresight", reason="PastUnknown", message=message),)


def moves(outlook: Outlook) -> tuple[Move, ...]:
    """The rises and falls in order; the steps of one fall are one move."""
    changes = outlook.course.asked
    found: list[Move] = []
    for before, change in itertools.pairwise(changes):
        last = found[-1] if found else None
        falls_on = change.direction is before.direction is Direction.FALL and change.level == before.level
        if last is not None and falls_on:
            found[-1] = Move(
                start=last.start,
                end=change.time,
                before=last.before,
                after=change.replicas,
                because=last.because,
                ready_by=None,
            )
        else:
            found.append(_move(outlook.course, before, change))
    return tuple(found)


def _move(found: Course, before: Asked, change: Asked) -> Move:
    rises = change.replicas > before.replicas
    return Move(
        start=change.time,
        end=change.time,
        before=before.replicas,
        after=change.replicas,
        because=change.because,
        ready_by=found.peak.at(change.time).since if rises else None,
    )


def usual(found: Sequence[Move], outlook: Outlook) -> tuple[Usual, ...]:
    """Moves that are alike but for their date, together; in the order of their first time of day."""
    zone = outlook.plan.zone
    groups: dict[object, list[Move]] = {}
    for move in found:
        ready = move.ready_by.astimezone(zone).time() if move.ready_by is not None else None
        key = (move.start.astimezone(zone).time(), move.before, move.after, move.because, move.end - move.start, ready)
        groups.setdefault(key, []).append(move)
    together = [
        Usual(moves=tuple(group), dates=tuple(move.start.astimezone(zone).date() for move in group))
        for group in groups.values()
    ]
    return tuple(sorted(together, key=lambda u: (u.first.start.astimezone(zone).time(), u.first.start)))


def levels(outlook: Outlook) -> tuple[LevelShare, ...]:
    """Every level that occurs and how long it holds, the longest first."""
    found: dict[object, list[Piece[Requirement]]] = {}
    for piece in outlook.course.required.pieces():
        value = piece.value
        key = (value.source, value.need, value.reserve, value.replicas, value.unbounded, value.rate is None)
        found.setdefault(key, []).append(piece)
    shares = [_share(pieces) for pieces in found.values()]
    return tuple(sorted(shares, key=lambda share: (-share.time, share.source.precedence, share.replicas)))


def _share(pieces: Sequence[Piece[Requirement]]) -> LevelShare:
    value = pieces[0].value
    rates = [piece.value.rate for piece in pieces if piece.value.rate is not None]
    return LevelShare(
        source=value.source,
        need=value.need,
        reserve=value.reserve,
        replicas=value.replicas,
        unbounded=value.unbounded,
        slowest=min(rates, default=None),
        fastest=max(rates, default=None),
        time=sum((piece.end - piece.start for piece in pieces), timedelta()),
    )


def outlook_document(outlook: Outlook) -> Document:
    """The outlook as ``plan -o json`` prints it; docs/reference/plan-json.md describes every field."""
    plan, found = outlook.plan, outlook.course
    return {
        "plan": {"namespace": plan.namespace, "name": plan.name},
        "timeZone": plan.zone.key,
        "from": outlook.start.astimezone(plan.zone).isoformat(),
        "to": outlook.end.astimezone(plan.zone).isoformat(),
        "required": [_required_entry(piece.start, piece.value) for piece in found.required.pieces()],
        "asked": [
            {"time": wire_time(change.time), "replicas": change.replicas, "because": change.because}
            for change in found.asked
        ],
        "gpuHours": {**hours_document(outlook.hours), **_cost(outlook)},
        "problems": [problem_document(problem) for problem in outlook.warnings],
    }


def _cost(outlook: Outlook) -> Document:
    """What the GPU-hours cost, where a price is given."""
    if outlook.gpu_hour is None:
        return {}
    price, hours = float(outlook.gpu_hour), outlook.hours
    planned, flat = round(hours.planned * price, 2), round(hours.flat_peak * price, 2)
    return {"cost": {"perGpuHour": price, "planned": planned, "flatPeak": flat, "saved": round(flat - planned, 2)}}


def _required_entry(time: datetime, requirement: Requirement) -> Document:
    return {
        "time": wire_time(time),
        "replicas": requirement.replicas,
        "need": requirement.need,
        "reserve": requirement.reserve,
        "because": str(requirement.source),
    }


def hours_document(hours: GpuHours) -> Document:
    """GPU-hours to a tenth, as JSON; `planned` is exactly the sum of the three before it."""
    parts = {
        "required": tenth(hours.required),
        "leading": tenth(hours.leading),
        "trailing": tenth(hours.trailing),
    }
    return {
        **parts,
        "planned": tenth(sum(parts.values())),
        "flatPeak": tenth(hours.flat_peak),
        "savedPercent": tenth(hours.saved_percent),
        "gpusPerReplica": hours.gpus_per_replica,
    }


def problem_document(problem: Problem) -> Document:
    """A problem as JSON."""
    return {"path": problem.path, "reason": problem.reason, "message": problem.message}


def tenth(value: float) -> float:
    """To one digit after the point, never -0."""
    return round(value, 1) + 0.0
