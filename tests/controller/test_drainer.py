"""The drain, against pods in memory: every state of a fall, every stop, every way back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from servingplan.clients.references import ObjectRef
from servingplan.controller.clock import SystemClock
from servingplan.controller.drain import Drainer, undrained
from servingplan.controller.pods import replicas
from servingplan.controller.targets import TargetView
from servingplan.errors import NotFound
from servingplan.planning.drain import SCRAPE
from servingplan.planning.observation import Observation
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Lasting, NoSignals, Signals
from servingplan.planning.target import TargetRef
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, SERVING_LABEL
from support.plans import a_plan
from support.signals import a_feedback

EVENING = datetime(2026, 12, 1, 19, tzinfo=UTC)
DRAIN_TIMEOUT = timedelta(minutes=5)
QUIET = Lasting(value=0, least=0)
SILENT = NoSignals(reason=Reason.METRICS_UNREACHABLE, message="no answer")


class Stopped(Exception):
    """The operator ends here."""


class Pods:
    """Pods in memory that a ReplicaSet of theirs could own, and the one write on them."""

    def __init__(self, *names):
        self.items = {name: _pod(name) for name in names}
        self.writes = []
        self.left = None

    async def merge_patch(self, ref, body):
        """Merge-patch, until the operator is stopped."""
        self._may_stop()
        if ref.name not in self.items:
            raise NotFound(f"{ref} does not exist")
        self.writes.append(ref.name)
        pod = self.items[ref.name]
        for part in ("labels", "annotations"):
            for key, value in body["metadata"].get(part, {}).items():
                if value is None:
                    pod["metadata"][part].pop(key, None)
                else:
                    pod["metadata"][part][key] = value
        return pod

    def _may_stop(self):
        if self.left is not None:
            if self.left == 0:
                raise Stopped
            self.left -= 1

    def serving(self):
        """What the Service selects."""
        return {name for name, pod in self.items.items() if pod["metadata"]["labels"].get(SERVING_LABEL) == "true"}

    def marks(self, name):
        """The annotations of a pod."""
        return set(self.items[name]["metadata"]["annotations"])

    def scale(self, count):
        """What a ReplicaSet does on a fall: not ready first, then the lowest deletion cost, then the last made."""
        self._may_stop()

        def order(name):
            pod = self.items[name]
            cost = int(pod["metadata"]["annotations"].get(DELETION_COST_ANNOTATION, "0"))
            ready = any(c["type"] == "Ready" for c in pod["status"]["conditions"])
            return (ready, cost, [-ord(letter) for letter in name])

        for name in sorted(self.items, key=order)[: max(0, len(self.items) - count)]:
            del self.items[name]

    def unready(self, name):
        """A pod that fails its readiness probe."""
        self.items[name]["status"]["conditions"] = []


def _pod(name):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-12-01T07:00:00Z"}
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": "2026-12-01T06:48:00Z",
            "labels": {SERVING_LABEL: "true"},
            "annotations": {},
        },
        "spec": {"nodeName": f"on-{name}"},
        "status": {"phase": "Running", "conditions": [ready]},
    }


class Fall:
    """A plan's pods and the drainer, looked at again and again."""

    def __init__(self, *names, plan=None, view=None):
        self.pods = Pods(*names)
        self.current = len(names)
        self.plan = plan or a_plan(feedback=a_feedback())
        self.view = view or a_view()
        self.now = EVENING
        self.drainer = Drainer(client=self.pods)

    async def look(self, desired, in_flight=None, *, after=timedelta(), read_at=None):
        """One reconcile `after` the last one; in_flight None: nobody heard of the engines."""
        self.now += after
        heard = SILENT if in_flight is None else _signals(in_flight, read_at or self.now)
        found = replicas(self.pods.items.values(), SystemClock())
        observation = Observation(current=self.current, replicas=found, heard=heard)
        state = await self.drainer.step(self.plan, self.view, observation, desired=desired, now=self.now)
        if state.may_lower_to < self.current:
            self.pods.scale(state.may_lower_to)
            self.current = state.may_lower_to
        return state

    def restart(self):
        """The operator starts again, with nothing in its memory."""
        self.drainer = Drainer(client=self.pods)


def _signals(in_flight, at):
    return Signals(
        at=at,
        arrivals_2m=None,
        arrivals_10m=None,
        reach=timedelta(),
        dispersion=1,
        rejections=None,
        preemption_share=None,
        waiting=QUIET,
        waiting_most=0,
        in_flight=in_flight,
        in_flight_mean=QUIET,
        ttft=None,
        tpot=None,
        queue=None,
        prompt_mean=None,
        kv_usage=None,
        first_heard={},
    )


def a_view(kind="Deployment", api_version="apps/v1", **spec):
    ref = ObjectRef(api_version=api_version, kind=kind, name="support-chat", namespace="llm")
    return TargetView(ref=ref, live={"spec": spec})


