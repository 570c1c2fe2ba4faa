"""What is said and remembered of feedback: two conditions, and a round trip through the status and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.api.schema import plan_schema
from servingplan.planning.excess import Change
from servingplan.planning.lead import Rises, RiseSample, RunningRise, Stages
from servingplan.planning.learned import Learned, NotLearned
from servingplan.planning.observation import Excess, History, Milestones, Raised
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NOT_ASKED, Heard, NoSignals, Signals
from servingplan.rendering.feedback import LONGEST_PATCH
from servingplan.rendering.situation import Situation
from servingplan.rendering.status import history_from_wire, render_status, same_meaning
from support.foresight import a_foresight, a_learned, office_day
from support.plans import a_plan
from support.signals import a_checked_plan, a_feedback, a_raise, an_excess, some_signals, steady
from support.situations import a_situation, an_invalid_situation, an_observation, condition, pods

NOON = berlin("2026-12-01T12:00")
MINUTE = timedelta(minutes=1)
SILENT = NoSignals(reason=Reason.METRICS_UNREACHABLE, message="source default does not answer")
AWAITED_PAST = NotLearned(reason=Reason.HISTORY_AWAITED, message="the last days of arrivals are not read yet")
STALE = NoSignals(reason=Reason.METRICS_STALE, message="its newest sample is of 11:58:00")


def checked(heard: Heard | None = None, history: History | None = None, **changes: Any) -> Situation:
    """The worked example at noon, with feedback and what its engines say."""
    observation = an_observation(pods(5), heard=heard or some_signals(NOON))
    return a_situation(plan=a_checked_plan(), observation=observation, history=history, **changes)


def busy(history: History | None = None, **changes: Any) -> Situation:
    """More arrives than planned."""
    return checked(some_signals(NOON, arrivals_2m=steady(30), arrivals_10m=steady(29)), history, **changes)


METRICS: Mapping[str, tuple[Situation, str, str]] = {
    "all are heard": (checked(), "True MetricsHeard", "every ready pod is heard"),
    "nobody is": (checked(SILENT), "False MetricsUnreachable", "source default does not answer"),
    "nobody was asked yet": (checked(NOT_ASKED), "Unknown MetricsAwaited", "the source is asked with the next poll"),
    "one is silent": (
        checked(some_signals(NOON, missing={"chat-4": STALE})),
        "False MetricsStale",
        "pod chat-4: its newest sample is of 11:58:00; the others count, and nothing is lowered",
    ),
    "three are silent": (
        checked(some_signals(NOON, missing={"chat-4": STALE, "chat-2": SILENT, "chat-3": STALE})),
        "False MetricsUnreachable",
        "pod chat-2: source default does not answer (and 2 more pods); the others count, and nothing is lowered",
    ),
}


@pytest.mark.parametrize(("situation", "said", "message"), METRICS.values(), ids=METRICS)
def test_whether_engines_are_heard(situation: Situation, said: str, message: str) -> None:
    found = condition(situation, "MetricsAvailable")
    assert found is not None
    assert (f"{found.status} {found.reason}", found.message) == (said, message)


SAID = {"MetricsAvailable": {"status": "True", "reason": "MetricsHeard", "message": "every ready pod is heard"}}


def looking_ahead(
    learned: Learned | None = None, trouble: NotLearned | None = None, heard: Heard | None = None, **changes: Any
) -> Situation:
    """The same plan with foresight, and what is known of the past."""
    plan = a_checked_plan(feedback=a_feedback(foresight=a_foresight()))
    observation = an_observation(pods(5), heard=heard or some_signals(NOON), learned=learned, not_learned=trouble)
    return a_situation(plan=plan, observation=observation, **changes)


UNREADABLE = NotLearned(reason=Reason.HISTORY_UNREADABLE, message="source default answered 503")
KNOWN = a_learned(office_day())
PAST: Mapping[str, tuple[Situation, str, str]] = {
    "the past is learned": (looking_ahead(KNOWN), "True MetricsHeard", "every ready pod is heard"),
    "it is not read yet": (looking_ahead(trouble=AWAITED_PAST), "Unknown HistoryAwaited", "are not read yet"),
    "it cannot be read": (looking_ahead(trouble=UNREADABLE), "False HistoryUnreadable", "nothing falls"),
    "nothing newer can be": (looking_ahead(KNOWN, UNREADABLE), "False HistoryUnreadable", "was learned before"),
    "there is a day of it": (looking_ahead(replace(KNOWN, days=1.2)), "True HistoryShort", "has no usual day yet"),
    "there are hours of it": (
        looking_ahead(replace(KNOWN, days=0.2, rising=None, lasting=None)), "True HistoryShort", "has no say yet",
    ),
    "a silent pod says more": (
        looking_ahead(trouble=UNREADABLE, heard=some_signals(NOON, missing={"chat-4": STALE})),
        "False MetricsStale", "pod chat-4",
    ),
    "after a restart the source is not asked yet": (
        looking_ahead(heard=NOT_ASKED, previous=SAID), "True MetricsHeard", "every ready pod is heard",
    ),
    "the source answers again, but the past is not read yet": (
        looking_ahead(
            trouble=AWAITED_PAST,
            previous={"MetricsAvailable": {"status": "False", "reason": "MetricsUnreachable", "message": "no answer"}},
        ),
        "Unknown HistoryAwaited", "are not read yet",
    ),
    "after a restart the past is not read yet": (
        looking_ahead(trouble=AWAITED_PAST, previous=SAID), "True MetricsHeard", "every ready pod is heard",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("situation", "said", "message"), PAST.values(), ids=PAST)
def test_whether_the_past_is_known(situation: Situation, said: str, message: str) -> None:
    found = condition(situation, "MetricsAvailable")
    assert found is not None
    assert f"{found.status} {found.reason}" == said
    assert message in found.message


MISSING = NoSignals(reason=Reason.METRICS_MISSING, message="it has no series")


def just_ready(situation: Situation, *names: str, seconds: int = 30) -> Situation:
    """The same, but these pods became ready so many seconds ago."""
    milestones = Milestones(ready=situation.now - timedelta(seconds=seconds))
    assert situation.observation is not None
    replicas = [
        replace(replica, milestones=milestones) if replica.name in names else replica
        for replica in situation.observation.replicas
    ]
    return replace(situation, observation=replace(situation.observation, replicas=tuple(replicas)))


NAMES = tuple(replica.name for replica in pods(5))
YOUNG: Mapping[str, tuple[Situation, str]] = {
    "a pod that has just become ready is not missed": (
        just_ready(checked(some_signals(NOON, missing={NAMES[4]: MISSING})), NAMES[4]),
        "True MetricsHeard",
    ),
    "one that has been ready for longer is": (
        just_ready(checked(some_signals(NOON, missing={NAMES[4]: MISSING})), NAMES[4], seconds=91),
        "False MetricsMissing",
    ),
    "an older one beside it is": (
        just_ready(checked(some_signals(NOON, missing={NAMES[4]: MISSING, NAMES[3]: STALE})), NAMES[4]),
        "False MetricsStale",
    ),
    "all are young": (just_ready(checked(MISSING), *NAMES), "Unknown MetricsAwaited"),
    "all are young, but the source is down": (just_ready(checked(SILENT), *NAMES), "False MetricsUnreachable"),
    "not all are young": (just_ready(checked(MISSING), *NAMES[:4]), "False MetricsMissing"),
}


@pytest.mark.parametrize(("situation", "said"), YOUNG.values(), ids=YOUNG)
def test_pods_that_have_just_become_ready_are_no_news(situation: Situation, said: str) -> None:
    found = condition(situation, "MetricsAvailable")
    assert found is not None
    assert f"{found.status} {found.reason}" == said


PATCH = {"spec": {"schedule": {"base": {"requestsPerSecond": 31}}}}


def with_change(patch: Mapping[str, Any] | None) -> Situation:
    return busy(change=Change(rate=Decimal(31), replicas=8, patch=patch))


ARRIVE = "up to 30/s arrive where window working-day plans 18/s, since Tue 1 Dec 12:00 CET"
DEMAND: Mapping[str, tuple[Situation, str, str]] = {
    "as planned": (checked(), "True DemandAsPlanned", "no more requests arrive than the plan expects"),
    "more than planned": (busy(), "False DemandAbovePlan", ARRIVE),
    "more, with the patch that holds against it": (
        with_change(PATCH),
        "False DemandAbovePlan",
        f"{ARRIVE}. To plan for it (8 replicas): kubectl patch --type=merge -p "
        '\'{"spec":{"schedule":{"base":{"requestsPerSecond":31}}}}\'',
    ),
    "more, in a profile that no patch of the plan changes": (
        with_change(None),
        "False DemandAbovePlan",
        f"{ARRIVE}. Raise it in the profile's ConfigMap: 8 replicas would serve it",
    ),
    "more, with a patch that nobody would read": (
        with_change({"spec": {"x": "y" * LONGEST_PATCH}}),
        "False DemandAbovePlan",
        f"{ARRIVE}. Plan for 31/s there: 8 replicas would serve it",
    ),
    "more was there a while ago": (
        checked(history=History(excess=an_excess(NOON - 5 * MINUTE))),
        "False DemandAbovePlan",
        "up to 24/s arrive where window working-day plans 18/s, since Tue 1 Dec 11:55 CET",
    ),
    "more was there long ago": (
        checked(history=History(excess=an_excess(NOON - 60 * MINUTE))),
        "True DemandAsPlanned",
        "no more requests arrive than the plan expects",
    ),
    "nobody can tell whether it still is": (
        checked(SILENT, History(excess=an_excess(NOON - 60 * MINUTE))),
        "False DemandAbovePlan",
        "up to 24/s arrive where window working-day plans 18/s, since Tue 1 Dec 11:00 CET",
    ),
}


@pytest.mark.parametrize(("situation", "said", "message"), DEMAND.values(), ids=DEMAND)
def test_whether_the_demand_is_as_planned(situation: Situation, said: str, message: str) -> None:
    found = condition(situation, "DemandWithinPlan")
    assert found is not None
    assert (f"{found.status} {found.reason}", found.message) == (said, message)


@pytest.mark.parametrize("type_", ["MetricsAvailable", "DemandWithinPlan"])
@pytest.mark.parametrize(
    "situation",
    [a_situation(), an_invalid_situation(), a_situation(plan=a_checked_plan(), decision=None, observation=None)],
    ids=["without feedback", "a plan that does not resolve", "without a target"],
)
def test_nothing_is_said_of_what_nobody_asked(type_: str, situation: Situation) -> None:
    assert condition(situation, type_) is None


@pytest.mark.parametrize("situation", [s for s, *_ in (*METRICS.values(), *DEMAND.values())])
def test_a_message_is_the_same_a_little_later(situation: Situation) -> None:
    later = replace(situation, now=situation.now + timedelta(seconds=20))
    for type_ in ("MetricsAvailable", "DemandWithinPlan"):
        assert condition(later, type_) == condition(situation, type_)


# ---- what is remembered ----

COUNT = st.integers(1, 1000)
INSTANT = st.datetimes(
    min_value=berlin("2026-01-01T00:00").replace(tzinfo=None), max_value=berlin("2032-01-01T00:00").replace(tzinfo=None)
).map(lambda naive: naive.replace(tzinfo=NOON.tzinfo))
RATE = st.decimals(Decimal("0.01"), Decimal(100_000), places=2)
SECONDS = st.integers(0, 86_400).map(lambda seconds: timedelta(seconds=seconds))

RAISED = st.builds(Raised, extra=COUNT, replicas=COUNT, since=INSTANT, wanted_at=INSTANT)
EXCESS = st.builds(Excess, since=INSTANT, seen_at=INSTANT, rate=RATE, planned=RATE, source=st.just("window a"))
SAMPLE = st.builds(
    RiseSample, decided=INSTANT, stages=st.builds(Stages, scheduling=SECONDS, pulling=SECONDS, engine=SECONDS)
)
RUNNING = st.builds(RunningRise, decided=INSTANT, before=COUNT, after=COUNT)
RISES = st.builds(
    Rises,
    fingerprint=st.just("0123456789abcdef"),
    samples=st.lists(SAMPLE, min_size=1, max_size=19).map(tuple),
    running=st.lists(RUNNING, max_size=3).map(tuple),
)


def kept(raised: Raised | None, excess: Excess | None, rises: Rises) -> dict[str, Any]:
    """The status of a plan for which this was decided."""
    situation = checked()
    assert situation.decision is not None
    adjustment = replace(situation.decision.adjustment, raised=raised, excess=excess)
    decision = replace(situation.decision, adjustment=adjustment)
    return render_status(replace(situation, decision=decision, rises=rises), {})


@given(raised=st.none() | RAISED, excess=st.none() | EXCESS, rises=RISES | st.just(Rises()))
def test_what_the_next_decision_must_remember_comes_back_as_it_was(
    raised: Raised | None, excess: Excess | None, rises: Rises
) -> None:
    status = kept(raised, excess, rises)
    schema = plan_schema()["properties"]["status"]
    jsonschema.Draft7Validator(schema).validate(status)
    assert unknown(status, schema) == []
    found = history_from_wire(status)
    assert (found.raised, found.excess, found.rises) == (raised, excess, rises)


def unknown(value: Any, schema: Mapping[str, Any], path: str = "") -> list[str]:
    """Fields that a server would prune."""
    if isinstance(value, list):
        return [found for item in value for found in unknown(item, schema["items"], f"{path}[]")]
    if not isinstance(value, Mapping) or "properties" not in schema:
        return []
    known = schema["properties"]
    deeper = [found for key in value if key in known for found in unknown(value[key], known[key], f"{path}.{key}")]
    return [f"{path}.{key}" for key in value if key not in known] + deeper


def test_nothing_is_shown_of_what_is_not_raised() -> None:
    status = kept(None, None, Rises())
    assert not {"raised", "excess"} & set(status)
    assert set(status["leadTime"]) == {"effective"}


def test_what_was_learned_is_shown_with_the_stage_that_took_longest() -> None:
    sample = RiseSample(decided=NOON, stages=Stages(scheduling=MINUTE, pulling=MINUTE, engine=12 * MINUTE))
    situation = checked(history=History(rises=Rises(fingerprint="f", samples=(sample,))))
    lead = render_status(replace(situation, rises=Rises(fingerprint="f", samples=(sample,))), {})["leadTime"]
    assert lead["learned"] == {"p95": "14m", "rises": 1, "slowest": "engine"}
    assert lead["effective"] == "16m48s"


def test_what_was_raised_stays_where_nothing_can_be_decided() -> None:
    before = kept(a_raise(NOON), an_excess(NOON), Rises())
    after = render_status(an_invalid_situation(), before)
    assert (after["raised"], after["excess"]) == (before["raised"], before["excess"])


def test_a_status_of_a_plan_without_feedback_says_nothing_of_it() -> None:
    status = render_status(a_situation(plan=a_plan()), {})
    types = {found["type"] for found in status["conditions"]}
    assert not {"MetricsAvailable", "DemandWithinPlan"} & types
    assert not {"raised", "excess"} & set(status)


def test_numbers_that_move_with_every_poll_are_no_news() -> None:
    first = render_status(checked(some_signals(NOON, arrivals_2m=steady(17.0))), {})
    second = render_status(checked(some_signals(NOON, arrivals_2m=steady(16.2), waiting_most=2.0)), first)
    assert same_meaning(second, first)


JUST_HEARD = some_signals(NOON, arrivals_2m=None, arrivals_10m=None, ttft=None, tpot=None)
RAISED_BEFORE = History(raised=a_raise(NOON - 90 * MINUTE))


def arriving(rate: float) -> Signals:
    return some_signals(NOON, arrivals_now=rate, arrivals_2m=steady(rate), arrivals_10m=steady(rate))


@pytest.mark.parametrize("heard", [NOT_ASKED, JUST_HEARD], ids=["no source is asked yet", "arrivals are not known yet"])
@pytest.mark.parametrize(
    ("history", "rate"), [(History(), 17), (RAISED_BEFORE, 22)], ids=["nothing was raised", "a raise is still wanted"]
)
@pytest.mark.parametrize("ahead", [False, True], ids=["feedback", "foresight"])
def test_an_operator_that_starts_again_writes_no_status_before_it_knows_more(
    ahead: bool, history: History, rate: float, heard: Heard
) -> None:
    def looked(heard: Heard, learned: Learned | None, history: History, **changes: Any) -> Situation:
        if ahead:
            return looking_ahead(learned, heard=heard, history=history, **changes)
        return checked(heard, history, **changes)

    before = render_status(looked(arriving(rate), a_learned(office_day(busy=0.5)), history), {})
    previous = {found["type"]: found for found in before["conditions"]}
    started = render_status(looked(heard, None, history_from_wire(before), previous=previous), before)

    same = ("decision", "conditions", "desiredReplicas", "floorReplicas")
    assert {key: started[key] for key in same} == {key: before[key] for key in same}
    assert started["desiredReplicas"] == (6 if history.raised else 5)


def test_what_is_new_is_told_even_before_all_is_known() -> None:
    before = render_status(checked(), {})
    observation = an_observation(pods(5), heard=NOT_ASKED)
    suspended = render_status(a_situation(plan=a_checked_plan(suspend=True), observation=observation), before)

    assert suspended["decision"][-1]["reason"] == "Suspended"
