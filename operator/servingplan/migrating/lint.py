"""What is wrong with a ScaledObject's cron triggers, each with when, and what to do.

In: a `ScaledObject`, a range of time, and how long a replica takes to start where that is known. Out: `Finding`s in the
order of the triggers, then those of the whole object. Chains of small rules; a note is a finding with nothing to mend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from servingplan.errors import Problem
from servingplan.migrating.findings import Course, Finding, course
from servingplan.migrating.robfig import Schedule
from servingplan.migrating.scaled_object import DEFAULT_COOLDOWN, ScaledObject
from servingplan.migrating.spans import Spans, both, minus, total, union
from servingplan.planning.units import format_duration
from servingplan.rendering.times import local_time

HPA_TOLERANCE = 0.1
"""A HorizontalPodAutoscaler ignores a metric that is within this share of what replicas hold (its default)."""

SHOWN = 3
"""So many instants are in a message; all are in the spans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """A ScaledObject over [start, end): what its triggers do, and what was found."""

    scaled_object: ScaledObject
    start: datetime
    end: datetime
    courses: Sequence[Course]
    findings: Sequence[Finding]

    @property
    def problems(self) -> int:
        """How many findings are more than notes."""
        return sum(not finding.note for finding in self.findings)


def lint(
    found: ScaledObject, refused: Sequence[Problem], start: datetime, end: datetime, start_time: timedelta | None
) -> Linted:
    """Everything there is to say. refused: what KEDA refuses. start_time: of a replica, None where it is not known."""
    courses = [course(trigger, start, end) for trigger in found.crons]
    findings = [Finding(problem=problem) for problem in refused]
    findings += [finding for one in courses for rule in _OF_A_TRIGGER for finding in rule(one, found)]
    findings += [finding for one in courses for finding in _lead(one, start_time)]
    findings += [finding for rule in _OF_ALL for finding in rule(courses, found)]
    return Linted(scaled_object=found, start=start, end=end, courses=courses, findings=findings)


# ---- one trigger ------------------------------------------------------------------------------------------


def _never(one: Course, _: ScaledObject) -> Iterator[Finding]:
    if _same_time(one.trigger.start, one.trigger.end):
        message = "end fires whenever start does, so the trigger is always active: state when the window ends"
        yield _finding(one, "end", "AlwaysActive", message, one.active)
    elif not one.intended and one.active:
        message = "no window begins in this year, but the trigger is active in it: correct start, or remove the trigger"
        yield _finding(one, "start", "NeverStarts", message, one.active)
    elif not one.active:
        message = "the trigger is not active at any time of this year: correct start and end, or remove it"
        yield _finding(one, "end", "NeverActive", message, one.intended)


def _phantom(one: Course, _: ScaledObject) -> Iterator[Finding]:
    if one.phantom.usual and one.intended and not _same_time(one.trigger.start, one.trigger.end):
        message = (
            f"active beyond every window, {_told(one.phantom.usual, one)}: KEDA asks only whether the next end comes "
            "before the next start. Let end fire on the days on which a window ends, and on no others"
        )
        yield _finding(one, "end", "PhantomHours", message, one.phantom.usual)


def _lost(one: Course, _: ScaledObject) -> Iterator[Finding]:
    if one.lost.usual and one.active:
        message = (
            f"not active inside a window, {_told(one.lost.usual, one)}: a further start before the end closes what is "
            "open until it fires. Let start fire once a window"
        )
        yield _finding(one, "start", "LostHours", message, one.lost.usual)


def _lost_at_change(one: Course, _: ScaledObject) -> Iterator[Finding]:
    if one.lost.at_change:
        message = (
            f"not active inside a window around a clock change, {_told(one.lost.at_change, one)}: a wall time that "
            "the change leaves out never fires, one that comes twice fires twice. Move start and end out of the hours "
            "from 00:00 to 03:00"
        )
        yield _finding(one, "start", "LostAtClockChange", message, one.lost.at_change)


