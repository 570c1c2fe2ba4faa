"""The timeline: a rise is asked for a whole lead early, a fall never early and in steps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.planning.demand import Requirement, Source, requirements
from servingplan.planning.plan import Plan, ScaleDown
from servingplan.planning.reasons import Reason
from servingplan.planning.series import StepFunction, combine, step_function
from servingplan.planning.timeline import (
    Asked,
    Direction,
    Fold,
    as_function,
    converged_start,
    fold,
    peak_at,
    peaks,
)
from support.plans import a_plan
from support.strategies import plans

START = datetime(2026, 12, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEAD = 12 * MINUTE
RULES = ScaleDown(step=1, every=2 * MINUTE)


def minutes(n: float) -> datetime:
    return START + n * MINUTE


def required_as(*levels: tuple[int, int], end: int = 1440) -> StepFunction[Requirement]:
    """``(minute, replicas)`` pairs; each level is asked by a window named after it."""
    points = [
        (
            minutes(minute),
            Requirement(
                replicas=n,
                need=n,
                reserve=0,
                unbounded=n,
                rate=Decimal(n),
                source=Source(reason=Reason.WINDOW, name=f"of-{n}"),
            ),
        )
        for minute, n in levels
    ]
    return step_function(points, end=minutes(end))


def asked_for(
    required: StepFunction[Requirement],
    *,
    lead: timedelta = LEAD,
    rules: ScaleDown = RULES,
    state: Fold | None = None,
    first: int = 0,
) -> tuple[Asked, ...]:
    peak = peaks(required, lead, minutes(first), required.end - lead)
    return fold(state or Fold(replicas=required.at(minutes(first)).replicas), peak, required, rules)


def shown(changes: Sequence[Asked]) -> list[tuple[float, int]]:
    return [((change.time - START) / MINUTE, change.replicas) for change in changes]


def asked_of(plan: Plan, start: datetime, end: datetime) -> tuple[Asked, ...]:
    """As the command line folds: from so far back that it no longer matters where it began."""
    lead, rules = plan.lead.effective, plan.scale_down
    first = converged_start(start, rules, plan.bounds.maximum)
    required = requirements(plan, first, end + lead)
    return fold(Fold(replicas=plan.bounds.maximum), peaks(required, lead, first, end), required, rules)


def test_the_worked_example_over_two_weeks_costs_what_the_contract_says() -> None:
    plan, start, end = a_plan(), berlin("2026-12-01T00:00"), berlin("2026-12-15T00:00")
    asked = as_function(asked_of(plan, start, end), end).since(start)
    required = requirements(plan, start, end)
    floor = step_function(list(zip(required.times, (v.replicas for v in required.values), strict=True)), end=end)
    peak = peaks(requirements(plan, start, end + LEAD), LEAD, start, end)
    ahead = step_function(list(zip(peak.times, (v.replicas for v in peak.values), strict=True)), end=end)
    leading = combine(ahead, floor, lambda a, b: a - b).hours(lambda n: n)
    trailing = combine(asked, ahead, lambda a, b: a - b).hours(lambda n: n)
    assert required.hours(lambda r: r.replicas) == 1032.0
    assert (leading, round(trailing, 9)) == (6.0, 1.0)
    assert asked.hours(lambda n: n) == pytest.approx(1039.0, abs=1e-9)


def test_the_worked_example_rises_at_twelve_to_eight_and_steps_down_from_eight() -> None:
    changes = asked_of(a_plan(), berlin("2026-12-01T00:00"), berlin("2026-12-02T00:00"))
    day = [(c.time, c.replicas, c.level, c.direction, c.because) for c in changes if c.direction is not Direction.START]
    assert day[-4:] == [
        (berlin("2026-12-01T07:48"), 5, 5, Direction.RISE, "ready before window working-day"),
        (berlin("2026-12-01T20:00"), 4, 2, Direction.FALL, "window working-day ends"),
        (berlin("2026-12-01T20:02"), 3, 2, Direction.FALL, "window working-day ends"),
        (berlin("2026-12-01T20:04"), 2, 2, Direction.FALL, "window working-day ends"),
    ]


PEAKS = {
    "far before a rise": (0, 2, 0),
    "just before the lead": (47.99, 2, 47.99),
    "a lead before: at that very instant": (48, 5, 60),
    "at the rise": (60, 5, 60),
    "inside": (70, 5, 70),
    "at the end: the fall is not early": (119.99, 5, 119.99),
    "after the end": (120, 2, 120),
}


@pytest.mark.parametrize(("at", "replicas", "since"), PEAKS.values(), ids=PEAKS)
def test_the_peak_is_the_most_within_one_lead(at: float, replicas: int, since: float) -> None:
    required = required_as((0, 2), (60, 5), (120, 2))
    peak = peak_at(required, minutes(at), minutes(at) + LEAD)
    assert (peak.replicas, peak.since) == (replicas, minutes(since))


def test_the_earliest_of_equal_peaks_is_named() -> None:
    required = required_as((0, 2), (4, 5), (6, 3), (8, 5))
    assert peak_at(required, minutes(0), minutes(12)).since == minutes(4)


FOLDS: dict[str, tuple[StepFunction[Requirement], dict[str, object], list[tuple[float, int]]]] = {
    "a rise and a fall": (
        required_as((0, 2), (60, 5), (120, 2)), {}, [(0, 2), (48, 5), (120, 4), (122, 3), (124, 2)],
    ),
    "rises inside one lead do not dip": (
        required_as((0, 2), (60, 5), (64, 3), (70, 6), (120, 2)), {"rules": ScaleDown(step=9, every=MINUTE)},
        [(0, 2), (48, 5), (58, 6), (120, 2)],
    ),
    "a gap shorter than the lead does not dip": (
        required_as((0, 5), (60, 2), (71, 5)), {"rules": ScaleDown(step=9, every=MINUTE)}, [(0, 5)],
    ),
    "a gap as long as the lead does not dip": (
        required_as((0, 5), (60, 2), (72, 5)), {"rules": ScaleDown(step=9, every=MINUTE)}, [(0, 5)],
    ),
    "a gap longer than the lead dips for the rest": (
        required_as((0, 5), (60, 2), (73, 5)), {"rules": ScaleDown(step=9, every=MINUTE)}, [(0, 5), (60, 2), (61, 5)],
    ),
    "a fall that a rise interrupts": (
        required_as((0, 6), (60, 1), (75, 4), (120, 1)), {}, [(0, 6), (60, 5), (62, 4), (120, 3), (122, 2), (124, 1)],
    ),
    "steps of two, the last one smaller": (
        required_as((0, 6), (60, 1)), {"rules": ScaleDown(step=2, every=5 * MINUTE)},
        [(0, 6), (60, 4), (65, 2), (70, 1)],
    ),
    "a step larger than the fall": (
        required_as((0, 6), (60, 1)), {"rules": ScaleDown(step=10, every=5 * MINUTE)}, [(0, 6), (60, 1)],
    ),
    "two levels down: the second waits its turn": (
        required_as((0, 6), (60, 5), (61, 4)), {}, [(0, 6), (60, 5), (62, 4)],
    ),
    "two levels down, far apart: at once": (
        required_as((0, 6), (60, 5), (70, 4)), {}, [(0, 6), (60, 5), (70, 4)],
    ),
    "no lead": (required_as((0, 2), (60, 5)), {"lead": timedelta(0)}, [(0, 2), (60, 5)]),
    "from more than is needed, nothing fell yet: at once": (
        required_as((0, 2)), {"state": Fold(replicas=4)}, [(0, 3), (2, 2)],
    ),
    "from more than is needed, fell a minute ago: waits": (
        required_as((0, 2)), {"state": Fold(replicas=4, last_fall=minutes(-1))}, [(0, 4), (1, 3), (3, 2)],
    ),
    "from fewer than is needed: at once": (required_as((0, 5)), {"state": Fold(replicas=1)}, [(0, 5)]),
    "from nothing": (required_as((0, 0), (60, 3)), {}, [(0, 0), (48, 3)]),
    "a rise starts the next fall anew": (
        required_as((0, 5), (60, 4), (73, 6), (74, 4), (90, 4)), {"rules": ScaleDown(step=1, every=30 * MINUTE)},
        [(0, 5), (60, 4), (61, 6), (74, 5), (104, 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("required", "how", "expected"), FOLDS.values(), ids=FOLDS)
def test_the_fold(
    required: StepFunction[Requirement], how: dict[str, object], expected: list[tuple[float, int]]
) -> None:
    assert shown(asked_for(required, **how)) == expected  # type: ignore[arg-type]


def test_a_fold_from_any_state_is_the_same_once_it_has_converged() -> None:
    plan, start, end = a_plan(), berlin("2026-12-01T20:01"), berlin("2026-12-03T00:00")
    lead, rules = plan.lead.effective, plan.scale_down
    first = converged_start(start, rules, plan.bounds.maximum)
    required = requirements(plan, first, end + lead)
    ends = [
        as_function(fold(Fold(replicas=n), peaks(required, lead, first, end), required, rules), end).since(start)
        for n in range(9)
    ]
    assert all(function == ends[0] for function in ends)


@st.composite
def curves(draw: st.DrawFn) -> StepFunction[Requirement]:
    """Required replicas that change at whole minutes of four hours."""
    times = sorted(draw(st.sets(st.integers(1, 200), max_size=12)))
    levels = draw(st.lists(st.integers(0, 9), min_size=len(times) + 1, max_size=len(times) + 1))
    return required_as(*zip((0, *times), levels, strict=True), end=240)


def each_minute(changes: Sequence[Asked], end: datetime) -> list[int]:
    function = as_function(changes, end)
    return [function.at(minutes(n)) for n in range(int((end - START) / MINUTE))]


FALLS = st.tuples(st.integers(1, 4), st.integers(1, 20))
"""Steps, and minutes between them."""
STATES = st.tuples(st.integers(0, 12), st.none() | st.integers(0, 20))
"""Replicas, and minutes since they last fell."""


@given(curves(), st.integers(0, 30), FALLS, STATES)
def test_the_fold_equals_the_contract_read_minute_by_minute(
    required: StepFunction[Requirement], lead: int, falls: tuple[int, int], begin: tuple[int, int | None]
) -> None:
    (step, every), (replicas, fell_ago) = falls, begin
    state = Fold(replicas=replicas, last_fall=None if fell_ago is None else minutes(-fell_ago))
    rules = ScaleDown(step=step, every=every * MINUTE)
    changes = asked_for(required, lead=lead * MINUTE, rules=rules, state=state)
    asked, wait, expected = replicas, 0 if fell_ago is None else max(0, every - fell_ago), []
    for minute in range(240 - lead):
        peak = max(required.at(minutes(s)).replicas for s in range(minute, minute + lead + 1))
        if peak > asked:
            asked, wait = peak, 0
        elif peak < asked and wait == 0:
            asked, wait = max(peak, asked - step), every
        wait = max(0, wait - 1)
        expected.append(asked)
    assert each_minute(changes, required.end - lead * MINUTE) == expected


@given(plans())
def test_every_step_comes_at_least_a_lead_before_its_demand(plan: Plan) -> None:
    """And no fall comes before the demand has gone: whatever is required within one lead is asked for already."""
    start = datetime(2026, 3, 28, tzinfo=UTC)
    end, lead = start + timedelta(days=2), plan.lead.effective
    required = requirements(plan, start, end + lead)
    asked = as_function(asked_of(plan, start, end), end).since(start)
    for piece in asked.pieces():
        most = max(required.values[i].replicas for i in required.within(piece.start, piece.start + lead))
        assert piece.value >= most
    for rise, value in zip(required.times, required.values, strict=True):
        for instant in (rise - lead, rise - lead / 2, rise):
            if start <= instant < end:
                assert asked.at(instant) >= value.replicas


@given(plans())
def test_a_fall_takes_at_most_a_step_at_a_time_and_waits_between_steps(plan: Plan) -> None:
    start = datetime(2026, 3, 28, tzinfo=UTC)
    changes = asked_of(plan, start, start + timedelta(days=2))
    for before, after in itertools.pairwise(changes):
        if after.direction is Direction.FALL:
            assert before.replicas - after.replicas <= plan.scale_down.step
            if before.direction is Direction.FALL:
                assert after.time - before.time >= plan.scale_down.every
        else:
            assert after.replicas > before.replicas