async def test_a_replica_leaves_the_service_is_idle_twice_and_is_then_the_one_that_goes() -> None:
    fall = Fall("a", "b", "c")
    first = await fall.look(2, {"a": 4, "b": 1, "c": 6})
    assert (first.may_lower_to, [each.name for each in first.draining]) == (3, ["b"])
    assert first.wait_until == EVENING + DRAIN_TIMEOUT
    assert (fall.pods.serving(), fall.pods.marks("b")) == ({"a", "c"}, {DRAINING_ANNOTATION})
    busy = await fall.look(2, {"a": 4, "b": 1, "c": 6}, after=SCRAPE)
    assert (busy.may_lower_to, busy.draining[0].in_flight, busy.marks) == (3, 1, ())
    once = await fall.look(2, {"a": 0, "b": 0, "c": 0}, after=SCRAPE)
    assert once.may_lower_to == 3
    twice = await fall.look(2, {"a": 0, "b": 0, "c": 0}, after=SCRAPE)
    assert (twice.may_lower_to, twice.draining, twice.wait_until) == (2, (), None)
    assert set(fall.pods.items) == {"a", "c"}
    assert fall.pods.writes == ["b", "b"]


@pytest.mark.parametrize(
    ("readings", "leaves"),
    [
        pytest.param([(0, 0), (15, 0)], True, id="idle twice"),
        pytest.param([(0, 0), (15, 2), (30, 0)], False, id="busy in between"),
        pytest.param([(0, 0), (7, 0)], False, id="two looks at less than two scrapes"),
        pytest.param([(0, 0), (7, 0), (15, 0)], True, id="looked at more often than it is read"),
        pytest.param([(0, 0), (15, None), (30, 0)], False, id="silent in between"),
        pytest.param([(0, None), (15, None), (30, None)], False, id="never heard"),
    ],
)
async def test_idle_is_two_readings_in_a_row_a_scrape_apart(readings, leaves) -> None:
    fall = Fall("a", "b")
    await fall.look(1, {"a": 5, "b": 0})
    began = fall.now + timedelta(seconds=1)
    for at, busy in readings:
        fall.now = began + timedelta(seconds=at)
        in_flight = None if busy is None else {"a": 5, "b": busy}
        state = await fall.look(1, in_flight)
    assert (state.may_lower_to == 1) is leaves


async def test_a_reading_from_before_the_drain_says_nothing() -> None:
    fall = Fall("a", "b")
    old = EVENING - timedelta(seconds=5)
    await fall.look(1, {"a": 5, "b": 0}, read_at=old)
    await fall.look(1, {"a": 5, "b": 0}, after=timedelta(seconds=5), read_at=old)
    state = await fall.look(1, {"a": 5, "b": 0}, after=timedelta(seconds=10))
    assert state.may_lower_to == 2


@pytest.mark.parametrize("in_flight", [None, {"a": 3}, {"a": 3, "b": 9}], ids=["deaf", "pod is silent", "busy"])
async def test_a_replica_leaves_after_the_drain_timeout_whatever_is_known(in_flight) -> None:
    fall = Fall("a", "b")
    await fall.look(1, in_flight)
    drained = next(iter({"a", "b"} - fall.pods.serving()))
    waiting = await fall.look(1, in_flight, after=DRAIN_TIMEOUT - timedelta(seconds=1))
    assert waiting.may_lower_to == 2
    done = await fall.look(1, in_flight, after=timedelta(seconds=1))
    assert done.may_lower_to == 1
    assert drained not in fall.pods.items


async def test_a_raise_in_the_middle_brings_the_replica_back_first() -> None:
    fall = Fall("a", "b", "c")
    await fall.look(2, {"a": 4, "b": 1, "c": 6})
    state = await fall.look(5, {"a": 4, "b": 1, "c": 6}, after=SCRAPE)
    assert (state.may_lower_to, fall.pods.writes) == (5, ["b", "b"])
    assert (fall.pods.serving(), fall.pods.marks("b")) == ({"a", "b", "c"}, set())


async def test_a_replica_that_was_to_go_at_once_comes_back_without_its_mark() -> None:
    fall = Fall("a", "b")
    await fall.look(1, {"a": 4, "b": 0})
    fall.now += DRAIN_TIMEOUT
    fall.pods.left = 1  # marked, but stopped before /scale: the test's `look` would write it
    observation = Observation(current=2, replicas=replicas(fall.pods.items.values(), SystemClock()))
    done = await fall.drainer.step(fall.plan, fall.view, observation, desired=1, now=fall.now)
    assert (done.may_lower_to, DELETION_COST_ANNOTATION in fall.pods.marks("b")) == (1, True)
    fall.pods.left = None
    await fall.look(2)
    assert (fall.pods.serving(), fall.pods.marks("b")) == ({"a", "b"}, set())


async def test_the_choice_stays_while_loads_change() -> None:
    fall = Fall("a", "b", "c")
    await fall.look(2, {"a": 4, "b": 1, "c": 6})
    await fall.look(2, {"a": 0, "b": 1, "c": 0}, after=SCRAPE)
    assert fall.pods.writes == ["b"]