def _held_at_change(one: Course, _: ScaledObject) -> Iterator[Finding]:
    if one.phantom.at_change:
        longest = max(span.end - span.start for span in one.active)
        message = (
            f"active beyond the window around a clock change, {_told(one.phantom.at_change, one)}; the longest time on "
            f"end is {_hours(longest)}: a wall time that the change leaves out never fires, one that comes twice fires "
            "twice. Move start and end out of the hours from 00:00 to 03:00"
        )
        yield _finding(one, "end", "HeldAtClockChange", message, one.phantom.at_change)


def _bounds(one: Course, found: ScaledObject) -> Iterator[Finding]:
    replicas = one.trigger.replicas
    if replicas > found.maximum:
        message = f"{replicas} is above maxReplicaCount, so {found.maximum} run: raise that, or ask for fewer"
        yield _finding(one, "desiredReplicas", "AboveMaximum", message, ())
    elif replicas <= found.minimum:
        message = f"{replicas} is not above minReplicaCount, {found.minimum}: the trigger changes nothing; remove it"
        yield _finding(one, "desiredReplicas", "BelowMinimum", message, ())


_OF_A_TRIGGER: Sequence[Callable[[Course, ScaledObject], Iterator[Finding]]] = (
    _never,
    _phantom,
    _lost,
    _lost_at_change,
    _held_at_change,
    _bounds,
)


def _lead(one: Course, start_time: timedelta | None) -> Iterator[Finding]:
    """A cron acts when it fires, so that what it starts is ready later."""
    if not one.active:
        return
    first = one.active[0].start if len(one.active) == 1 else one.active[1].start
    opens = local_time(first, one.trigger.zone)
    if start_time is None:
        message = (
            f"replicas begin to start when the window opens, as on {opens}, and are ready a start time later: let "
            "start fire that much earlier if it does not yet; --start-time says when they are ready"
        )
        yield _finding(one, "start", "NoLead", message, (), note=True)
    elif start_time:
        ready = local_time(first + start_time, one.trigger.zone)
        message = (
            f"what opens on {opens} is ready on {ready}, with a start time of {format_duration(start_time)}: where it "
            "is needed at the opening, let start fire that much earlier"
        )
        yield _finding(one, "start", "NoLead", message, ())


# ---- the whole object -------------------------------------------------------------------------------------


def _no_crons(courses: Sequence[Course], found: ScaledObject) -> Iterator[Finding]:
    if not courses:
        message = f"no trigger of type cron that KEDA takes: the schedule of {found.name} decides nothing"
        yield _of_all("spec.triggers", "NoCron", message)


def _overlaps(courses: Sequence[Course], _: ScaledObject) -> Iterator[Finding]:
    """The largest counts: a trigger may never decide, and overlapping ones do not add up."""
    for one in courses:
        larger = [other for other in courses if _outranks(other, one)]
        covered = union(span for other in larger for span in other.active)
        shared = both(one.active, union(span for o in courses if o is not one for span in o.active))
        if one.active and not minus(one.active, covered):
            message = "other triggers ask for as many or more whenever it is active: it never decides; remove it"
            yield _finding(one, "desiredReplicas", "NeverDecides", message, ())
        elif shared and larger:
            message = f"overlaps with others, {_told(shared, one)}: the largest counts, they do not add up"
            yield _finding(one, "desiredReplicas", "Overlaps", message, shared, note=True)


def _outranks(other: Course, one: Course) -> bool:
    """Of equals the first decides."""
    a, b = other.trigger, one.trigger
    return other is not one and (a.replicas, -a.index) > (b.replicas, -b.index)


def _tolerance(courses: Sequence[Course], found: ScaledObject) -> Iterator[Finding]:
    """From 10 replicas on, small steps are within the HPA's tolerance."""
    levels = sorted({found.bounded(one.trigger.replicas) for one in courses} | {max(found.outside, 1)})
    for low, high in pairwise(levels):
        if high / low - 1 <= HPA_TOLERANCE or 1 - low / high <= HPA_TOLERANCE:
            message = (
                f"the HPA does not go between {low} and {high} both ways: it ignores a difference of up to 10 %. State "
                "levels that lie further apart, or a tolerance in horizontalPodAutoscalerConfig.behavior"
            )
            yield _of_all("spec.triggers", "WithinTolerance", message)


