"""Status: its shape, what counts as a change, what is remembered, and what stays where nothing can be decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.api.schema import plan_schema
from servingplan.errors import Problem
from servingplan.planning.observation import History, Ramp, Scale, Trouble
from servingplan.planning.ownership import Contest
from servingplan.planning.plan import Override, Total
from servingplan.planning.reasons import Reason
from servingplan.rendering.situation import Accelerators, Rollout, Situation
from servingplan.rendering.status import (
    MESSAGE_LENGTH,
    Figures,
    contest_from_wire,
    contest_to_wire,
    history_from_wire,
    render_status,
    same_meaning,
    scale_to_wire,
)
from support.plans import a_plan, a_window, an_engine
from support.situations import Day, a_day, a_situation, an_invalid_situation, an_observation, in_trouble, pods
from support.strategies import plans

MINUTE = timedelta(minutes=1)
EIGHT = Ramp(start=berlin("2026-12-01T08:00"), needed=5, start_by=berlin("2026-12-01T07:48"))
SCALE = Scale(time=berlin("2026-12-01T07:48") + timedelta(microseconds=123), before=2, after=5, because="window x")
CONTEST = Contest(
    manager="kubectl",
    since=berlin("2026-12-01T11:00") + timedelta(microseconds=1),
    last_write=berlin("2026-12-01T11:30"),
    value=2,
    raises=3,
    last_raise=berlin("2026-12-01T11:31"),
)
MONTH = Figures(hours_planned=2252, hours_flat=3650)
LONG = "x" * 63


def rendered(situation: Situation, previous: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return render_status(situation, previous or {}, **more)


def problems(status: Mapping[str, Any]) -> list[str]:
    """As the API server would: the CRD's own schema."""
    schema = plan_schema()["properties"]["status"]
    pruned = [f"the server would prune {name}" for name in sorted(set(status) - set(schema["properties"]))]
    return [*pruned, *(str(error) for error in jsonschema.Draft7Validator(schema).iter_errors(status))]


def test_a_status_tells_what_runs_why_and_what_comes() -> None:
    status = rendered(a_situation(), last_scale=SCALE, figures=MONTH, demo_clock="2026-12-01T06:30:00+01:00@60x")
    conditions, decision = status.pop("conditions"), status.pop("decision")
    assert status == {
        "observedGeneration": 7,
        "demoClock": "2026-12-01T06:30:00+01:00@60x",
        "desiredReplicas": 5,
        "currentReplicas": 5,
        "readyReplicas": 5,
        "availableReplicas": 5,
        "floorReplicas": 5,
        "reserveReplicas": 1,
        "window": "working-day",
        "nextChange": {
            "time": "2026-12-01T19:00:00Z",
            "replicas": 2,
            "because": "window working-day ends",
            "summary": "2 at Tue 20:00 CET",
        },
        "leadTime": {"effective": "12m"},
        "capacity": {"requestsPerSecond": 5.0, "source": "plan"},
        "gpuHours": {"monthPlanned": 2252, "monthFlat": 3650},
        "lastScale": {"time": "2026-12-01T06:48:00.000123Z", "from": 2, "to": 5, "because": "window x"},
    }
    assert [step["name"] for step in decision] == [
        "demand", "need", "reserve", "required", "peak", "asked", "extra", "desired",
    ]  # fmt: skip
    assert {condition["observedGeneration"] for condition in conditions} == {7}


# ---- every situation fits the schema ----

LONG_PLAN = a_plan(
    name="n" * 52,
    target=an_engine(),
    windows=(a_window(name=LONG),),
    overrides=(
        Override(
            name="o" * 63,
            start=berlin("2026-12-01T12:00").replace(tzinfo=None),
            end=berlin("2026-12-01T18:00").replace(tzinfo=None),
            level=Total(replicas=8),
        ),
    ),
)
NO_GPU = in_trouble(Reason.UNSCHEDULABLE, "0/8 nodes " * 2000)

