"""Feedback: which evidence raises, by how much, what does not, and when it comes down again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.planning.decision import COMES_DOWN, Decision, decide
from servingplan.planning.evidence import planned_prompt_mean
from servingplan.planning.excess import change
from servingplan.planning.feedback import NO_FEEDBACK
from servingplan.planning.observation import History, Milestones, Observation, Replica, Scale, Stage
from servingplan.planning.plan import Feedback, Objective, Plan, Rate, Total
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, Lasting, NoSignals, Share, Signals
from support.plans import a_plan, a_window, a_workload
from support.signals import (
    Fleet,
    a_checked_plan,
    a_feedback,
    a_raise,
    an_excess,
    an_observation,
    attained,
    remembering,
    some_signals,
    steady,
)

NOON = berlin("2026-12-01T12:00")
"""A Tuesday: 18 requests/s are planned, 5 replicas are due."""

DOWN = NoSignals(reason=Reason.METRICS_UNREACHABLE, message="source default does not answer")


def when(plan: Plan, **changes: Any) -> Plan:
    assert plan.feedback is not None
    return replace(plan, feedback=replace(plan.feedback, raise_when=replace(plan.feedback.raise_when, **changes)))


def decided(
    heard: Heard | None = None,
    *,
    plan: Plan | None = None,
    now: datetime = NOON,
    observation: Observation | None = None,
    history: History | None = None,
    **signals: Any,
) -> Decision:
    """The decision at noon with five calm, ready replicas, but for what a test changes."""
    heard = some_signals(now, **signals) if heard is None else heard
    observation = replace(observation or an_observation(), heard=heard)
    return decide(plan or a_checked_plan(), observation, history or History(), now)


# ---- what raises ----

EXCESS = 1.3 * 18

RAISES = {
    "30 % more arrives": (1, {"arrivals_2m": steady(EXCESS), "arrivals_10m": steady(19)}),
    "30 % more, seen over ten minutes alone": (1, {"arrivals_10m": steady(EXCESS)}),
    "twice as much arrives": (3, {"arrivals_2m": steady(36)}),
    "ever more arrives, and enough from the beginning": (3, {"arrivals_2m": Lasting(value=40, least=24)}),
    "a million arrives": (3, {"arrivals_2m": steady(1e6)}),
    "more arrives, and many wait": (3, {"arrivals_2m": steady(EXCESS), "waiting": steady(1200)}),
    "in flight above the limit": (1, {"in_flight_mean": steady(41)}),
    "TPOT breaks": (1, {"tpot": attained(0.9)}),
    "TTFT breaks and requests wait": (1, {"ttft": attained(0.9), "waiting_most": 2.0}),
    "requests wait": (1, {"waiting": steady(5 * 3.6), "waiting_most": 20.0}),
    "preemptions": (1, {"preemption_share": steady(0.06)}),
    "rejections": (1, {"rejections": steady(0.4)}),
    "everything at once": (
        1,
        {"in_flight_mean": steady(99), "tpot": attained(0.5), "preemption_share": steady(1), "rejections": steady(9)},
    ),
}


@pytest.mark.parametrize(("extra", "signals"), RAISES.values(), ids=RAISES)
def test_evidence_raises_by_what_it_is_worth(extra, signals):
    decision = decided(**signals)

    assert (decision.adjustment.extra, decision.desired) == (extra, 5 + extra)
    assert decision.adjustment.reason is Reason.FEEDBACK_RAISES
    assert decision.because.startswith("feedback: ")


def test_a_step_is_a_tenth_of_many_replicas():
    plan = a_checked_plan(windows=(a_window(level=Total(replicas=31)),), bounds=replace(a_plan().bounds, maximum=60))
    decision = decided(plan=plan, observation=an_observation(31), in_flight_mean=steady(99))

    # A tenth of 31 is 4, and maxExtra is 3.
    assert decision.adjustment.extra == 3
    larger = replace(plan, feedback=a_feedback(max_extra=10))
    assert decided(plan=larger, observation=an_observation(31), in_flight_mean=steady(99)).adjustment.extra == 4


def test_bounds_limit_a_raise_and_say_so():
    plan = a_checked_plan(bounds=replace(a_plan().bounds, maximum=6))
    decision = decided(plan=plan, arrivals_2m=steady(40))

    assert decision.desired == 6
    assert decision.limit is not None
    assert (decision.limit.wanted, decision.limit.given) == (8, 6)


# ---- what does not ----

BURST = Lasting(value=30, least=17)
CALM = {
    "nothing special": (Reason.WITHIN_PLAN, {}),
    "a little more, within chance": (Reason.WITHIN_PLAN, {"arrivals_2m": steady(18.5)}),
    "more, but as dispersed as ever": (Reason.WITHIN_PLAN, {"arrivals_2m": steady(EXCESS), "dispersion": 100.0}),
    "more, but the replicas that are due serve it": (Reason.ALREADY_DUE, {"arrivals_2m": steady(19.4)}),
    "a burst of arrivals": (Reason.TRANSIENT_BURST, {"arrivals_2m": BURST}),
    "a level that began within the window": (Reason.TRANSIENT_BURST, {"arrivals_2m": Lasting(value=21, least=18.1)}),
    "a burst in flight": (Reason.TRANSIENT_BURST, {"in_flight_mean": Lasting(value=60, least=20)}),
    "a burst that breaks TPOT": (
        Reason.TRANSIENT_BURST,
        {"tpot": Share(at_least=0.9, at_most=0.9, best=0.99, count=2000)},
    ),
    "a burst of waiting": (Reason.TRANSIENT_BURST, {"waiting": Lasting(value=90, least=0), "waiting_most": 90.0}),
    "prompts twice as long, nothing waits": (
        Reason.PROMPTS_LONGER,
        {"prompt_mean": 1900.0, "ttft": attained(0.8), "tpot": attained(0.9)},
    ),
    "TTFT breaks though nothing waits": (Reason.WITHIN_PLAN, {"ttft": attained(0.8)}),
    "TTFT may still be kept": (
        Reason.WITHIN_PLAN,
        {"ttft": Share(at_least=0.5, at_most=0.96, best=0.96, count=900), "waiting_most": 3.0},
    ),
    "TPOT of a handful of requests": (Reason.WITHIN_PLAN, {"tpot": attained(0.5, count=10)}),
    "a rate is not known yet": (
        Reason.NOT_KNOWN,
        {"arrivals_2m": None, "arrivals_10m": None, "preemption_share": None, "rejections": None},
    ),
}


@pytest.mark.parametrize(("reason", "signals"), CALM.values(), ids=CALM)
def test_what_does_not_raise_has_its_reason(reason, signals):
    decision = decided(**signals)

    assert (decision.desired, decision.adjustment.extra, decision.adjustment.reason) == (5, 0, reason)


def test_one_hot_replica_of_four_is_a_matter_of_routing():
    in_flight = {"p0": 90.0, "p1": 9.0, "p2": 10.0, "p3": 8.0}
    decision = decided(
        in_flight=in_flight,
        in_flight_mean=steady(29.25),
        waiting=steady(40),
        waiting_most=40.0,
        ttft=attained(0.8),
        preemption_share=steady(0.2),
    )

    assert (decision.desired, decision.adjustment.reason) == (5, Reason.IMBALANCED)
    assert "p0" in decision.adjustment.message


def test_the_queue_time_confirms_and_never_raises_alone():
    plan = when(a_checked_plan(), queue_time=Objective(percentile="p95", limit=timedelta(milliseconds=500)))
    decision = decided(plan=plan, queue=attained(0.2))

    assert decision.adjustment.extra == 0
    verdicts = {verdict.signal: verdict.reason for verdict in decision.adjustment.verdicts}
    assert verdicts["queueTime"] is Reason.CONFIRMS


OFF = {
    "arrivals": ({"arrivals": False}, {"arrivals_2m": steady(40)}),
    "inFlightPerReplica": ({"in_flight_per_replica": None}, {"in_flight_mean": steady(400)}),
    "tpotBreach": ({"tpot_breach": False}, {"tpot": attained(0.1)}),
    "ttftBreach": ({"ttft_breach": False}, {"ttft": attained(0.1), "waiting_most": 1.0}),
    "waitingPerReplica": ({"waiting_per_replica": None}, {"waiting": steady(500)}),
    "preemptionShare": ({"preemption_share": None}, {"preemption_share": steady(1)}),
    "rejections": ({"rejections": False}, {"rejections": steady(5)}),
}


@pytest.mark.parametrize(("off", "signals"), OFF.values(), ids=OFF)
def test_a_signal_that_the_plan_does_not_use_raises_nothing(off, signals):
    assert decided(plan=when(a_checked_plan(), **off), **signals).desired == 5
    assert decided(**signals).desired > 5


def test_the_waiting_limit_follows_from_the_objective_or_is_stated():
    # Half of floor(5/s x 1.5 s): more than 3.5 a replica.
    assert decided(waiting=steady(5 * 3.5)).adjustment.extra == 0
    assert decided(waiting=steady(5 * 3.6)).adjustment.extra == 1
    stated = when(a_checked_plan(), waiting_per_replica=Decimal(10))
    assert decided(plan=stated, waiting=steady(5 * 10)).adjustment.extra == 0
    assert decided(plan=stated, waiting=steady(5 * 11)).adjustment.extra == 1


def test_what_arrived_before_a_scheduled_fall_is_no_excess_after_it():
    after_eight = berlin("2026-12-01T20:00:30")
    scale = Scale(time=berlin("2026-12-01T07:48"), before=2, after=5, because="ready before window working-day")
    decision = decided(now=after_eight, history=History(last_scale=scale), arrivals_2m=steady(17))

    assert (decision.desired, decision.adjustment.extra) == (4, 0)


def test_what_still_arrives_after_a_scheduled_fall_is():
    decision = decided(now=berlin("2026-12-01T20:05"), arrivals_2m=steady(9), arrivals_10m=steady(13))

    # n(9.3) + 1 where 2 are due; the ten minutes still hold what was planned.
    assert decision.adjustment.extra == 1


# ---- paid for once ----


def starting(count: int, since: datetime) -> Observation:
    replicas = [Replica(name=f"s{i}", stage=Stage.ENGINE, since=since) for i in range(count)]
    return an_observation(5, current=5 + count, replicas=tuple(replicas))


PRESSURE = {"in_flight_mean": steady(60), "tpot": attained(0.8)}


def test_replicas_that_are_starting_count_as_present():
    raised = a_raise(NOON - timedelta(minutes=2))
    decision = decided(observation=starting(1, NOON - timedelta(minutes=2)), history=remembering(raised), **PRESSURE)

    assert (decision.desired, decision.adjustment.extra) == (6, 1)


def test_a_stuck_start_is_named_and_not_doubled():
    raised = a_raise(NOON - timedelta(minutes=40))
    decision = decided(observation=starting(1, NOON - timedelta(minutes=40)), history=remembering(raised), **PRESSURE)

    assert decision.desired == 6
    assert Reason.START_STUCK in {verdict.reason for verdict in decision.adjustment.verdicts}


def test_a_replica_that_just_came_is_given_two_minutes_to_tell():
    pods = {f"p{i}": NOON - timedelta(hours=1) for i in range(5)} | {"p5": NOON - timedelta(seconds=90)}
    settled = {**pods, "p5": NOON - timedelta(minutes=2)}
    history = remembering(a_raise(NOON - timedelta(minutes=13)))
    six = an_observation(6)

    assert decided(observation=six, history=history, first_heard=pods, **PRESSURE).adjustment.extra == 1
    assert decided(observation=six, history=history, first_heard=settled, **PRESSURE).adjustment.extra == 2


@pytest.mark.parametrize(("seconds", "extra"), [(0, 1), (119, 1), (120, 2)])
def test_a_replica_that_is_ready_and_not_heard_yet_is_waited_for_too(seconds, extra):
    ready = Milestones(ready=NOON - timedelta(seconds=seconds))
    newest = Replica(name="p5", stage=Stage.READY, since=NOON - timedelta(minutes=3), milestones=ready)
    history = remembering(a_raise(NOON - timedelta(minutes=3)))

    assert (
        decided(observation=an_observation(6, replicas=(newest,)), history=history, **PRESSURE).adjustment.extra
        == extra
    )


def test_a_lost_node_raises_nothing():
    assert decided(observation=an_observation(4, current=5), **PRESSURE).desired == 5


def test_noise_above_what_was_raised_builds_no_staircase():
    history = remembering(a_raise(NOON))
    # n(24.6 + 0.45) would be one more; what is sure, n(24.6 - 0.74), is not.
    noisy = decided(history=history, observation=an_observation(6), arrivals_2m=steady(24.6))
    grown = decided(history=history, observation=an_observation(6), arrivals_2m=steady(26))

    assert (noisy.adjustment.extra, grown.adjustment.extra) == (1, 2)


# ---- coming down ----


def test_what_was_raised_stays_until_nothing_asked_for_it_for_the_stabilization():
    raised = a_raise(NOON)
    scale = Scale(time=NOON, before=5, after=6, because="feedback: arrivals")
    history = History(last_scale=scale, raised=raised)
    for minutes, desired in ((1, 6), (9, 6), (10, 5)):
        now = NOON + timedelta(minutes=minutes)
        decision = decided(now=now, history=history, observation=an_observation(6))
        assert decision.desired == desired, minutes
    assert (decision.because, decision.adjustment.raised) == (COMES_DOWN, None)
    drained = decided(
        now=NOON + timedelta(minutes=11), history=History(last_scale=scale), observation=an_observation(6)
    )
    assert (drained.desired, drained.because) == (5, COMES_DOWN)
    held = decided(now=NOON + timedelta(minutes=1), history=history, observation=an_observation(6))
    assert held.next_change_at <= NOON + timedelta(minutes=10)
    assert held.adjustment.reason is Reason.EXTRA_HELD


def test_the_schedule_s_next_change_is_not_moved_by_what_feedback_holds():
    held = decided(history=remembering(a_raise(NOON)), observation=an_observation(6))

    assert held.next_change is not None
    assert (held.asked, held.next_change.time) == (5, berlin("2026-12-01T20:00"))


def test_in_flight_that_would_not_fit_without_it_keeps_what_was_raised():
    late = NOON + timedelta(hours=1)
    six = {f"p{i}": 35.0 for i in range(6)}
    history = remembering(a_raise(NOON))

    assert decided(now=late, history=history, observation=an_observation(6), in_flight=six).desired == 6
    calm = dict.fromkeys(six, 20.0)
    assert decided(now=late, history=history, observation=an_observation(6), in_flight=calm).desired == 5


@pytest.mark.parametrize("heard", [DOWN, None], ids=["the source is down", "nobody asked"])
def test_nothing_that_is_missing_lowers_what_was_raised(heard):
    late = NOON + timedelta(hours=3)
    observation = replace(an_observation(6), heard=heard)
    decision = decide(a_checked_plan(), observation, remembering(a_raise(NOON), an_excess(NOON)), late)

    assert (decision.desired, decision.adjustment.excess) == (6, an_excess(NOON))


def test_who_does_not_hear_every_pod_lowers_nothing():
    late = NOON + timedelta(hours=3)
    history = remembering(a_raise(NOON))
    missing = {"p9": NoSignals(reason=Reason.METRICS_MISSING, message="")}

    assert decided(now=late, history=history, observation=an_observation(6), missing=missing).desired == 6
    assert decided(now=late, history=history, observation=an_observation(6), arrivals_2m=None).desired == 6


def test_a_clock_that_went_back_does_not_hold_a_raise_for_ever():
    history = remembering(a_raise(NOON + timedelta(days=300)))
    decision = decided(history=history, observation=an_observation(6))

    assert decision.adjustment.raised is not None
    assert decision.adjustment.raised.wanted_at <= NOON + timedelta(minutes=2.5)


def test_what_the_schedule_comes_to_ask_for_is_no_extra_any_more():
    ramp = berlin("2026-12-01T07:50")
    raised = replace(a_raise(ramp - timedelta(minutes=5)), extra=2, replicas=4)
    decision = decided(now=ramp, history=remembering(raised), observation=an_observation(4), arrivals_2m=steady(8))

    assert (decision.desired, decision.adjustment.extra, decision.adjustment.reason) == (5, 0, Reason.ALREADY_DUE)


def test_evidence_is_remembered_coarsely_so_that_status_is_rarely_written():
    seen = set()
    history = History()
    for seconds in range(0, 600, 15):
        now = NOON + timedelta(seconds=seconds)
        decision = decided(now=now, history=history, observation=an_observation(6), arrivals_2m=steady(EXCESS))
        history = remembering(decision.adjustment.raised, decision.adjustment.excess)
        seen.add((history.raised, history.excess))

    assert len(seen) <= 5


# ---- above plan ----


def test_an_excess_says_by_how_much_and_since_when_and_ends_late():
    began = decided(arrivals_2m=steady(EXCESS)).adjustment.excess
    assert began is not None
    assert (began.since, began.rate, began.planned, began.source) == (NOON, 24, 18, "window working-day")

    later = decided(now=NOON + timedelta(minutes=5), history=remembering(excess=began)).adjustment.excess
    assert later == began
    over = decided(now=NOON + timedelta(minutes=14), history=remembering(excess=began)).adjustment.excess
    assert over is None


def test_an_excess_that_the_due_replicas_serve_is_told_too():
    decision = decided(arrivals_2m=steady(19.4))

    assert decision.adjustment.excess is not None
    assert decision.desired == 5


SCHEDULE = {
    "base": {"requestsPerSecond": 2},
    "windows": [
        {"name": "working-day", "days": ["Mon"], "start": "08:00", "end": "20:00", "requestsPerSecond": 18},
        {"name": "report-run", "cron": "30 5 1 * *", "duration": "90m", "replicas": 3},
    ],
}


def test_the_change_of_a_window_repeats_the_others():
    required = decided().required
    found = change(a_checked_plan(), required, Decimal(24), SCHEDULE)

    windows = [{**SCHEDULE["windows"][0], "requestsPerSecond": 24}, SCHEDULE["windows"][1]]
    assert found.patch == {"spec": {"schedule": {"windows": windows}}}
    assert (found.rate, found.replicas) == (24, 6)


def test_the_change_of_a_base_a_total_and_a_profile():
    plan, required = a_checked_plan(), decided(now=berlin("2026-12-01T23:00")).required
    base = change(plan, required, Decimal("2.5"), SCHEDULE)
    assert base.patch == {"spec": {"schedule": {"base": {"requestsPerSecond": 2.5}}}}

    source = replace(decided().required.source, name="report-run")
    total = change(plan, replace(required, rate=None, source=source), Decimal(24), SCHEDULE)
    assert total.patch == {
        "spec": {"schedule": {"windows": [SCHEDULE["windows"][0], {**SCHEDULE["windows"][1], "replicas": 6}]}}
    }

    profile = replace(required, source=replace(source, reason=Reason.PROFILE, name=""))
    assert change(plan, profile, Decimal(24), SCHEDULE).patch is None


# ---- the trail ----


def test_the_trail_tells_every_signal_within_twelve_steps():
    decision = decided(arrivals_2m=steady(EXCESS), in_flight_mean=steady(50))
    names = [step.name for step in decision.trail]

    assert names[6:] == ["arrivals", "load", "latency", "extra", "desired"]
    steps = {step.name: step for step in decision.trail}
    assert (steps["arrivals"].value, steps["arrivals"].reason) == ("raise", Reason.ABOVE_PLAN)
    assert "23.4/s arrive, 18/s planned" in steps["arrivals"].message
    assert (steps["load"].value, steps["latency"].value) == ("raise", "quiet")


def test_without_feedback_in_the_plan_nothing_is_heard():
    decision = decided(plan=a_plan(), arrivals_2m=steady(99))

    assert (decision.adjustment, len(decision.trail)) == (NO_FEEDBACK, 8)


def test_the_planned_mean_prompt_is_that_of_the_lognormal():
    # sigma = ln 4 / 1.645 = 0.843, 600 exp(0.355) = 856.
    assert planned_prompt_mean(a_plan()) == pytest.approx(856, abs=1)
    assert planned_prompt_mean(a_plan(workload=a_workload(tokens=replace(a_workload().tokens, input=())))) is None


# ---- properties ----

figures = st.floats(0, 500).flatmap(lambda v: st.floats(0, 1).map(lambda share: Lasting(value=v, least=v * share)))
shares = st.floats(0, 1).map(attained)


@st.composite
def any_signals(draw: st.DrawFn) -> Signals:
    in_flight = draw(st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 300), min_size=1))
    return some_signals(
        NOON - timedelta(seconds=draw(st.integers(0, 90))),
        arrivals_2m=draw(st.none() | figures),
        arrivals_10m=draw(st.none() | figures),
        dispersion=draw(st.floats(1, 400)),
        rejections=draw(st.none() | figures),
        preemption_share=draw(st.none() | figures),
        waiting=draw(figures),
        waiting_most=draw(st.floats(0, 99)),
        in_flight=in_flight,
        in_flight_mean=draw(figures),
        ttft=draw(st.none() | shares),
        tpot=draw(st.none() | shares),
        prompt_mean=draw(st.none() | st.floats(0, 5000)),
        first_heard=dict.fromkeys(in_flight, NOON - timedelta(seconds=draw(st.integers(90, 900)))),
    )


observations = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(
    lambda counts: an_observation(min(counts), current=counts[0])
)
histories = st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(0, 40)).map(
    lambda n: remembering(replace(a_raise(NOON - timedelta(minutes=n[2])), extra=n[0], replicas=n[1]) if n[0] else None)
)
limits = st.integers(0, 6)


def checked(maximum: int) -> Feedback:
    return a_feedback(max_extra=maximum)


@given(any_signals() | st.just(DOWN), observations, histories, limits)
@settings(max_examples=300, deadline=None)
def test_whatever_is_heard_never_gives_fewer_replicas_than_without(heard, observation, history, maximum):
    with_feedback = decide(a_checked_plan(feedback=checked(maximum)), replace(observation, heard=heard), history, NOON)
    without = decide(a_plan(), observation, history, NOON)

    assert with_feedback.desired >= without.desired
    assert 0 <= with_feedback.adjustment.extra <= maximum
    assert with_feedback.next_change_at > NOON
    assert len(with_feedback.trail) <= 12


@given(any_signals(), observations, histories, st.floats(0, 200))
@settings(max_examples=300, deadline=None)
def test_more_arrivals_never_give_fewer_replicas(heard, observation, history, more):
    def with_rate(rate: Lasting | None, add: float) -> Lasting | None:
        return None if rate is None else Lasting(value=rate.value + add, least=rate.least + add)

    def desired(add: float) -> int:
        changed = replace(
            heard, arrivals_2m=with_rate(heard.arrivals_2m, add), arrivals_10m=with_rate(heard.arrivals_10m, add)
        )
        return decide(a_checked_plan(), replace(observation, heard=changed), history, NOON).desired

    assert desired(more) >= desired(0)


@given(any_signals(), observations, histories)
@settings(max_examples=100, deadline=None)
def test_to_ask_again_at_once_changes_nothing(heard, observation, history):
    plan, seen = a_checked_plan(), replace(observation, heard=heard)
    first = decide(plan, seen, history, NOON)

    assert decide(plan, seen, history, NOON) == first


# ---- the closed loop ----


class ClosedLoop:
    """An operator that polls every 15 s, a fleet, and replicas that take ten minutes to start."""

    def __init__(self, rate, *, plan: Plan | None = None, now: datetime = NOON, replicas: int = 5) -> None:
        self.plan = plan or a_checked_plan()
        self.fleet = Fleet(now=now, pods=replicas, rate=rate)
        self.history = History()
        self.ready_at = [now] * replicas
        self.writes: list[tuple[float, int]] = []
        self.reasons: set[Reason] = set()
        self.began = now
        self.deaf: tuple[datetime, datetime] | None = None

    def run(self, until: datetime) -> ClosedLoop:
        self.fleet.run(until, self.poll)
        return self

    def poll(self, fleet: Fleet) -> None:
        now = fleet.now
        ready = [f"p{i}" for i, at in enumerate(self.ready_at) if at <= now]
        fleet.scale(ready)
        deaf = self.deaf is not None and self.deaf[0] <= now < self.deaf[1]
        heard = DOWN if deaf else fleet.record.signals(now, timedelta(seconds=90), ready)
        current = len(self.ready_at)
        observation = Observation(current=current, ready=len(ready), available=len(ready), heard=heard)
        decision = decide(self.plan, observation, self.history, now)
        self.reasons.add(decision.adjustment.reason)
        last = self.history.last_scale
        if decision.desired != current:
            last = Scale(time=now, before=current, after=decision.desired, because=decision.because)
            self.writes.append(((now - self.began) / timedelta(minutes=1), decision.desired))
            self.ready_at = self.ready_at[: decision.desired]
            self.ready_at += [now + timedelta(minutes=10)] * (decision.desired - len(self.ready_at))
        adjustment = decision.adjustment
        self.history = History(last_scale=last, ramp=decision.ramp, raised=adjustment.raised, excess=adjustment.excess)


def minutes(count: float) -> datetime:
    return NOON + timedelta(minutes=count)


def test_an_excess_of_30_percent_is_one_raise_of_the_right_size_and_one_fall():
    loop = ClosedLoop(lambda now: EXCESS if minutes(20) <= now < minutes(80) else 17.0).run(minutes(120))

    (raised_at, raised_to), (lowered_at, lowered_to) = loop.writes
    assert (raised_to, lowered_to) == (6, 5)
    assert 20 < raised_at <= 22.5
    assert 90 <= lowered_at <= 103
    assert loop.history.excess is None


@pytest.mark.parametrize("offset", [0, 7, 11], ids=lambda s: f"{s} s after the minute")
@pytest.mark.parametrize("times", [1.5, 3])
def test_a_burst_of_twenty_seconds_changes_nothing(offset, times):
    begins = minutes(12) + timedelta(seconds=offset)
    ends = begins + timedelta(seconds=20)
    loop = ClosedLoop(lambda now: 18 * times if begins <= now < ends else 17.5).run(minutes(20))

    assert loop.writes == []
    assert Reason.TRANSIENT_BURST in loop.reasons


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99], ids=["a restart", "half of it", "a little"])
def test_counts_that_fall_raise_nothing_whether_an_engine_was_started_again_or_the_source_lies(share):
    loop = ClosedLoop(lambda now: 17.0).run(minutes(20))
    fleet = loop.fleet
    fell = [
        replace(each, at=each.at + timedelta(seconds=1), arrived=each.arrived * share)
        for each in fleet.engines.values()
    ]
    fleet.record = fleet.record.heard(fell, fleet.now + timedelta(seconds=1))
    loop.run(minutes(40))

    assert loop.writes == []
    assert loop.reasons == {Reason.NOT_KNOWN, Reason.WITHIN_PLAN, Reason.TRANSIENT_BURST}


def test_prompts_twice_as_long_change_nothing_and_are_named():
    loop = ClosedLoop(lambda now: 17.0)
    loop.fleet.prompt_tokens = 1760
    loop.run(minutes(20))

    assert loop.writes == []
    assert loop.reasons == {Reason.NOT_KNOWN, Reason.PROMPTS_LONGER}


def test_a_deaf_operator_follows_the_schedule_and_feedback_resumes_by_itself():
    dawn = berlin("2026-12-01T07:00")
    eight = berlin("2026-12-01T08:00")
    loop = ClosedLoop(
        lambda now: 1.8 if now < eight else (17.0 if now < eight + timedelta(minutes=40) else EXCESS),
        now=dawn,
        replicas=2,
    )
    loop.deaf = (dawn + timedelta(minutes=40), dawn + timedelta(minutes=70))
    loop.run(eight + timedelta(minutes=60))

    assert loop.writes[0] == (48.0, 5)
    assert [to for _, to in loop.writes] == [5, 6]
    assert loop.writes[1][0] > 100


def test_the_evening_s_fall_is_not_held_up_by_the_day_s_arrivals():
    eight = berlin("2026-12-01T20:00")
    begin = berlin("2026-12-01T19:30")
    loop = ClosedLoop(lambda now: 17.0 if now < eight else 1.8, now=begin).run(eight + timedelta(minutes=30))

    assert loop.writes == [(30.0, 4), (32.0, 3), (34.0, 2)]


def test_a_base_that_is_too_low_is_raised_to_what_arrives():
    night = berlin("2026-12-01T21:00")
    plan = a_checked_plan(base=Rate(requests_per_second=Decimal(2)))
    loop = ClosedLoop(lambda now: 9.0, plan=plan, now=night, replicas=2).run(night + timedelta(minutes=40))

    assert [to for _, to in loop.writes] == [3]
