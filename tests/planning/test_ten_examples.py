"""Ten situations that a plan must get right, each as a person on call would tell it.

The tenth, an hourly cron of an hour that is refused with its reason, is the wire's: a `CronWindow` has one wall time.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from planning.loop import Loop, berlin
from servingplan.planning.decision import decide
from servingplan.planning.demand import requirements
from servingplan.planning.observation import History, Observation, Ramp, Replica, Scale, Stage
from servingplan.planning.ownership import FieldOwner, judge
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
    Total,
    TreatAs,
)
from support.plans import a_plan, a_window

MORNING = "2026-12-01T07:00"


def required(plan: Plan, at: str) -> tuple[int, str]:
    instant = berlin(at)
    now = requirements(plan, instant, instant + timedelta(minutes=1)).at(instant)
    return now.replicas, str(now.source)


def rate(requests_per_second: float) -> Rate:
    return Rate(requests_per_second=Decimal(str(requests_per_second)))


def lead(declared: int, margin: str = "0.2") -> Lead:
    minutes = timedelta(minutes=declared)
    return Lead(declared=minutes, margin=Fraction(margin), maximum=3 * minutes)


def an_override(name: str, start: str, end: str, level: Rate | Total) -> Override:
    return Override(name=name, start=datetime.fromisoformat(start), end=datetime.fromisoformat(end), level=level)


def a_profile(sunday_night: float) -> Profile:
    """18/s, but for Sunday from 03:00 to 04:00."""
    rates = [Decimal(18)] * 168
    rates[6 * 24 + 3] = Decimal(str(sunday_night))
    return Profile(rates=tuple(rates))


QUIET = {
    "as quiet as base: no reserve": (2, 0, 1),
    "less than base: the profile still counts, not base": (0, 0, 0),
    "a need like base's at another rate": (5, 0, 1),
    "more than base's need: the full reserve": (5.1, 0, 3),
    "a quiet reserve above the other": (2, 2, 3),
}


@pytest.mark.parametrize(("sunday_night", "quiet", "total"), QUIET.values(), ids=QUIET)
def test_a_profile_on_sunday_at_three_takes_the_quiet_reserve(sunday_night: float, quiet: int, total: int) -> None:
    plan = a_plan(
        profile=a_profile(sunday_night),
        reserve=Reserve(replicas=1, quiet=quiet),
        bounds=Bounds(minimum=0, maximum=8),
    )
    assert required(plan, "2026-12-06T03:00") == (total, "profile")
    assert required(plan, "2026-12-06T02:59") == (5, "profile")
    assert required(plan, "2026-12-06T04:00") == (5, "profile")


CARRIED = {
    "Monday evening": ("2026-11-30T21:59", 2, "base"),
    "Monday night": ("2026-11-30T22:00", 4, "window night"),
    "Tuesday, the larger of both": ("2026-12-01T03:00", 4, "window night"),
    "Tuesday, the window has run out": ("2026-12-01T06:00", 3, "calendar fair"),
    "Tuesday evening: no window starts": ("2026-12-01T22:00", 3, "calendar fair"),
    "Tuesday's last minute": ("2026-12-01T23:59", 3, "calendar fair"),
    "Wednesday: nothing was carried over": ("2026-12-02T00:00", 2, "base"),
}


@pytest.mark.parametrize(("at", "replicas", "because"), CARRIED.values(), ids=CARRIED)
def test_a_monday_night_runs_on_into_a_tuesday_with_a_calendar_rate(at: str, replicas: int, because: str) -> None:
    night = a_window(name="night", days=frozenset({0, 1}), start=time(22), end=time(6), level=rate(15))
    fair = Calendar(name="fair", dates=frozenset({date(2026, 12, 1)}), treat_as=rate(10))
    assert required(a_plan(windows=(night,), calendars=(fair,)), at) == (replicas, because)


def test_a_calendar_rate_above_a_carried_window_counts_from_midnight() -> None:
    night = a_window(name="night", days=frozenset({0}), start=time(22), end=time(6), level=rate(15))
    fair = Calendar(name="fair", dates=frozenset({date(2026, 12, 1)}), treat_as=rate(25))
    assert required(a_plan(windows=(night,), calendars=(fair,)), "2026-12-01T00:00") == (6, "calendar fair")


FIRST_OF_MAY = {
    "before": ("2026-05-01T05:29", 2, "base"),
    "the report runs": ("2026-05-01T05:30", 3, "window report-run"),
    "its last minute": ("2026-05-01T06:59", 3, "window report-run"),
    "after": ("2026-05-01T07:00", 2, "base"),
    "no working day": ("2026-05-01T12:00", 2, "base"),
}


@pytest.mark.parametrize(("at", "replicas", "because"), FIRST_OF_MAY.values(), ids=FIRST_OF_MAY)
def test_a_cron_on_the_first_that_is_a_holiday_runs(at: str, replicas: int, because: str) -> None:
    report = CronWindow(
        name="report-run", cron="30 5 1 * *", at=time(5, 30), duration=timedelta(minutes=90), level=Total(replicas=3)
    )
    holidays = Calendar(name="holidays", dates=frozenset({date(2026, 5, 1)}), treat_as=TreatAs.BASE)
    assert required(a_plan(cron_windows=(report,), calendars=(holidays,)), at) == (replicas, because)


LAUNCH = {
    "before": ("2026-12-01T06:59", 2, "base"),
    "launch": ("2026-12-01T07:00", 8, "override launch"),
    "the later start wins, though it asks for fewer": ("2026-12-01T10:00", 3, "override oncall"),
    "launch again": ("2026-12-01T12:00", 8, "override launch"),
    "after": ("2026-12-01T19:00", 5, "window working-day"),
}


@pytest.mark.parametrize("reverse", [False, True], ids=["as listed", "listed the other way round"])
@pytest.mark.parametrize(("at", "replicas", "because"), LAUNCH.values(), ids=LAUNCH)
def test_a_later_on_call_override_goes_before_a_launch(at: str, replicas: int, because: str, reverse: bool) -> None:
    launch = an_override("launch", "2026-12-01T07:00", "2026-12-01T19:00", rate(40))
    oncall = an_override("oncall", "2026-12-01T10:00", "2026-12-01T12:00", Total(replicas=3))
    overrides = (oncall, launch) if reverse else (launch, oncall)
    assert required(a_plan(overrides=overrides), at) == (replicas, because)


def test_an_override_to_fewer_at_ten_past_eight_steps_down_now() -> None:
    fewer = an_override("fewer", "2026-12-01T08:10", "2026-12-01T19:00", Total(replicas=2))
    loop = Loop(plan=a_plan(), now=berlin(MORNING), current=2)
    loop.run(berlin("2026-12-01T12:00"), {berlin("2026-12-01T08:10"): lambda it: it.edit(overrides=(fewer,))})
    assert loop.levels == [("Tue 07:48:00", 5), ("Tue 08:10:00", 4), ("Tue 08:12:00", 3), ("Tue 08:14:00", 2)]


@pytest.mark.parametrize("at", ["2026-12-01T17:00", "2026-12-02T07:40", "2026-12-02T07:55"])
def test_kubectl_scale_to_one_is_raised_again_without_waiting(at: str) -> None:
    """Raises go out at once: 5 are asked for by 17:00 and by 07:48 at the latest."""
    instant = berlin(at)
    loop = Loop(plan=a_plan(), now=berlin(MORNING), current=2)
    loop.run(instant)
    loop.scale(1)
    kubectl = FieldOwner(manager="kubectl", time=instant, ours=False)
    verdict = judge(
        desired=loop.decide().desired,
        current=1,
        owners=(kubectl,),
        last_scale=loop.history.last_scale,
        contest=None,
        now=instant,
    )
    assert (verdict.write, verdict.force) == (loop.decide().desired, True)


@pytest.mark.parametrize(
    ("at", "by"),
    [("2026-12-01T17:00", "2026-12-01T17:11"), ("2026-12-02T07:40", "2026-12-02T08:00")],
    ids=["in the afternoon", "before the ramp"],
)
def test_five_are_ready_after_kubectl_scaled_to_one(at: str, by: str) -> None:
    loop = Loop(plan=a_plan(), now=berlin(MORNING), current=2)
    loop.run(berlin(by), {berlin(at): lambda it: it.scale(1)})
    assert (loop.current, loop.ready) == (5, 5)


LEADS = {
    "grows before the ramp began": (10, 20, [("Tue 07:45:00", 5)]),
    "grows after it began": (20, 30, [("Tue 07:36:00", 5)]),
    "shrinks before it began": (10, 5, [("Tue 07:54:00", 5)]),
    "shrinks after it began": (20, 5, [("Tue 07:36:00", 5)]),
    "shrinks to nothing": (20, 0, [("Tue 07:36:00", 5)]),
}


@pytest.mark.parametrize(("before", "after", "writes"), LEADS.values(), ids=LEADS)
def test_a_lead_that_changes_at_a_quarter_to_eight_restarts_nothing(
    before: int, after: int, writes: list[tuple[str, int]]
) -> None:
    loop = Loop(plan=a_plan(lead=lead(before)), now=berlin(MORNING), current=2)
    loop.run(berlin("2026-12-01T19:00"), {berlin("2026-12-01T07:45"): lambda it: it.edit(lead=lead(after))})
    assert loop.levels == writes


def test_three_starting_replicas_raise_nothing_more() -> None:
    now = berlin("2026-12-01T07:55")
    ready = [Replica(name=f"r{i}", stage=Stage.READY, since=now - timedelta(days=1)) for i in range(2)]
    starting = [Replica(name=f"s{i}", stage=Stage.ENGINE, since=now - timedelta(minutes=7)) for i in range(3)]
    observation = Observation(current=5, ready=2, available=2, replicas=(*ready, *starting))
    scale = Scale(time=berlin("2026-12-01T07:48"), before=2, after=5, because="ready before window working-day")
    ramp = Ramp(start=berlin("2026-12-01T08:00"), needed=5, start_by=scale.time)
    decision = decide(a_plan(), observation, History(last_scale=scale, ramp=ramp), now)
    assert (decision.desired, decision.adjustment.extra, decision.ramp) == (5, 0, ramp)


@pytest.mark.parametrize("minutes_down", [0, 1, 2, 30], ids=lambda m: f"down for {m} min")
def test_an_operator_restarted_at_four_of_a_fall_goes_on_without_a_jump(minutes_down: int) -> None:
    first = Loop(plan=a_plan(), now=berlin("2026-12-01T19:30"), current=5)
    first.run(berlin("2026-12-01T20:01"))
    assert first.levels == [("Tue 20:00:00", 4)]
    restarted = Loop(
        plan=a_plan(), now=first.now + timedelta(minutes=minutes_down), current=first.current, history=first.history
    )
    restarted.run(berlin("2026-12-01T23:00"))
    assert [w.after for w in restarted.writes] == [3, 2]
    assert restarted.writes[0].time == max(berlin("2026-12-01T20:02"), berlin(f"2026-12-01T20:{1 + minutes_down:02}"))
    assert restarted.writes[1].time - restarted.writes[0].time == timedelta(minutes=2)