SITUATIONS: Mapping[str, Situation] = {
    "all is well": a_situation(),
    "names as long as they may be": a_situation(plan=LONG_PLAN),
    "the words of the cluster are endless": a_situation(
        observation=an_observation((*pods(4), NO_GPU)), accelerators=Accelerators(allocatable=0, elastic=False), peak=5
    ),
    "a hundred problems": an_invalid_situation(*(Problem(path="p" * 200, reason="R", message="m" * 400),) * 100),
    "a ramp is missed": a_situation(
        "2026-12-01T08:05", observation=an_observation(pods(2, engine=3)), history=History(ramp=EIGHT)
    ),
    "somebody else writes": a_situation(contest=replace(CONTEST, manager="m" * 128)),
    "the target is missing": a_situation(
        decision=None,
        observation=None,
        target_trouble=Trouble(reason=Reason.TARGET_NOT_FOUND, message="gone " * 1000),
    ),
    "an apply is refused": a_situation(apply_trouble=Trouble(reason=Reason.APPLY_REFUSED, message="no " * 5000)),
    "nothing is there yet": a_situation(observation=an_observation(current=None)),
    "a rolling update is stuck": a_situation(rollout=Rollout(rolling=True, stalled="late " * 1000)),
    "suspended": a_situation(plan=a_plan(suspend=True)),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_the_api_server_takes_the_status_of(situation: Situation) -> None:
    status = rendered(situation, rendered(a_situation()), last_scale=SCALE, figures=MONTH, demo_clock="x" * 100)
    assert problems(status) == []
    assert all(len(condition["message"]) <= MESSAGE_LENGTH for condition in status["conditions"])


@given(plan=plans(near=date(2026, 12, 1)), start=st.integers(0, 47), current=st.integers(0, 50) | st.none())
@settings(max_examples=60, deadline=None)
def test_the_api_server_takes_the_status_of_any_plan(plan: Any, start: int, current: int | None) -> None:
    at = f"2026-12-01T{start // 2:02}:{start % 2 * 30:02}"
    situation = a_situation(
        at, plan=plan, observation=an_observation(current=current), history=History(last_scale=SCALE)
    )
    assert problems(rendered(situation, last_scale=SCALE, figures=MONTH)) == []


# ---- conditions' times ----


def test_a_transition_time_moves_only_when_the_status_flips() -> None:
    day = a_day("2026-12-01T07:00", start_time=15 * MINUTE)
    day.look()
    begun = day.condition("ReadyByNextRamp")["lastTransitionTime"]
    day.run(berlin("2026-12-01T07:50"))
    starting = day.condition("ReadyByNextRamp")["lastTransitionTime"]
    day.run(berlin("2026-12-01T07:59"))
    at_risk = day.condition("ReadyByNextRamp")
    day.run(berlin("2026-12-01T08:01"))
    missed = day.condition("ReadyByNextRamp")
    assert (begun, starting) == ("2026-12-01T06:00:00Z", "2026-12-01T06:48:00Z")
    assert (at_risk["reason"], missed["reason"]) == ("RampAtRisk", "RampMissed")
    assert at_risk["lastTransitionTime"] == missed["lastTransitionTime"] == "2026-12-01T06:58:00Z"


def test_a_transition_time_has_whole_seconds() -> None:
    status = rendered(a_situation("2026-12-01T12:00:00.250000"))
    assert {c["lastTransitionTime"] for c in status["conditions"]} == {"2026-12-01T11:00:00Z"}


# ---- what is a change ----

BEFORE = rendered(a_situation())


@pytest.mark.parametrize(
    ("situation", "same"),
    [
        (a_situation(observation=an_observation(pods(5), available=4)), True),
        (a_situation(observation=an_observation(pods(6), current=5)), True),
        (a_situation(generation=8), False),
        (a_situation(observation=an_observation(pods(4, engine=1))), False),
        (a_situation("2026-12-01T20:30"), False),
        (a_situation(contest=CONTEST), False),
    ],
    ids=[
        "one is not available yet",
        "one more is ready",
        "an edit",
        "a condition",
        "another window",
        "a second writer",
    ],
)
def test_counts_alone_are_no_change_of_meaning(situation: Situation, same: bool) -> None:
    now = rendered(situation, BEFORE)
    assert now != BEFORE
    assert same_meaning(now, BEFORE) is same


def test_progress_of_a_ramp_and_its_words_are_no_change_of_meaning() -> None:
    three, four = (
        rendered(a_situation("2026-12-01T07:52", observation=an_observation(pods(n, engine=5 - n)),
                             history=History(ramp=EIGHT)))
        for n in (3, 4)
    )  # fmt: skip
    assert three["ramp"]["verified"] == 3
    assert three != four
    assert same_meaning(three, four)


# ---- the trail of the last change ----


def asked(status: Mapping[str, Any]) -> str:
    return next(step["message"] for step in status["decision"] if step["name"] == "asked")


def test_the_trail_stays_that_of_the_change_while_nothing_changes() -> None:
    day = a_day("2026-12-01T07:00", start_time=5 * MINUTE)
    day.run(berlin("2026-12-01T07:50"))
    assert asked(day.status) == "ready before window working-day"
    day.look()
    assert asked(day.status) == "ready before window working-day"


def test_a_plan_that_is_suspended_and_resumed_says_so_each_time() -> None:
    day = a_day("2026-12-01T12:00", running=5)
    said = []
    for suspend in (False, True, False):
        day.edit(suspend=suspend)
        day.look()
        said.append(day.status["decision"][-1]["reason"])
    assert said == ["WithinBounds", "Suspended", "WithinBounds"]


def test_an_edit_that_leaves_every_number_renews_the_words() -> None:
    day = a_day("2026-12-01T12:00", running=5)
    day.look()
    day.edit(windows=(a_window(name="office"),))
    day.look()
    assert asked(day.status) == "as window office asks"


# ---- what comes next ----


@pytest.mark.parametrize(
    ("at", "coming"),
    [
        pytest.param("2026-12-01T21:00", "5 at Wed 07:48 CET", id="tomorrow"),
        pytest.param("2026-12-04T21:00", "5 at Mon 07:48 CET", id="after a weekend"),
    ],
)
def test_a_fall_that_is_not_carried_out_announces_what_the_schedule_does_after_it(at: str, coming: str) -> None:
    day = a_day(at, running=5, plan=a_plan(suspend=True))
    first = dict(day.look())
    day.now += 30 * MINUTE
    assert first["nextChange"]["summary"] == coming
    assert day.look() == first


def test_a_fall_that_is_not_carried_out_and_has_nothing_after_it_announces_nothing() -> None:
    day = a_day("2026-12-01T21:00", running=5, plan=a_plan(suspend=True, windows=()))
    assert "nextChange" not in day.look()


def test_a_fall_that_goes_on_announces_its_end() -> None:
    day = a_day("2026-12-01T20:00", running=5)
    assert day.look()["nextChange"]["summary"] == "2 at Tue 20:02 CET"


# ---- where nothing can be decided ----


@pytest.mark.parametrize(
    "situation",
    [
        an_invalid_situation(),
        a_situation(
            decision=None, observation=None, target_trouble=Trouble(reason=Reason.TARGET_NOT_FOUND, message="gone")
        ),
    ],
    ids=["the plan is invalid", "the target is missing"],
)
def test_what_was_decided_stays_and_what_would_speak_of_now_goes(situation: Situation) -> None:
    before = rendered(
        a_situation("2026-12-01T07:50", contest=CONTEST, observation=an_observation(pods(2, engine=3))),
        last_scale=SCALE,
        figures=MONTH,
    )
    after = rendered(situation, before)
    gone = {"window", "nextChange", "currentReplicas", "readyReplicas", "availableReplicas"}
    assert set(before) - set(after) == gone
    kept = set(before) - gone - {"conditions", "observedGeneration"}
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
    assert after["observedGeneration"] == situation.generation


def test_a_demo_clock_is_shown_even_where_the_plan_is_invalid_and_only_while_it_is_on() -> None:
    shown = rendered(an_invalid_situation(), demo_clock="x60")
    assert shown["demoClock"] == "x60"
    assert "demoClock" not in rendered(an_invalid_situation(), shown)


# ---- what the next decision remembers ----


def test_the_last_change_and_the_ramp_are_read_back_exactly() -> None:
    status = rendered(a_situation("2026-12-01T07:50", observation=an_observation(pods(2, engine=3))), last_scale=SCALE)
    assert history_from_wire(status) == History(last_scale=SCALE, ramp=EIGHT)
    assert history_from_wire({}) == History()
    assert scale_to_wire(SCALE)["time"] == "2026-12-01T06:48:00.000123Z"


@pytest.mark.parametrize("contest", [CONTEST, replace(CONTEST, last_raise=None, raises=0)], ids=["raised", "not yet"])
def test_a_contest_is_read_back_exactly(contest: Contest) -> None:
    assert contest_from_wire({"contested": contest_to_wire(contest)}) == contest
    assert contest_from_wire({}) is None


def test_a_missed_ramp_is_remembered_until_all_are_ready() -> None:
    day: Day = a_day("2026-12-01T07:40", start_time=15 * MINUTE)
    day.run(berlin("2026-12-01T08:02"))
    assert day.status["ramp"] == {
        "start": "2026-12-01T07:00:00Z", "needed": 5, "verified": 2, "startBy": "2026-12-01T06:48:00Z",
    }  # fmt: skip
    day.run(berlin("2026-12-01T08:04"))
    assert "ramp" not in day.status


def test_a_suspended_plan_shows_no_ramp() -> None:
    assert "ramp" not in rendered(a_situation("2026-12-01T07:50", plan=a_plan(suspend=True)))
