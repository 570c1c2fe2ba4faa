"""What is emitted does what the plan does: by the model of KEDA, and by when CronJobs fire, over the coming weeks."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from servingplan.migrating.emit_cronjob import emit_cronjob, setting_of
from servingplan.migrating.emit_keda import emit_keda
from servingplan.migrating.emitted import Weeks
from servingplan.migrating.keda_cron import active_intervals
from servingplan.migrating.patterns import by_the_minute
from servingplan.migrating.robfig import fires, parse
from servingplan.migrating.scaled_object import scaled_object
from servingplan.planning.calendar import local_date
from servingplan.planning.plan import Bounds, Calendar, Lead, Override, Rate, Reserve, Total, TreatAs
from servingplan.planning.series import StepFunction, step_function
from servingplan.planning.target import TargetRef
from servingplan.reporting.hours import course
from servingplan.reporting.local import midnight
from support.plans import a_plan, a_window

AROUND = timedelta(days=9)
WORKLOAD = TargetRef(api_version="apps/v1", kind="Deployment", name="vllm")
HPA = TargetRef(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="vllm")
SCALED_OBJECT = TargetRef(api_version="keda.sh/v1alpha1", kind="ScaledObject", name="vllm")

NIGHT = a_window(name="night", start=time(22), end=time(2, 30), days=frozenset(range(7)), level=Total(replicas=4))
SMALL = a_window(name="small", start=time(2, 15), end=time(2, 45), days=frozenset(range(7)), level=Total(replicas=3))
HOLIDAY = Calendar(name="holidays", dates=frozenset({date(2026, 12, 24), date(2026, 12, 25)}), treat_as=TreatAs.BASE)
LAUNCH = Override(
    name="launch",
    start=datetime.fromisoformat("2026-12-10T07:00"),
    end=datetime.fromisoformat("2026-12-10T21:00"),
    level=Total(replicas=7),
)
SECONDS = Lead(
    declared=timedelta(minutes=9, seconds=40), margin=Fraction(0), maximum=timedelta(minutes=30), learn=False
)

PLANS = {
    "the working day": (a_plan(), "2026-12-01", 2),
    "a lead with seconds": (a_plan(lead=SECONDS), "2026-12-01", 2),
    "over the spring change": (a_plan(windows=(a_window(), NIGHT)), "2027-03-22", 2),
    "over the autumn change": (a_plan(windows=(a_window(), NIGHT)), "2026-10-19", 2),
    "in the hour that changes": (a_plan(windows=(SMALL,)), "2027-03-22", 2),
    "in the hour that comes twice": (a_plan(windows=(SMALL,)), "2026-10-19", 2),
    "holidays": (a_plan(calendars=(HOLIDAY,)), "2026-12-14", 3),
    "an override": (a_plan(overrides=(LAUNCH,)), "2026-12-01", 2),
    "down to nothing": (
        a_plan(
            base=Rate(requests_per_second=Decimal(0)),
            reserve=Reserve(replicas=1, quiet=0),
            bounds=Bounds(minimum=0, maximum=8),
        ),
        "2026-12-01",
        1,
    ),
    "always the same": (a_plan(windows=()), "2026-12-01", 1),
    "a start in the middle of a window": (a_plan(windows=(NIGHT,)), "2026-12-01T23:00", 1),
    "zones of half hours": (a_plan(zone=ZoneInfo("Australia/Lord_Howe"), windows=(SMALL, a_window())), "2027-03-29", 2),
    "a change at midnight": (
        a_plan(
            zone=ZoneInfo("America/Santiago"), windows=(a_window(start=time(0), end=time(6), days=frozenset(range(7))),)
        ),
        "2027-08-30",
        2,
    ),
}


def asked_of(name):
    """The plan, its asked-for replicas from before to after, start and end."""
    plan, text, number = PLANS[name]
    start = datetime.fromisoformat(text).replace(tzinfo=plan.zone).astimezone(UTC)
    end = midnight(local_date(start, plan.zone) + timedelta(days=7 * number), plan.zone)
    return plan, course(plan, start - AROUND, end + AROUND).asked_function, start, end


def weeks(name):
    """The same as what is emitted from."""
    plan, asked, start, end = asked_of(name)
    return Weeks(plan=plan, wanted=by_the_minute(asked), start=start, end=end)


def what_keda_does(manifest, start, end) -> StepFunction[int]:
    """The largest active trigger of a manifest, at least its minimum."""
    found, refused = scaled_object(manifest, "llm", manifest["metadata"]["name"])
    assert not refused
    active = [(found.bounded(t.replicas), active_intervals(t, start, end)) for t in found.crons]
    edges = {start, *(t for _, spans in active for span in spans for t in (span.start, span.end) if start < t < end)}
    points = [
        (at, max([found.outside, *(n for n, spans in active if any(at in span for span in spans))]))
        for at in sorted(edges)
    ]
    return step_function(points, end=end)


def what_jobs_do(manifests, wanted, start, end, field="--replicas=") -> StepFunction[int]:
    """Replicas as the jobs set them one after the other, from what is asked for at the start on."""
    sets = []
    for job in (m for m in manifests if m["kind"] == "CronJob"):
        zone, schedule = ZoneInfo(job["spec"]["timeZone"]), parse(job["spec"]["schedule"])
        (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        replicas = int(container["command"][-1].rpartition("=")[2].rpartition(":")[2].rstrip("}"))
        times = fires(schedule, zone, round(start.timestamp()), round(end.timestamp()))
        sets += [(datetime.fromtimestamp(fire, UTC), replicas) for fire in times]
    assert len({at for at, _ in sets}) == len(sets)
    points = sorted(sets)
    if not points or points[0][0] > start:
        points = [(start, wanted.at(start)), *points]
    return step_function(points, end=end)


@pytest.mark.parametrize("name", PLANS)
def test_keda_does_what_the_plan_asks_for(name):
    found = weeks(name)
    (manifest,) = emit_keda(found, WORKLOAD).manifests
    assert what_keda_does(manifest, found.start, found.end) == found.within


@pytest.mark.parametrize("name", PLANS)
def test_jobs_do_what_the_plan_asks_for(name):
    found = weeks(name)
    emitted = emit_cronjob(found, setting_of(WORKLOAD), "kubectl")
    wanted = found.within
    assert what_jobs_do(emitted.manifests, wanted, found.start, found.end) == wanted


@pytest.mark.parametrize("name", PLANS)
def test_by_the_minute_is_never_lower_and_never_a_minute_off(name):
    _, asked, _, _ = asked_of(name)
    rounded = by_the_minute(asked)
    minute = timedelta(minutes=1)
    for first, following in pairwise([*sorted({*asked.times, *rounded.times}), asked.end]):
        middle = first + (following - first) / 2
        near = [asked.values[i] for i in asked.within(middle - minute, middle + minute)]
        assert asked.at(middle) <= rounded.at(middle) <= max(near)
    assert all(at.second == 0 for at in rounded.times[1:])


def test_the_working_day_takes_a_weekly_trigger_for_each_level():
    found = weeks("the working day")
    (manifest,) = emit_keda(found, WORKLOAD).manifests
    crons = [trigger["metadata"] for trigger in manifest["spec"]["triggers"]]
    assert [(t["start"], t["end"], t["desiredReplicas"]) for t in crons] == [
        ("48 7 * * 1,2,3,4,5", "4 20 * * 1,2,3,4,5", "3"),
        ("48 7 * * 1,2,3,4,5", "2 20 * * 1,2,3,4,5", "4"),
        ("48 7 * * 1,2,3,4,5", "0 20 * * 1,2,3,4,5", "5"),
    ]
    assert {t["timezone"] for t in crons} == {"Europe/Berlin"}
    assert (manifest["spec"]["minReplicaCount"], manifest["spec"]["maxReplicaCount"]) == (2, 8)


def test_what_a_weekly_trigger_would_get_wrong_names_dates_and_is_told():
    found = weeks("over the spring change")
    emitted = emit_keda(found, WORKLOAD)
    assert any("name dates" in note for note in emitted.notes)


def test_a_clock_change_after_the_weeks_is_told():
    found = weeks("a start in the middle of a window")
    notes = emit_keda(found, WORKLOAD).notes
    assert any("wrong at the clock change on Sat 27 Mar" in note for note in notes)


@pytest.mark.parametrize(
    ("target", "command", "resources"),
    [
        (WORKLOAD, ["kubectl", "scale", "deployments.apps/vllm", "--replicas=5"], ["deployments", "deployments/scale"]),
        (
            HPA,
            [
                "kubectl",
                "patch",
                "horizontalpodautoscalers.autoscaling/vllm",
                "--type=merge",
                '--patch={"spec":{"minReplicas":5}}',
            ],
            ["horizontalpodautoscalers"],
        ),
        (
            SCALED_OBJECT,
            [
                "kubectl",
                "patch",
                "scaledobjects.keda.sh/vllm",
                "--type=merge",
                '--patch={"spec":{"minReplicaCount":5}}',
            ],
            ["scaledobjects"],
        ),
    ],
    ids=["workload", "HPA", "ScaledObject"],
)
def test_a_job_sets_one_field_of_one_object_and_may_do_nothing_else(target, command, resources):
    found = weeks("the working day")
    manifests = emit_cronjob(found, setting_of(target), "kubectl").manifests
    jobs = [m for m in manifests if m["kind"] == "CronJob"]
    assert command in [j["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"] for j in jobs]
    (role,) = [m for m in manifests if m["kind"] == "Role"]
    assert [r for rule in role["rules"] for r in rule["resources"]] == resources
    assert {name for rule in role["rules"] for name in rule["resourceNames"]} == {"vllm"}


def test_a_job_starts_no_later_than_the_next_change():
    found = weeks("the working day")
    manifests = emit_cronjob(found, setting_of(WORKLOAD), "kubectl").manifests
    late = {m["spec"]["schedule"]: m["spec"]["startingDeadlineSeconds"] for m in manifests if m["kind"] == "CronJob"}
    assert late == {
        "48 7 * * 1,2,3,4,5": 12 * 3600,
        "0 20 * * 1,2,3,4,5": 120,
        "2 20 * * 1,2,3,4,5": 120,
        "4 20 * * 1,2,3,4,5": (11 * 60 + 44) * 60,
    }


def test_an_autoscalers_minimum_is_at_least_1():
    found = weeks("down to nothing")
    emitted = emit_cronjob(found, setting_of(HPA), "kubectl")
    assert not [m for m in emitted.manifests if 'minReplicas":0' in str(m)]
    assert any("an autoscaler's minimum is at least 1" in note for note in emitted.notes)


def test_names_of_jobs_are_short_and_differ():
    found = weeks("over the spring change")
    names = [m["metadata"]["name"] for m in emit_cronjob(found, setting_of(WORKLOAD), "i").manifests[3:]]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 52 for name in names)


def test_leaving_an_owned_engine_says_how_its_deployment_stays():
    found = weeks("the working day")
    assert any("deletionPolicy: Retain" in note for note in emit_keda(found, WORKLOAD).notes)
