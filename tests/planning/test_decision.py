"""The decision: its trail, what it remembers, when it changes, and what no input may make it do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from planning.loop import Loop, berlin
from servingplan.planning.decision import HPA_PERIOD, Decision, at_risk_from, decide
from servingplan.planning.demand import requirements
from servingplan.planning.observation import History, Observation, Ramp, Scale
from servingplan.planning.plan import (
    Bounds,
    Calendar,
    CronWindow,
    Lead,
    Override,
    Plan,
    Profile,
    Rate,
    Reserve,
    ScaleDown,
    Total,
)
from servingplan.planning.reasons import Reason
from servingplan.planning.stabilize import Limit
from servingplan.planning.target import TargetRef
from servingplan.planning.timeline import peak_at
from support.plans import a_plan, a_window
from support.strategies import plans

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
HPA = TargetRef(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="vllm")
ALWAYS = a_window(days=frozenset(range(7)), start=time(0), end=time(0))


def rate(requests_per_second: float) -> Rate:
    return Rate(requests_per_second=Decimal(str(requests_per_second)))


def lead(minutes: float) -> Lead:
    return Lead(declared=minutes * MINUTE, margin=Fraction(0), maximum=minutes * MINUTE)


def at(text: str, *, current: int | None = 2, history: History | None = None, **changes: object) -> Decision:
    return decide(a_plan(**changes), Observation(current=current), history or History(), berlin(text))


def fell(text: str, before: int, after: int) -> History:
    return History(last_scale=Scale(time=berlin(text), before=before, after=after, because="window working-day ends"))


Ask = Callable[[], Decision]

TRAIL = ["demand", "need", "reserve", "required", "peak", "asked", "extra", "desired"]

# ---- the trail ----------------------------------------------------------------------------------------------


def test_the_trail_of_a_ramp_reads_from_demand_to_desired() -> None:
    trail = at("2026-12-01T07:50").trail
    assert [(step.name, step.value, step.reason, step.message) for step in trail] == [
        ("demand", "2/s", Reason.BASE, "base asks for 2/s"),
        ("need", "1", Reason.CAPACITY, "2/s at 5/s a replica: 1 replica"),
        ("reserve", "1", Reason.RESERVE, "for a lost node or a rolling update"),
        ("required", "2", Reason.WITHIN_BOUNDS, "within 1 to 8"),
        ("peak", "5", Reason.READY_BEFORE_RAMP, "window working-day needs 5 within the lead of 12m"),
        ("asked", "5", Reason.READY_BEFORE_RAMP, "ready before window working-day"),
        ("extra", "0", Reason.FEEDBACK_OFF, "no live signals: the schedule alone"),
        ("desired", "5", Reason.WITHIN_BOUNDS, "max(asked, peak + extra)"),
    ]


WORDS: dict[str, tuple[Ask, str, str, Reason]] = {
    "a window's demand": (partial(at, "2026-12-01T12:00", current=5), "demand", "18/s", Reason.WINDOW),
    "a stated total": (
        partial(at, "2026-12-01T12:00", windows=(replace(ALWAYS, level=Total(replicas=3)),)),
        "demand", "3 replicas", Reason.WINDOW,
    ),
    "its need": (
        partial(at, "2026-12-01T12:00", windows=(replace(ALWAYS, level=Total(replicas=3)),)),
        "need", "2", Reason.TOTAL_STATED,
    ),
    "the quiet reserve": (
        partial(at, "2026-12-01T03:00", reserve=Reserve(replicas=1, quiet=0)), "reserve", "0", Reason.QUIET_RESERVE,
    ),
    "limited above": (
        partial(at, "2026-12-01T12:00", bounds=Bounds(minimum=1, maximum=4)), "required", "4", Reason.MAX_REPLICAS,
    ),
    "raised below": (
        partial(at, "2026-12-01T03:00", bounds=Bounds(minimum=3, maximum=8)), "required", "3", Reason.MIN_REPLICAS,
    ),
    "falling": (partial(at, "2026-12-01T20:00", current=5), "asked", "4", Reason.FALLING),
    "at level": (partial(at, "2026-12-01T12:00", current=5), "asked", "5", Reason.AT_LEVEL),
    "suspended": (partial(at, "2026-12-01T12:00", suspend=True), "desired", "5", Reason.SUSPENDED),
    "desired above what bounds allow": (
        partial(at, "2026-12-01T12:00", bounds=Bounds(minimum=1, maximum=4)), "desired", "4", Reason.MAX_REPLICAS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ask", "name", "value", "reason"), WORDS.values(), ids=WORDS)
def test_the_trail_names_value_and_reason(ask: Ask, name: str, value: str, reason: Reason) -> None:
    step = next(step for step in ask().trail if step.name == name)
    assert (step.value, step.reason) == (value, reason)


def test_a_decision_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        at("2026-12-01T12:00").desired = 9  # type: ignore[misc]


# ---- rises, falls, bounds -----------------------------------------------------------------------------------

LEVELS = {
    "before the lead": (partial(at, "2026-12-01T07:47"), 2),
    "a lead before the ramp": (partial(at, "2026-12-01T07:48"), 5),
    "no target yet: created at the peak": (partial(at, "2026-12-01T07:50", current=None), 5),
    "no target yet, at night": (partial(at, "2026-12-01T03:00", current=None), 2),
    "scaled to zero at night": (partial(at, "2026-12-01T03:00", current=0), 2),
    "the first fall step is at once": (partial(at, "2026-12-01T20:00", current=5), 4),
    "the next waits": (partial(at, "2026-12-01T20:01", current=4, history=fell("2026-12-01T20:00", 5, 4)), 4),
    "and comes": (partial(at, "2026-12-01T20:02", current=4, history=fell("2026-12-01T20:00", 5, 4)), 3),
    "a rise before is no fall": (partial(at, "2026-12-01T20:01", current=5, history=fell("2026-12-01T20:00", 2, 5)), 4),
    "the clock went back behind the last fall": (
        partial(at, "2026-12-01T20:01", current=4, history=fell("2026-12-01T21:00", 5, 4)), 3,
    ),
    "bounds lowered below current": (
        partial(at, "2026-12-01T12:00", current=5, bounds=Bounds(minimum=1, maximum=3)), 3,
    ),
    "bounds far below current": (partial(at, "2026-12-01T12:00", current=500, bounds=Bounds(minimum=1, maximum=8)), 8),
    "bounds raised above current": (partial(at, "2026-12-01T03:00", bounds=Bounds(minimum=4, maximum=8)), 4),
    "a million requests a second": (partial(at, "2026-12-01T12:00", windows=(replace(ALWAYS, level=rate(1e6)),)), 8),
    "a million, with room": (
        partial(at, "2026-12-01T12:00", windows=(replace(ALWAYS, level=rate(1e6)),),
                bounds=Bounds(minimum=1, maximum=10**9)),
        200_001,
    ),
    "nothing at all": (
        partial(at, "2026-12-01T12:00", current=0, base=rate(0), windows=(), reserve=Reserve(replicas=0, quiet=0),
           bounds=Bounds(minimum=0, maximum=8)),
        0,
    ),
    "an empty schedule": (partial(at, "2026-12-01T12:00", windows=()), 2),
}  # fmt: skip


@pytest.mark.parametrize(("ask", "desired"), LEVELS.values(), ids=LEVELS)
def test_so_many_are_desired(ask: Ask, desired: int) -> None:
    assert ask().desired == desired


LIMITS = {
    "nothing limited": (partial(at, "2026-12-01T12:00", current=5), None),
    "the maximum": (partial(at, "2026-12-01T12:00", bounds=Bounds(minimum=1, maximum=4)), Limit(wanted=5, given=4)),
    "the maximum of a ramp to come": (
        partial(at, "2026-12-01T07:50", bounds=Bounds(minimum=1, maximum=4)), Limit(wanted=5, given=4),
    ),
    "the minimum": (partial(at, "2026-12-01T03:00", bounds=Bounds(minimum=4, maximum=8)), Limit(wanted=2, given=4)),
    "what the cluster holds": (
        partial(at, "2026-12-01T12:00", current=20), Limit(wanted=19, given=8),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ask", "limit"), LIMITS.values(), ids=LIMITS)
def test_a_bound_that_changes_the_outcome_is_said(ask: Ask, limit: Limit | None) -> None:
    decision = ask()
    assert decision.limit == limit
    assert (decision.trail[-1].reason is Reason.WITHIN_BOUNDS) == (limit is None)


def test_an_override_edited_in_rises_at_once_and_names_itself() -> None:
    launch = Override(name="launch", start=datetime(2026, 12, 1, 3), end=datetime(2026, 12, 1, 4), level=rate(30))  # noqa: DTZ001
    decision = at("2026-12-01T03:05", overrides=(launch,))
    assert (decision.desired, decision.because, decision.ramp) == (7, "override launch", None)


# ---- ramps --------------------------------------------------------------------------------------------------

RAMP = Ramp(start=berlin("2026-12-01T08:00"), needed=5, start_by=berlin("2026-12-01T07:48"))


@pytest.mark.parametrize(
    ("text", "ramp"),
    [("2026-12-01T07:47", None), ("2026-12-01T07:48", RAMP), ("2026-12-01T07:59", RAMP), ("2026-12-01T08:00", None)],
)
def test_a_ramp_lasts_from_a_lead_before_it_to_its_start(text: str, ramp: Ramp | None) -> None:
    assert at(text).ramp == ramp


def test_a_shorter_lead_keeps_what_was_started_and_lasts_until_the_ramp() -> None:
    held = [at(f"2026-12-01T07:{m}", current=5, history=History(ramp=RAMP), lead=lead(3)) for m in (50, 56, 59)]
    assert [(d.desired, d.lead, d.ramp) for d in held] == [(5, 12 * MINUTE, RAMP)] * 3


def test_a_longer_lead_starts_at_once_and_says_since_when_it_should_have() -> None:
    decision = at("2026-12-01T07:50", current=5, history=History(ramp=RAMP), lead=lead(30))
    assert decision.ramp == replace(RAMP, start_by=berlin("2026-12-01T07:30"))


def test_two_rises_inside_one_lead_are_asked_for_together() -> None:
    second = a_window(name="second", start=time(8, 5), end=time(20), level=rate(28))
    loop = Loop(plan=a_plan(windows=(a_window(), second)), now=berlin("2026-12-01T07:00"), current=2)
    loop.run(berlin("2026-12-01T12:00"))
    assert loop.levels == [("Tue 07:48:00", 5), ("Tue 07:53:00", 7)]


LEADS = [(0, 30), (30, 0), (12, 60), (60, 12), (12, 12)]


@pytest.mark.parametrize(("before", "after"), LEADS)
@pytest.mark.parametrize("edited", ["07:10", "07:49", "07:59", "08:00", "08:04"])
def test_a_lead_edited_at_any_time_before_two_ramps_lowers_nothing(before: int, after: int, edited: str) -> None:
    second = a_window(name="second", start=time(8, 5), end=time(20), level=rate(28))
    loop = Loop(plan=a_plan(windows=(a_window(), second), lead=lead(before)), now=berlin("2026-12-01T06:30"), current=2)
    loop.run(berlin("2026-12-01T19:00"), {berlin(f"2026-12-01T{edited}"): lambda it: it.edit(lead=lead(after))})
    assert not loop.lowered
    assert loop.current == 7


# ---- floor mode and suspend ---------------------------------------------------------------------------------


def test_in_floor_mode_a_rise_goes_out_one_autoscaler_period_earlier() -> None:
    plan = a_plan(target=HPA)
    early = berlin("2026-12-01T07:48") - HPA_PERIOD
    decisions = [
        decide(plan, Observation(current=2, maximum=10), History(), t) for t in (early - timedelta(seconds=1), early)
    ]
    assert ([d.desired for d in decisions], decisions[1].lead) == ([2, 5], timedelta(minutes=12, seconds=30))


CEILINGS = {
    "above": (10, 5, None),
    "at": (5, 5, None),
    "below": (3, 3, Limit(wanted=5, given=3)),
    "one": (1, 1, Limit(wanted=5, given=1)),
}


@pytest.mark.parametrize(("maximum", "desired", "limit"), CEILINGS.values(), ids=CEILINGS)
def test_in_floor_mode_the_autoscalers_maximum_limits_and_is_said(
    maximum: int, desired: int, limit: Limit | None
) -> None:
    decision = decide(
        a_plan(target=HPA), Observation(current=2, maximum=maximum), History(), berlin("2026-12-01T12:00")
    )
    assert (decision.desired, decision.limit) == (desired, limit)


def test_a_day_in_floor_mode_writes_once_a_change() -> None:
    loop = Loop(plan=a_plan(target=HPA), now=berlin("2026-12-01T00:00"), current=2, maximum=4)
    loop.run(berlin("2026-12-02T00:00"))
    assert loop.levels == [("Tue 07:47:30", 4), ("Tue 20:00:00", 3), ("Tue 20:02:00", 2)]


def test_a_suspended_plan_decides_as_if_it_were_not() -> None:
    running, suspended = at("2026-12-01T07:50"), at("2026-12-01T07:50", suspend=True)
    assert suspended.suspended
    assert suspended.trail[-1].message == "suspended: 5 would be set, nothing is written"
    assert replace(suspended, suspended=False, trail=running.trail) == running
    assert suspended.trail[:-1] == running.trail[:-1]


# ---- the next change ----------------------------------------------------------------------------------------

NEXT = {
    "at night: the ramp": (partial(at, "2026-12-01T03:00"), "2026-12-01T07:48", 5, "ready before window working-day"),
    "by day: the evening, and where it comes to rest": (
        partial(at, "2026-12-01T12:00", current=5), "2026-12-01T20:00", 2, "window working-day ends",
    ),
    "over the weekend": (partial(at, "2026-12-05T12:00"), "2026-12-07T07:48", 5, "ready before window working-day"),
    "within a fall": (
        partial(at, "2026-12-01T20:00", current=4, history=fell("2026-12-01T20:00", 5, 4)),
        "2026-12-01T20:02", 2, "window working-day ends",
    ),
    "next month": (
        partial(at, "2026-12-02T12:00", windows=(), cron_windows=(
            CronWindow(name="report", cron="30 5 1 * *", at=time(5, 30), duration=HOUR, level=Total(replicas=3)),)),
        "2027-01-01T05:18", 3, "ready before window report",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ask", "when", "replicas", "because"), NEXT.values(), ids=NEXT)
def test_the_next_change_is_named(ask: Ask, when: str, replicas: int, because: str) -> None:
    decision = ask()
    change = decision.next_change
    assert change is not None
    assert (change.time, change.replicas, change.because) == (berlin(when), replicas, because)
    assert decision.next_change_at <= change.time


def test_a_plan_that_never_changes_has_no_next_change_and_is_looked_at_again() -> None:
    decision = at("2026-12-01T12:00", windows=())
    assert decision.next_change is None
    assert decision.next_change_at == berlin("2026-12-09T12:00")


def test_a_fall_that_outlasts_what_is_looked_back_is_looked_at_again_when_its_words_change() -> None:
    """The override began before the fall: ever later looks do not see that any more, and the words lose what ended."""
    start, end = (datetime.fromisoformat(f"2026-12-0{day}T13:00") for day in (1, 2))
    override = Override(name="quiet", start=start, end=end, level=Rate(requests_per_second=Decimal(0)))
    plan = a_plan(
        windows=(),
        overrides=(override,),
        reserve=Reserve(replicas=0, quiet=0),
        bounds=Bounds(minimum=0, maximum=8),
        scale_down=ScaleDown(step=1, every=timedelta(hours=1)),
    )
    now = berlin("2026-12-01T20:30")
    history = History(last_scale=Scale(time=now, before=3, after=2, because=""))

    decision = decide(plan, Observation(current=2), history, now)
    assert decision.next_change is not None
    assert decision.next_change.because == "base ends"
    assert decision.next_change_at == berlin("2026-12-01T21:00")
    again = decide(plan, Observation(current=2), history, decision.next_change_at)
    assert again.next_change is not None
    assert again.next_change.because == "override quiet"


def applied(decision: Decision, current: int | None, history: History, now: datetime) -> tuple[Observation, History]:
    """What the cluster and status hold once the operator has done what was decided."""
    last = history.last_scale
    if decision.desired != current:
        last = Scale(time=now, before=current or 0, after=decision.desired, because=decision.because)
    return Observation(current=decision.desired), History(last_scale=last, ramp=decision.ramp)


@st.composite
def moments(draw: st.DrawFn) -> tuple[Plan, Observation, History, datetime]:
    """A plan, what runs, what is remembered, and an instant, to the second, around a clock change."""
    plan = draw(plans())
    now = datetime(2026, 3, 28, tzinfo=UTC) + draw(st.integers(0, 2 * 86400)) * timedelta(seconds=1)
    current = draw(st.none() | st.integers(0, 45))
    last = ramp = None
    if draw(st.booleans()):
        before, after = draw(st.tuples(st.integers(0, 45), st.integers(0, 45)))
        last = Scale(
            time=now + draw(st.integers(-3600, 600)) * timedelta(seconds=1), before=before, after=after, because=""
        )
    if draw(st.booleans()):
        start_by = now + draw(st.integers(-120, 30)) * MINUTE
        ramp = Ramp(start=start_by + draw(st.integers(0, 120)) * MINUTE, needed=5, start_by=start_by)
    return plan, Observation(current=current), History(last_scale=last, ramp=ramp), now


@given(moments())
def test_deciding_twice_decides_the_same(moment: tuple[Plan, Observation, History, datetime]) -> None:
    assert decide(*moment) == decide(*moment)


@given(moments())
def test_applying_a_decision_leaves_nothing_to_write(moment: tuple[Plan, Observation, History, datetime]) -> None:
    plan, observation, history, now = moment
    first = decide(plan, observation, history, now)
    again = decide(plan, *applied(first, observation.current, history, now), now)
    assert again.desired == first.desired
    assert again.ramp == first.ramp


@given(moments(), st.floats(0, 1, exclude_max=True))
def test_nothing_changes_before_next_change_at(
    moment: tuple[Plan, Observation, History, datetime], share: float
) -> None:
    plan, observation, history, now = moment
    settled = applied(decide(plan, observation, history, now), observation.current, history, now)
    first = decide(plan, *settled, now)
    later = now + timedelta(seconds=int(share * (first.next_change_at - now).total_seconds()))
    second = decide(plan, *settled, later)
    if first.next_change is None:
        second = replace(second, next_change_at=first.next_change_at, next_change=None)
    assert second == first


@given(moments(), st.floats(0, 1, exclude_max=True))
def test_what_is_written_and_said_does_not_change_before_next_change_at_either_while_a_write_fails(
    moment: tuple[Plan, Observation, History, datetime], share: float
) -> None:
    plan, observation, history, now = moment
    first = decide(plan, observation, history, now)
    later = now + timedelta(seconds=int(share * (first.next_change_at - now).total_seconds()))
    second = decide(plan, observation, history, later)
    note(f"{later - now} later")
    assert (second.desired, second.asked, second.required, second.lead, second.ramp, second.limit, second.trail) == (
        first.desired, first.asked, first.required, first.lead, first.ramp, first.limit, first.trail,
    )  # fmt: skip


# ---- what no input may do -----------------------------------------------------------------------------------


@given(moments())
def test_the_trail_is_whole_and_short(moment: tuple[Plan, Observation, History, datetime]) -> None:
    trail = decide(*moment).trail
    assert [step.name for step in trail] == TRAIL
    assert len(trail) <= 12
    assert all(step.value and step.message for step in trail)


@given(moments())
def test_bounds_hold_and_nothing_remembered_lowers_below_the_peak(
    moment: tuple[Plan, Observation, History, datetime],
) -> None:
    plan, observation, history, now = moment
    ahead = plan.lead.effective
    peak = peak_at(requirements(plan, now, now + ahead + MINUTE), now, now + ahead).replicas
    for remembered in (history, History()):
        for observed in (observation, Observation(current=None)):
            desired = decide(plan, observed, remembered, now).desired
            assert peak <= desired <= plan.bounds.maximum
            assert desired >= plan.bounds.minimum


@given(moments(), st.integers(0, 200))
def test_more_replicas_running_never_ask_for_fewer(
    moment: tuple[Plan, Observation, History, datetime], more: int
) -> None:
    plan, observation, history, now = moment
    current = observation.current or 0
    fewer = decide(plan, Observation(current=current), history, now)
    assert decide(plan, Observation(current=current + more), history, now).desired >= fewer.desired


EXTREMES: dict[str, Callable[[], Plan]] = {
    "falls of years": lambda: a_plan(
        scale_down=ScaleDown(step=1, every=99_999 * HOUR), bounds=Bounds(minimum=1, maximum=10_000)
    ),
    "a lead of a year": lambda: a_plan(lead=lead(365 * 1440)),
    "leads and falls of nothing much": lambda: a_plan(
        lead=lead(0), scale_down=ScaleDown(step=10_000, every=timedelta(milliseconds=1))
    ),
    "every day is a holiday": lambda: a_plan(
        calendars=(Calendar(name="k", dates=frozenset({datetime(2026, 12, d, tzinfo=UTC).date() for d in range(1, 32)}),
                            treat_as=rate(18)),)
    ),
    "a flat profile": lambda: a_plan(windows=(), profile=Profile(rates=(Decimal(1),) * 1008)),
}  # fmt: skip


@pytest.mark.parametrize("plan", EXTREMES.values(), ids=EXTREMES)
def test_extreme_plans_decide(plan: Callable[[], Plan]) -> None:
    decision = decide(plan(), Observation(current=2), History(), berlin("2026-12-01T12:00"))
    assert decision.desired >= decision.required.replicas


def test_a_loop_wakes_only_a_few_times_a_day() -> None:
    loop = Loop(plan=a_plan(), now=berlin("2026-12-01T00:00"), current=2)
    loop.run(berlin("2026-12-02T00:00"))
    assert len(loop.writes) == 4
    assert loop.decisions <= 12


def test_a_clock_that_goes_back_an_hour_in_a_fall_loses_no_replica_below_the_schedule() -> None:
    loop = Loop(plan=a_plan(), now=berlin("2026-12-01T19:55"), current=5)
    loop.run(berlin("2026-12-01T20:03"))
    assert loop.current == 3
    loop.now = berlin("2026-12-01T19:03")
    loop.run(berlin("2026-12-01T19:30"))
    assert loop.current == 5


@pytest.mark.parametrize(
    ("lead_minutes", "at_risk_after"),
    [
        pytest.param(12, 10, id="the declared lead is spent"),
        pytest.param(18, 15, id="what rises taught is spent"),
        pytest.param(11, 10, id="a capped lead keeps the declared part"),
        pytest.param(8, 8, id="a lead shorter than the declared one"),
    ],
)
def test_a_ramp_is_at_risk_when_what_a_rise_takes_is_spent(lead_minutes, at_risk_after) -> None:
    start = berlin("2026-12-01T08:00")
    start_by = start - timedelta(minutes=lead_minutes)
    plan = a_plan(lead=Lead(declared=timedelta(minutes=10), margin=Fraction(1, 5), maximum=timedelta(minutes=30)))
    assert at_risk_from(plan, Ramp(start=start, needed=5, start_by=start_by)) - start_by == timedelta(
        minutes=at_risk_after
    )