async def test_of_two_that_leave_none_is_removed_before_the_other() -> None:
    fall = Fall("a", "b", "c", "d")
    await fall.look(2, {"a": 1, "b": 2, "c": 9, "d": 9})
    assert fall.pods.serving() == {"c", "d"}
    for _ in range(2):
        state = await fall.look(2, {"a": 0, "b": 2, "c": 9, "d": 9}, after=SCRAPE)
    assert (state.may_lower_to, [each.name for each in state.draining]) == (4, ["b"])
    for _ in range(2):
        state = await fall.look(2, {"a": 0, "b": 0, "c": 9, "d": 9}, after=SCRAPE)
    assert set(fall.pods.items) == {"c", "d"}
    assert sorted(fall.pods.writes) == ["a", "a", "b", "b"]


async def test_a_replica_that_is_not_ready_leaves_at_once_and_the_drained_one_serves_again() -> None:
    fall = Fall("a", "b", "c")
    await fall.look(2, {"a": 4, "b": 1, "c": 6})
    fall.pods.unready("c")
    state = await fall.look(2, {"a": 4, "b": 1, "c": 6}, after=SCRAPE)
    assert (state.may_lower_to, set(fall.pods.items)) == (2, {"a", "b"})
    assert fall.pods.serving() == {"a", "b"}
    assert fall.pods.marks("b") == set()


async def test_a_pod_that_goes_by_itself_is_no_error() -> None:
    fall = Fall("a", "b", "c")
    observation = Observation(current=3, replicas=replicas(fall.pods.items.values(), SystemClock()))
    del fall.pods.items["a"]
    state = await fall.drainer.step(fall.plan, fall.view, observation, desired=2, now=fall.now)
    assert (state.may_lower_to, fall.pods.writes) == (3, [])


@pytest.mark.parametrize("in_flight", [{"a": 2, "b": 0, "c": 3}, None], ids=["idle", "deaf"])
async def test_a_stop_after_any_write_ends_in_the_same_state_with_the_same_writes(in_flight) -> None:
    for stop_after in range(4):
        fall = Fall("a", "b", "c")
        fall.pods.left = stop_after
        for _ in range(60):
            try:
                await fall.look(2, in_flight, after=SCRAPE)
            except Stopped:
                fall.pods.left = None
                fall.restart()
        victim = ({"a", "b", "c"} - set(fall.pods.items)).pop()
        assert (fall.current, fall.pods.writes) == (2, [victim, victim]), f"stopped after {stop_after}"
        assert fall.pods.serving() == set(fall.pods.items)


async def test_without_a_fall_nothing_is_written() -> None:
    fall = Fall("a", "b")
    for desired in (2, 3):
        state = await fall.look(desired, {"a": 0, "b": 0}, after=SCRAPE)
        assert (state.may_lower_to, state.marks) == (desired, ())
    assert fall.pods.writes == []


async def test_a_named_deployment_drains_within_its_own_grace_period() -> None:
    plan = a_plan(
        feedback=a_feedback(), target=TargetRef(api_version="apps/v1", kind="Deployment", name="support-chat")
    )
    labels = {"app": "chat", SERVING_LABEL: "true"}
    template = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 90}}
    fall = Fall("a", "b", plan=plan, view=a_view(template=template, selector={"matchLabels": {"app": "chat"}}))
    state = await fall.look(1)
    assert state.wait_until == EVENING + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        pytest.param(a_view(kind="StatefulSet"), "which replica of a StatefulSet goes first", id="StatefulSet"),
        pytest.param(
            a_view(kind="LeaderWorkerSet", api_version="leaderworkerset.x-k8s.io/v1"),
            "which replica of a LeaderWorkerSet goes first",
            id="custom resource",
        ),
        pytest.param(a_view(template={}, selector={}), f"have no label {SERVING_LABEL}=true", id="no label"),
        pytest.param(
            a_view(
                template={"metadata": {"labels": {SERVING_LABEL: "true"}}},
                selector={"matchLabels": {SERVING_LABEL: "true"}},
            ),
            "would be replaced at once",
            id="the label is in its selector",
        ),
    ],
)
async def test_what_cannot_drain_is_lowered_at_once_and_says_why(view, words) -> None:
    plan = a_plan(
        feedback=a_feedback(),
        target=TargetRef(api_version=view.ref.api_version, kind=view.ref.kind, name="support-chat"),
    )
    assert words in str(undrained(plan, view))
    fall = Fall("a", "b", plan=plan, view=view)
    state = await fall.look(1, {"a": 5, "b": 5})
    assert (state.may_lower_to, fall.pods.writes) == (1, [])


async def test_a_plan_that_is_gone_is_forgotten() -> None:
    fall = Fall("a", "b")
    await fall.look(1, {"a": 5, "b": 0})
    await fall.look(1, {"a": 5, "b": 0}, after=SCRAPE)
    fall.drainer.forget(fall.plan.key)
    state = await fall.look(1, {"a": 5, "b": 0}, after=SCRAPE)
    assert state.may_lower_to == 2
