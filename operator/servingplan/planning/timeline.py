"""The replica timeline: what is asked for, so that what is required is ready in time.

In: required replicas as a step function, the lead, the scale-down rules, and where the fold stands. Out: the
peak (the most that is required within one lead) and the asked-for replicas: a rise a whole lead early, a fall
never early and in steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from servingplan.planning.demand import Requirement, Source
from servingplan.planning.plan import ScaleDown
from servingplan.planning.series import StepFunction, step_function

ENDS = "ends"
"""The last word of why a fall happens: what asked for more ends."""

LONGEST_FALL = timedelta(days=366)
"""A fall that takes longer never ends before the schedule repeats, and its beginning may lie before year 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The most that is required within one lead: `replicas`, asked by `source`, first required at `since`."""

    replicas: int
    source: Source
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Where the asked-for replicas stand. last_fall: the last step down, None where the last change was a rise."""

    replicas: int
    last_fall: datetime | None = None


class Direction(StrEnum):
    """Which way asked-for replicas changed."""

    START = "start"
    RISE = "rise"
    FALL = "fall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One change of the asked-for replicas. `level`: where this rise or fall comes to rest."""

    time: datetime
    replicas: int
    level: int
    direction: Direction
    because: str


def peak_at(required: StepFunction[Requirement], first: datetime, last: datetime) -> Peak:
    """The largest requirement on [first, last], both included; the earliest of equals."""
    best = max(required.within(first, last), key=lambda i: (required.values[i].replicas, -i))
    value = required.values[best]
    return Peak(replicas=value.replicas, source=value.source, since=max(first, required.times[best]))


def peaks(required: StepFunction[Requirement], lead: timedelta, start: datetime, end: datetime) -> StepFunction[Peak]:
    """peak(t) = max of required(s) over t <= s <= t + lead, for t in [start, end)."""
    changes = {start, *required.times, *(time - lead for time in required.times)}
    instants = sorted(instant for instant in changes if start <= instant < end)
    return step_function([(t, peak_at(required, t, t + lead)) for t in instants], end=end)


def fold(
    state: Fold, peak: StepFunction[Peak], required: StepFunction[Requirement], rules: ScaleDown
) -> tuple[Asked, ...]:
    """The asked-for replicas as changes, from the start of `peak` to its end.

    Where peak >= asked, take peak; else go down by at most `step`, at once first and then every `every`, never
    below peak. The first entry is the state at the start, whether it changed or not.
    """
    instant, replicas, last_fall = peak.start, state.replicas, state.last_fall
    changes: list[Asked] = []
    while True:
        now = peak.at(instant)
        direction = Direction.START
        if now.replicas > replicas:
            replicas, last_fall, direction = now.replicas, None, Direction.RISE
        elif now.replicas < replicas and (last_fall is None or instant - last_fall >= rules.every):
            replicas, last_fall = max(now.replicas, replicas - rules.step), instant
            direction = Direction.FALL
        if direction is not Direction.START or not changes:
            changes.append(_asked(instant, replicas, now, direction, required))
        following = [] if (change := peak.next_change(instant)) is None else [change]
        if now.replicas < replicas and last_fall is not None:
            following.append(last_fall + rules.every)
        if not following or min(following) >= peak.end:
            return tuple(changes)
        instant = min(following)


def _asked(
    time: datetime, replicas: int, peak: Peak, direction: Direction, required: StepFunction[Requirement]
) -> Asked:
    """A change with the words that explain it."""
    because = str(peak.source)
    if direction is not Direction.FALL and peak.since > time:
        because = f"ready before {peak.source}"
    elif direction is Direction.FALL:
        before = required.previous(time)
        if before is not None and before.source != required.at(time).source:
            because = f"{before.source} {ENDS}"
    return Asked(time=time, replicas=replicas, level=peak.replicas, direction=direction, because=because)


def converged_start(start: datetime, rules: ScaleDown, maximum: int) -> datetime:
    """How far back a fold must begin so that at `start` it no longer depends on where it began; at most a year."""
    return start - min(rules.every * -(-maximum // rules.step), LONGEST_FALL)


def as_function(changes: Sequence[Asked], end: datetime) -> StepFunction[int]:
    """Asked-for replicas as a step function."""
    return step_function([(change.time, change.replicas) for change in changes], end=end)