def _modifiers(_: Sequence[Course], found: ScaledObject) -> Iterator[Finding]:
    if found.formula:
        message = (
            "a formula takes the place of the largest trigger: what is said here about triggers alone holds, what they "
            "come to together does not"
        )
        yield _of_all("spec.advanced.scalingModifiers.formula", "FormulaDecides", message)


def _paused(_: Sequence[Course], found: ScaledObject) -> Iterator[Finding]:
    if found.paused:
        message = "the ScaledObject is paused by an annotation: no trigger does anything until it is removed"
        yield _of_all("metadata.annotations", "Paused", message)


def _outside(courses: Sequence[Course], found: ScaledObject) -> Iterator[Finding]:
    """What holds while no trigger is active, and how replicas come there."""
    if not courses:
        return
    falls = format_duration(found.stabilization)
    if found.outside == 0:
        stated = DEFAULT_COOLDOWN if found.cooldown is None else found.cooldown
        message = (
            f"0 replicas outside of windows, from {format_duration(stated)} (cooldownPeriod) after the last trigger "
            "ended: requests that come then find nobody. State minReplicaCount if they may come"
        )
        path = "spec.minReplicaCount" if found.idle is None else "spec.idleReplicaCount"
        yield _of_all(path, "ZeroOutside", message, note=True)
    elif found.cooldown is not None and found.idle is None:
        message = f"has no effect: it counts only on the way to 0 or idle replicas; falls come {falls} after an end"
        yield _of_all("spec.cooldownPeriod", "CooldownWithoutEffect", message, note=True)
    elif found.stabilization:
        message = (
            f"falls come {falls} after an end: the HPA waits so long; it is "
            "behavior.scaleDown.stabilizationWindowSeconds"
        )
        yield _of_all("spec.advanced", "FallsLater", message, note=True)


def _fallback(courses: Sequence[Course], found: ScaledObject) -> Iterator[Finding]:
    """Only triggers that ask somebody can fail; a cron does not."""
    if not courses or not found.others:
        return
    others = ", ".join(dict.fromkeys(found.others))
    if found.fallback is None:
        message = (
            f"while {others} cannot be asked, the HPA lowers nothing: what a window raised stays over its end. State "
            "spec.fallback if nights matter then"
        )
        yield _of_all("spec.fallback", "NoFallback", message, note=True)
    elif found.fallback > max(found.outside, 1):
        message = (
            f"while {others} cannot be asked, {found.fallback} replicas run outside of windows, and in them the "
            "largest of this and what the window asks for"
        )
        yield _of_all("spec.fallback.replicas", "FallbackOutside", message, note=True)


_OF_ALL: Sequence[Callable[[Sequence[Course], ScaledObject], Iterator[Finding]]] = (
    _no_crons,
    _overlaps,
    _tolerance,
    _modifiers,
    _paused,
    _outside,
    _fallback,
)


# ---- words ------------------------------------------------------------------------------------------------


def _finding(one: Course, key: str, reason: str, message: str, spans: Spans, *, note: bool = False) -> Finding:
    path = f"spec.triggers[{one.trigger.index}].metadata.{key}"
    return Finding(problem=Problem(path=path, reason=reason, message=message), spans=tuple(spans), note=note)


def _of_all(path: str, reason: str, message: str, *, note: bool = False) -> Finding:
    return Finding(problem=Problem(path=path, reason=reason, message=message), note=note)


def _told(spans: Spans, one: Course) -> str:
    """``54 times and 3,240 h in all, first Sat 5 Dec 20:00 CET to Mon 7 Dec 08:00 CET``."""
    shown = [
        f"{local_time(span.start, one.trigger.zone)} to {local_time(span.end, one.trigger.zone)}"
        for span in spans[:SHOWN]
    ]
    if len(spans) <= SHOWN:
        return " and ".join(shown)
    return f"{len(spans)} times and {_hours(total(spans))} in all, first {shown[0]}"


def _hours(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours:.4g} h" if hours < 1000 else f"{hours:,.0f} h"


def _same_time(start: Schedule, end: Schedule) -> bool:
    """Whether both fire at the same times, however they are written."""
    return all(
        getattr(start, name) == getattr(end, name)
        for name in ("minutes", "hours", "dates", "months", "weekdays", "any_date", "any_weekday")
    )
