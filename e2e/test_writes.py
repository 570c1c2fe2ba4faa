"""What the operator writes, counted by the API server: nothing while nothing changes, and a budget for each decision.

The budgets are those of docs/reference/writes.md. ``SERVINGPLAN_E2E_THOROUGH=yes`` makes the ten quiet minutes real
ones, at the relist interval that the chart sets.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e.support.eventually import eventually
from e2e.support.operator import Operator, demo_clock
from e2e.support.workloads import condition, gpu_deployment
from servingplan.localcluster.audit import Write
from servingplan.localcluster.stages import Span
from support.specs import document, scheduled, targeting

THOROUGH = os.environ.get("SERVINGPLAN_E2E_THOROUGH", "") == "yes"
ZONE = ZoneInfo("Europe/Berlin")
NIGHT = "2026-12-01T01:00:00+01:00"


@pytest.fixture
def written(local_cluster, installation, namespace) -> Callable[[datetime, datetime | None], list[Write]]:
    """The operator's writes in the test's namespace between two real instants, the Lease left out."""
    user = f"system:serviceaccount:{installation.home}:operator-servingplan"

    def between(since: datetime, until: datetime | None = None) -> list[Write]:
        return [
            write
            for write in local_cluster.audit.entries(since=since, user=user)
            if write.namespace == namespace and write.resource != "leases" and (until is None or write.time < until)
        ]

    return between


def counted(writes: list[Write]) -> Counter[str]:
    """Writes that changed something, by what they wrote to; those that came too late (409) apart."""
    return Counter(
        (f"{write.resource}/{write.subresource}" if write.subresource else write.resource)
        + (" (conflict)" if write.code == 409 else "")
        for write in writes
    )


# ---- nothing changes ----

ENGINES, TARGETS, BROKEN_EACH = 60, 20, 5
QUIET = timedelta(minutes=10)
FACTOR = 1 if THOROUGH else 12
RELIST = "300" if THOROUGH else "5"
ONE_REPLICA = {"reserve": {"replicas": 0}}


def broken(number: int, **changes) -> list[dict]:
    names = (f"broken-{number}-{each}" for each in range(BROKEN_EACH))
    return [document(name=name, namespace=None, **changes) for name in names]


def a_hundred_plans(namespace: str) -> list[dict]:
    """60 engines, 20 Deployments of somebody else with a plan each, and 20 plans that are broken in four ways."""
    calendar = [{"name": "holidays", "configMap": {"name": "missing"}, "treatAs": "Base"}]
    plans = [document(name=f"engine-{number}", namespace=namespace, **ONE_REPLICA) for number in range(ENGINES)]
    plans += [
        document(name=f"target-{number}", **targeting(name=f"vllm-{number}"), **ONE_REPLICA)
        for number in range(TARGETS)
    ]
    plans += broken(1, **scheduled(timeZone="Europe/Atlantis"))
    plans += broken(2, **scheduled(calendars=calendar))
    plans += broken(3, **targeting(name="missing"))
    plans += broken(4, **scheduled(calendars=[calendar[0] | {"configMap": {"name": "garbled"}}]))
    for plan in plans:
        plan["metadata"]["namespace"] = namespace
    return plans


def relists(operator: Operator) -> int:
    return sum(number for key, number in requests(operator).items() if key == ("list", "servingplans.servingplan.dev"))


def requests(operator: Operator) -> Counter[tuple[str, str]]:
    """Requests of an operator so far, by verb and resource, as it counts them itself."""
    found: Counter[tuple[str, str]] = Counter()
    for line in operator.get("/metrics").splitlines():
        if match := re.fullmatch(r"servingplan_api_requests_total\{(.*)\} ([0-9.e+]+)", line):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[1]))
            found[labels["verb"], labels["resource"]] += int(float(match[2]))
    return found


def plans_looked_at(operator: Operator) -> int:
    """How many plans a process has reconciled: each shows its conditions from then on."""
    return len(re.findall(r'_plan_condition\{[^}]*status="True",type="PlanValid"\}', operator.get("/metrics")))


def test_a_hundred_plans_are_left_alone_while_nothing_changes(kubectl, namespace, gpu_nodes, run_operator, written):
    gpu_nodes(8, gpus=16)
    clock = demo_clock(NIGHT, FACTOR)
    kubectl.apply(*(gpu_deployment(f"vllm-{number}", replicas=1) for number in range(TARGETS)))
    kubectl("create", "configmap", "garbled", "--from-literal=calendar.ics=BEGIN:VCALENDAR")
    plans = a_hundred_plans(namespace)
    assert len(plans) == 100
    kubectl.apply(*plans)
    operator = run_operator(f"--relist-seconds={RELIST}", clock=clock)
    eventually(
        lambda: kubectl.json("get", "servingplans")["items"],
        lambda found: sum(settled(plan) for plan in found) == 100,
        what="a hundred plans in order, or said to be broken",
        timeout_s=120,
    )
    until_quiet(written)

    began, before, relisted = datetime.now(UTC), requests(operator), relists(operator)
    time.sleep(QUIET.total_seconds() / FACTOR)
    assert counted(written(began)) == Counter()
    assert relists(operator) > relisted
    show("reads in ten quiet minutes", requests(operator) - before, relists(operator) - relisted)

    assert operator.stop() == 0
    restarted = datetime.now(UTC)
    operator = run_operator(f"--relist-seconds={RELIST}", clock=clock)
    eventually(lambda: plans_looked_at(operator), lambda number: number == 100, what="every plan looked at")
    assert counted(written(restarted)) == Counter()


def settled(plan: Mapping) -> bool:
    wanted = "False" if plan["metadata"]["name"].startswith("broken") else "True"
    found = condition(plan, "Ready")
    return found is not None and found["status"] == wanted


def until_quiet(written, seconds: float = 5.0) -> None:
    """Until nothing has been written for a while."""
    eventually(
        lambda: written(datetime.now(UTC) - timedelta(seconds=seconds)),
        lambda writes: not writes,
        what="no more writes",
    )


def show(what: str, found: Counter, relisted: int) -> None:
    print(f"{what} ({relisted} relists): {dict(sorted(found.items()))}")


# ---- what a decision costs ----

BUDGETS = {
    "creation": {
        "deployments": 2,
        "deployments/scale": 1,
        "services": 1,
        "poddisruptionbudgets": 1,
        "configmaps": 1,
        "servingplans/status": 4,
        "events": 6,
    },
    "rise, until ready": {"deployments/scale": 1, "configmaps": 1, "servingplans/status": 5, "events": 1},
    "window begins": {"configmaps": 1, "servingplans/status": 1},
    "fall step 1": {"deployments/scale": 1, "configmaps": 1, "servingplans/status": 2, "events": 1},
    "fall step 2": {"deployments/scale": 1, "configmaps": 1, "servingplans/status": 2, "events": 1},
    "fall step 3": {"deployments/scale": 1, "configmaps": 1, "servingplans/status": 2, "events": 1},
    "condition change": {"servingplans/status": 1, "events": 1},
    "edit outside engine": {"configmaps": 1, "servingplans/status": 1},
}
"""The most that each decision writes of each resource; docs/reference/writes.md says what for.

