"""Reconcile with feedback and with drains: real engines' answers, through the real poller, to writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servingplan.clients.references import ObjectRef
from servingplan.errors import Refused
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, SERVING_LABEL
from support.live import autoscaler, ready_pod
from support.small_operator import KEY, PLAN, TARGET, SmallOperator
from support.specs import scheduled

POLL = timedelta(seconds=15)
GRACE = timedelta(seconds=90)
PLANNED = 17.0
"""Requests/s of all engines together: within the 18 that the working day plans."""


class Engines:
    """An operator, and five engines of its plan that answer at one address and share what arrives."""

    def __init__(self, operator: SmallOperator, port: int) -> None:
        self.operator = operator
        self.port = port
        self.names = [f"chat-{number}" for number in range(5)]
        self.rate = PLANNED
        self.running = 6.0
        self.arrived = 1000.0
        self.status = 200

    async def metrics(self, _: web.Request) -> web.Response:
        """What vLLM would answer."""
        text = (
            f'vllm:num_requests_running{{engine="0"}} {self.running}\n'
            'vllm:num_requests_waiting{engine="0"} 0\n'
            f'vllm:time_to_first_token_seconds_count{{engine="0"}} {self.arrived}\n'
            f'vllm:request_success_total{{engine="0",finished_reason="stop"}} {self.arrived}\n'
            'vllm:num_preemptions_total{engine="0"} 0\n'
        )
        return web.Response(text=text, status=self.status)

    @property
    def feedback(self) -> dict[str, Any]:
        """A plan's, that asks these pods."""
        return {"feedback": {"scrape": {"port": str(self.port)}}}

    def start(self, **changes: Any) -> None:
        """A plan that asks these pods, and the pods."""
        self.operator.run_target(len(self.names))
        template = self.operator.server.objects[TARGET]["spec"]["template"]
        template["spec"]["terminationGracePeriodSeconds"] = GRACE.total_seconds()
        for name in self.names:
            pod = ready_pod(name, node=f"on-{name}")
            pod["metadata"] |= {"labels": {SERVING_LABEL: "true"}, "creationTimestamp": "2026-12-01T06:48:00Z"}
            pod["status"]["podIP"] = "127.0.0.1"
            self.operator.server.put(pod)
        self.operator.apply_plan(**{**self.feedback, **changes})

    async def live(self, duration: timedelta) -> list[bool]:
        """Let time pass with a poll every 15 s; whether each of them was worth a look."""
        worth = []
        for _ in range(duration // POLL):
            self.operator.clock.instant += POLL
            self.arrived += self.rate * POLL.total_seconds() / len(self.names)
            await self.operator.poller.poll()
            worth.append(self.operator.reconciler.changes_by_signals(KEY))
        return worth

    def labelled(self) -> set[str]:
        """The pods that the Service selects."""
        return {
            ref.name
            for ref, pod in self.operator.server.objects.items()
            if ref.kind == "Pod" and pod["metadata"].get("labels", {}).get(SERVING_LABEL) == "true"
        }

    def marks(self, name: str) -> set[str]:
        """The annotations of a pod."""
        pod = self.operator.server.objects[ObjectRef(api_version="v1", kind="Pod", name=name, namespace="llm")]
        return set(pod["metadata"].get("annotations", {}))


@pytest.fixture
async def make() -> AsyncIterator[Callable[[str], Engines]]:
    made: list[Engines] = []
    app = web.Application()

    async def metrics(request: web.Request) -> web.Response:
        return await made[-1].metrics(request)

    app.router.add_get("/metrics", metrics)
    async with TestServer(app) as server:
        assert server.port is not None
        port = server.port

        def engines(at: str) -> Engines:
            made.append(Engines(SmallOperator(at), port))
            return made[-1]

        yield engines
        for one in made:
            await one.operator.poller.close()


MINUTES = timedelta(minutes=1)


async def heard(engines: Engines) -> SmallOperator:
    """After a quarter of an hour in which as many requests came as were planned."""
    operator = engines.operator
    engines.start()
    await operator.look()
    await engines.live(POLL)
    await operator.look()
    await engines.live(15 * MINUTES)
    await operator.look()
    operator.wrote()
    return operator


# ---- feedback ----


async def test_engines_that_were_not_asked_yet_are_awaited_and_the_first_answer_is_worth_a_look(
    make: Callable[[str], Engines],
) -> None:
    engines = make("2026-12-01T12:00")
    engines.start()
    await engines.operator.look()
    assert engines.operator.said("MetricsAvailable") == "Unknown MetricsAwaited"
    assert not engines.operator.reconciler.changes_by_signals(KEY)
    assert any(await engines.live(2 * POLL))
    await engines.operator.look()
    assert engines.operator.said("MetricsAvailable") == "True MetricsHeard"
    assert engines.operator.said("DemandWithinPlan") == "True DemandAsPlanned"


async def test_a_poll_that_changes_nothing_costs_no_look_and_a_look_no_write(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T12:00")
    operator = await heard(engines)
    assert not any(await engines.live(10 * MINUTES))
    await operator.look()
    assert operator.wrote() == []


async def test_more_arrivals_than_planned_are_worth_a_look_which_raises(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T12:00")
    operator = await heard(engines)
    engines.rate = 33.0
    worth = await engines.live(4 * MINUTES)
    assert worth[-1]
    await operator.look()
    assert operator.replicas() == 8
    assert operator.wrote() == ["apply_scale", "apply_status"]
    assert (operator.status["raised"]["extra"], operator.status["raised"]["replicas"]) == (3, 8)
    assert operator.said("DemandWithinPlan") == "False DemandAbovePlan"
    assert '"requestsPerSecond":' in operator.message("DemandWithinPlan")
    assert operator.status["lastScale"]["because"].startswith("feedback: arrivals")


async def test_what_was_raised_is_found_again_after_a_restart_and_lowered_by_nothing_that_is_missing(
    make: Callable[[str], Engines],
) -> None:
    engines = make("2026-12-01T12:00")
    operator = await heard(engines)
    engines.rate = 33.0
    await engines.live(4 * MINUTES)
    await operator.look()
    await operator.poller.close()
    operator.restart()
    operator.clock.instant += 60 * MINUTES
    await operator.look()
    assert (operator.replicas(), operator.status["raised"]["extra"]) == (8, 3)


async def test_engines_that_fall_silent_are_worth_one_look(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T12:00")
    operator = await heard(engines)
    engines.status = 503
    worth = await engines.live(3 * MINUTES)
    assert worth[-1]
    await operator.look()
    assert operator.said("MetricsAvailable") == "False MetricsUnreachable"
    assert operator.replicas() == 5
    assert not any(await engines.live(3 * MINUTES))


async def test_a_plan_without_feedback_is_told_of_no_poll(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T12:00")
    operator = await heard(engines)
    operator.apply_plan()
    await operator.look()
    engines.rate = 33.0
    assert not any(await engines.live(4 * MINUTES))
    assert operator.said("MetricsAvailable") == "absent"


# ---- drains ----


async def test_replicas_are_lowered_only_when_the_one_that_leaves_is_idle(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T19:40")
    operator = await heard(engines)
    await operator.look("2026-12-01T20:00")
    (victim,) = set(engines.names) - engines.labelled()
    assert operator.wrote() == ["merge_patch", "apply_status"]
    assert (operator.replicas(), engines.marks(victim)) == (5, {DRAINING_ANNOTATION})
    await engines.live(POLL)
    await operator.look()
    assert operator.replicas() == 5, "busy"
    engines.running = 0.0
    assert all(await engines.live(POLL)), "while one drains every poll counts"
    await operator.look()
    assert operator.replicas() == 5, "idle once"
    await engines.live(POLL)
    operator.wrote()
    await operator.look()
    assert operator.wrote()[:2] == ["merge_patch", "apply_scale"]
    assert (operator.replicas(), engines.marks(victim)) == (4, {DRAINING_ANNOTATION, DELETION_COST_ANNOTATION})


async def draining(make: Callable[[str], Engines]) -> tuple[Engines, SmallOperator]:
    """A plan in its evening fall, one replica outside of the Service."""
    engines = make("2026-12-01T19:40")
    operator = await heard(engines)
    for at in ("2026-12-01T20:00", "2026-12-01T20:00:10"):
        await operator.look(at)
    assert len(engines.labelled()) == 4
    return engines, operator


def suspend(operator: SmallOperator, engines: Engines) -> None:
    operator.apply_plan(**engines.feedback, suspend=True)


def scale_by_hpa(operator: SmallOperator, _: Engines) -> None:
    operator.store.put_autoscaler(autoscaler())


def break_the_schedule(operator: SmallOperator, engines: Engines) -> None:
    operator.apply_plan(**engines.feedback, **scheduled(timeZone="Europe/Berln"))


def delete(operator: SmallOperator, _: Engines) -> None:
    del operator.server.objects[PLAN]


ENDS = [suspend, scale_by_hpa, break_the_schedule, delete]
"""What keeps the operator from lowering replicas for nobody knows how long."""


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_a_drain_that_may_not_end_in_fewer_replicas_ends_in_the_service(
    make: Callable[[str], Engines], end: Callable[[SmallOperator, Engines], None]
) -> None:
    engines, operator = await draining(make)
    operator.wrote()
    end(operator, engines)
    await operator.look("2026-12-01T20:00:20")
    assert engines.labelled() == set(engines.names)
    assert not any(engines.marks(name) for name in engines.names)
    await operator.look("2026-12-01T20:05")
    wrote = operator.wrote()
    assert wrote.count("merge_patch") == 1
    assert set(wrote) <= {"merge_patch", "apply_status"}
    assert operator.replicas() == 5


async def test_a_fall_begins_anew_when_a_suspended_plan_goes_on(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T19:40")
    operator = await heard(engines)
    await operator.look("2026-12-01T20:00")
    suspend(operator, engines)
    await operator.look("2026-12-01T20:00:20")
    operator.apply_plan(**engines.feedback)
    await operator.look("2026-12-01T20:30")
    assert (operator.replicas(), len(engines.labelled())) == (5, 4)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_a_drained_pod_that_may_not_be_patched_back_keeps_nothing_else_from_going_on(
    make: Callable[[str], Engines], end: Callable[[SmallOperator, Engines], None]
) -> None:
    engines, operator = await draining(make)
    end(operator, engines)
    operator.server.refuse("merge_patch", Refused("patch of Pod llm/chat-4 was refused (403): check RBAC"))
    await operator.look("2026-12-01T20:00:20")
    assert len(engines.labelled()) == 4
    if end in (suspend, scale_by_hpa):
        assert operator.said("Ready") == "False ApplyRefused"


async def test_while_a_replica_drains_status_tells_what_comes_after_the_fall(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T19:40")
    operator = await heard(engines)
    shown = []
    for at in ("2026-12-01T20:00", "2026-12-01T20:00:20", "2026-12-01T20:01"):
        await operator.look(at)
        shown.append((len(engines.labelled()), operator.status["nextChange"]["summary"]))
    assert shown == [(4, "5 at Wed 07:48 CET")] * 3


async def test_a_raise_in_the_middle_of_a_drain_brings_the_replica_back(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T19:40")
    operator = await heard(engines)
    await operator.look("2026-12-01T20:00")
    assert len(engines.labelled()) == 4
    operator.wrote()
    launch = {"name": "launch", "start": "2026-12-01T20:00", "end": "2026-12-01T22:00", "replicas": 5}
    operator.apply_plan(**scheduled(overrides=[launch]))
    await operator.look()
    assert engines.labelled() == set(engines.names)
    assert not any(engines.marks(name) for name in engines.names)
    assert operator.wrote() == ["merge_patch", "apply_status"]
    assert operator.replicas() == 5


async def test_an_operator_that_hears_nobody_leaves_the_drain_to_the_pods_grace(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T19:50")
    engines.start(feedback=None)
    operator = engines.operator
    await operator.look("2026-12-01T20:00")
    assert (operator.replicas(), len(engines.labelled())) == (4, 5)
    assert operator.status["nextChange"]["time"] == "2026-12-01T19:02:00Z"


async def test_pods_that_may_not_be_patched_are_a_refusal_and_stay(make: Callable[[str], Engines]) -> None:
    engines = make("2026-12-01T19:50")
    engines.start()
    engines.operator.server.refuse("merge_patch", Refused("patch of Pod llm/chat-4 was refused (403): check RBAC"))
    await engines.operator.look("2026-12-01T20:00")
    assert engines.operator.said("Ready") == "False ApplyRefused"
    assert engines.operator.replicas() == 5
