"""Plans made of ScaledObjects: what they require is what was meant, at every instant of a year."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from servingplan.api.resolve import resolve
from servingplan.errors import InputError
from servingplan.migrating.adopt import Onto, Wishes, adopt
from servingplan.migrating.intended import intended_intervals
from servingplan.planning.demand import requirements
from support.keda import WORKING_DAY, YEAR, a_cron, a_scaled_object

TODAY = date(2026, 12, 1)
PROMETHEUS = {"type": "prometheus", "metadata": {}}


def wishes(**changes):
    given = {"name": "vllm", "onto": None, "capacity": None, "reserve": 1, "start_time": timedelta(minutes=8)}
    return Wishes(**{**given, **changes})


def adopted(found, **changes):
    return adopt(found, wishes(**changes), TODAY)


def differences(found, plan):
    """Instants at which the plan does not require what was meant: the largest of the triggers, at least the minimum."""
    required = requirements(plan, *YEAR)
    meant = [(trigger.replicas, intended_intervals(trigger, *YEAR)) for trigger in found.crons]
    instants = {*required.times, *(t for _, spans in meant for span in spans for t in (span.start, span.end))}
    edges = [*sorted(t for t in instants if YEAR[0] <= t < YEAR[1]), YEAR[1]]
    for start, end in pairwise(edges):
        middle = start + (end - start) / 2
        asked = [found.bounded(n) for n, spans in meant if any(middle in span for span in spans)]
        if required.at(middle).replicas != max([found.outside, *asked]):
            yield middle, required.at(middle).replicas, max([found.outside, *asked])


SCHEDULES = {
    "a working day": [WORKING_DAY],
    "an end on every day": [a_cron("0 8 * * 1-5", "0 20 * * *")],
    "nights of weekdays": [a_cron("0 22 * * 1-5", "0 6 * * 1-5")],
    "around the spring change": [a_cron("30 2 * * *", "0 6 * * *"), a_cron("0 22 * * *", "30 2 * * *", 3)],
    "from Monday to Friday": [a_cron("0 8 * * 1", "0 20 * * 5")],
    "from Friday to Monday, over the week's end": [a_cron("30 18 * * fri", "15 7 * * mon", 4)],
    "two windows a day": [a_cron("0 8,14 * * 1-5", "0 12,18 * * 1-5")],
    "overlapping": [WORKING_DAY, a_cron("0 18 * * 1-5", "0 22 * * 1-5", 3), a_cron("0 10 * * 0,6", "0 12 * * 0,6", 7)],
    "the first of a month": [a_cron("30 5 1 * *", "0 7 1 * *", 6)],
    "quarters, and Mondays": [a_cron("0 9 1 */3 *", "0 12 1 */3 *", 6), a_cron("0 9 * * 1", "0 11 * * 1", 3)],
    "dates or weekdays": [a_cron("0 13 1,15 * 1", "0 20 1,15 * 1", 6)],
    "above the maximum": [a_cron("0 8 * * *", "0 20 * * *", 50)],
    "zones that change together": [WORKING_DAY, a_cron("0 7 * * 1-5", "0 9 * * 1-5", 7, zone="Europe/London")],
    "a zone without changes": [a_cron("0 9 * * 1-6", "30 18 * * 1-6", zone="Asia/Kolkata")],
    "where midnight is left out": [a_cron("0 0 * * *", "0 6 * * *", zone="America/Santiago")],
}


@pytest.mark.parametrize("triggers", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("capacity", [None, Decimal("2.5")], ids=["totals", "rates"])
def test_a_plan_requires_what_was_meant_at_every_instant_of_a_year(triggers, capacity):
    found = a_scaled_object(*triggers)
    plan = resolve(adopted(found, capacity=capacity).plan, {})
    assert list(differences(found, plan)) == []


def test_no_window_ends_early_where_the_zones_of_triggers_change_apart():
    found = a_scaled_object(WORKING_DAY, a_cron("0 9 * * 1-5", "0 17 * * 1-5", 7, zone="America/New_York"))
    one = adopted(found)
    plan = resolve(one.plan, {})
    assert all(required > meant for _, required, meant in differences(found, plan))
    assert any("America/New_York" in note and "1h longer" in note for note in one.notes)


def test_the_plan_scales_the_workload_and_says_that_the_scaled_object_goes():
    one = adopted(a_scaled_object())
    assert one.plan["spec"]["targetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}
    assert any("delete ScaledObject vllm before you apply the plan" in note for note in one.notes)


def test_where_other_triggers_measure_the_plan_sets_the_minimum_and_keda_stays():
    one = adopted(a_scaled_object(WORKING_DAY, PROMETHEUS, minReplicaCount=0))
    assert one.plan["spec"]["targetRef"] == {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "vllm"}
    assert one.plan["spec"]["bounds"] == {"minReplicas": 1, "maxReplicas": 8}
    assert any("take triggers 0 out of it" in note for note in one.notes)


def test_what_is_lost_or_left_over_is_said():
    measured = adopted(a_scaled_object(WORKING_DAY, PROMETHEUS), onto=Onto.WORKLOAD)
    assert any("nothing takes over prometheus" in note for note in measured.notes)
    alone = adopted(a_scaled_object(), onto=Onto.SCALED_OBJECT)
    assert any("KEDA takes no ScaledObject without triggers" in note for note in alone.notes)


def test_rates_come_from_capacity_and_reserve():
    spec = adopted(a_scaled_object(), capacity=Decimal(5)).plan["spec"]
    assert spec["schedule"]["windows"][0]["requestsPerSecond"] == 20
    assert (spec["schedule"]["base"], spec["reserve"]) == ({"requestsPerSecond": 5}, {"replicas": 1})


def test_what_the_reserve_takes_stays_a_total():
    one = adopted(a_scaled_object(minReplicaCount=1), capacity=Decimal(5), reserve=5)
    assert one.plan["spec"]["schedule"]["windows"][0]["replicas"] == 5
    assert one.plan["spec"]["reserve"] == {"replicas": 5, "quiet": 1}


def test_the_maximum_is_what_is_stated_or_what_the_triggers_ask_for():
    found = a_scaled_object(maxReplicaCount=None)
    assert adopted(found).plan["spec"]["bounds"]["maxReplicas"] == 5


@pytest.mark.parametrize(
    ("triggers", "said"),
    [
        ([PROMETHEUS], "has no trigger of type cron"),
        ([a_cron("0 8 30 2 *", "0 20 * * *")], "no window begins in a year"),
        ([a_cron("0 8 1 * *", "0 20 10 * *")], "a window by date lasts at most 168h"),
        ([WORKING_DAY, a_cron("0 8 1 * *", "0 9 1 * *", zone="Asia/Tokyo")], "names dates in another zone"),
    ],
    ids=["no cron", "no window", "too long", "dates of another zone"],
)
def test_what_a_plan_cannot_say_is_refused(triggers, said):
    with pytest.raises(InputError, match=said):
        adopted(a_scaled_object(*triggers))


def test_a_plan_holds_the_zone_of_the_first_trigger():
    plan = resolve(adopted(a_scaled_object(a_cron("0 9 * * *", "0 18 * * *", zone="Asia/Tokyo"), WORKING_DAY)).plan, {})
    assert plan.zone == ZoneInfo("Asia/Tokyo")