Status: the decision, then counts as replicas come and go, one by one at most; a faster clock makes the 30 s between two
of them short. Events of a creation: the replicas, DrainSafe, and Ready and ReserveIntact turning twice where replicas
take their time.
"""

EVERY = timedelta(minutes=5)
"""Between two steps of the fall: long enough to tell what each one wrote."""

LATE = 2
"""Writes of replicas or of a Deployment that come too late for its own controller's, in all: each is made again."""


@pytest.fixture
def nodes(local_cluster, gpu_nodes) -> list[str]:
    """Six GPUs, on which a replica takes three seconds to start."""
    local_cluster.set_start_time(load=Span(at_least=3, at_most=3))
    return gpu_nodes(6)


def test_each_decision_keeps_its_budget_of_writes(kubectl, namespace, nodes, run_operator, written):
    clock = demo_clock(NIGHT, 60)
    operator = run_operator(clock=clock)
    marks = [("creation", datetime.now(UTC))]
    start = clock.now().astimezone(ZONE).replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=31)
    end = start + timedelta(minutes=4)
    high = {"name": "high", "start": wall(start), "end": wall(end), "requestsPerSecond": 18}
    steps = {"step": 1, "every": f"{EVERY // timedelta(minutes=1)}m"}
    plan = document(namespace=namespace, scaleDown=steps, **scheduled(windows=None, overrides=[high]))
    kubectl.apply(plan)

    def until(what: str, wanted: Callable[[Mapping], object]) -> None:
        eventually(lambda: kubectl.json("get", "servingplan", "support-chat").get("status", {}), wanted, what=what)
        until_quiet(written, 1.5)

    def at(name: str, instant: datetime) -> None:
        time.sleep(clock.seconds_until(instant.replace(tzinfo=ZONE)) - 0.3)
        marks.append((name, datetime.now(UTC)))

    until("two ready", lambda status: status.get("readyReplicas") == 2)
    at("rise, until ready", start - timedelta(minutes=12))
    until("five ready", lambda status: status["readyReplicas"] == 5)
    at("window begins", start)
    at("fall step 1", end)
    at("fall step 2", end + EVERY)
    at("fall step 3", end + 2 * EVERY)
    until("two again", lambda status: status["readyReplicas"] == 2)
    marks.append(("condition change", datetime.now(UTC)))
    kubectl("cordon", *nodes)
    until("too few GPUs", lambda status: has(status, "GPUCapacitySufficient", "False"))
    marks.append(("edit outside engine", datetime.now(UTC)))
    kubectl.apply(plan | {"spec": plan["spec"] | {"scaleDown": steps | {"step": 2}}})
    until("the edit seen", lambda status: status["observedGeneration"] == 2)
    marks.append(("end", datetime.now(UTC)))
    found = {name: counted(written(since, till)) for (name, since), (_, till) in itertools.pairwise(marks)}
    late = sum(spent.pop(resource) for spent in found.values() for resource in sorted(spent) if "conflict" in resource)
    assert late <= LATE, found
    # The later steps may not pay for the earlier ones, nor a rise for what comes after it.
    for name, budget in BUDGETS.items():
        assert found[name] <= Counter(budget), f"{name} spent {dict(found[name])} of {budget}"
    assert [name for name, spent in found.items() if not spent] == []

    reads, relisted = requests(operator), relists(operator)
    show("requests of a day", reads, relisted)
    # What nobody else changes is looked at once a relist, and again where a write came too late.
    for beside in ("services", "poddisruptionbudgets.policy"):
        assert 1 <= reads["get", beside] <= relisted + LATE + 1 < reads["get", "deployments.apps"]


def wall(instant: datetime) -> str:
    return instant.isoformat(timespec="minutes")


def has(status: Mapping, kind: str, wanted: str) -> bool:
    found = condition({"status": status}, kind)
    return found is not None and found["status"] == wanted
