"""From pods and targets to rises: fingerprints, milestones, and timestamps that are cut to seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from servingplan.clients.references import ObjectRef
from servingplan.controller.clock import AcceleratedClock, SystemClock
from servingplan.controller.pods import replica
from servingplan.controller.rises import fingerprint, track
from servingplan.controller.targets import TargetView
from servingplan.planning.lead import Rises
from servingplan.planning.observation import Draining, Observation, Scale
from servingplan.planning.target import TargetRef
from support.plans import a_plan, an_engine

CREATED = datetime(2026, 12, 1, 7, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def stamp(seconds):
    return (CREATED + seconds * SECOND).isoformat().replace("+00:00", "Z")


def a_pod(name="chat-1", *, started=20, restarts=0, **metadata):
    state = {"running": {"startedAt": stamp(started + 100 * restarts)}}
    last = {"terminated": {"startedAt": stamp(started), "exitCode": 1}} if restarts else {}
    container = {"name": "engine", "state": state, "lastState": last, "restartCount": restarts, "ready": True}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(5)}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(600)}
    return {
        "metadata": {"name": name, "creationTimestamp": stamp(0)} | metadata,
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Running", "conditions": [scheduled, ready], "containerStatuses": [container]},
    }


def test_milestones_are_the_pods_own_timestamps_rounded_up() -> None:
    found = replica(a_pod(), SystemClock()).milestones
    offsets = [(each - CREATED) / SECOND for each in (found.scheduled, found.started, found.ready)]
    assert offsets == [6, 21, 601]


def test_a_container_that_crashed_counts_from_the_start_that_it_still_tells() -> None:
    found = replica(a_pod(restarts=1), SystemClock()).milestones
    assert found.started == CREATED + 21 * SECOND


def test_milestones_that_lie_ahead_are_not_known() -> None:
    pod = a_pod()
    pod["status"]["conditions"][1]["status"] = "False"
    pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
    found = replica(pod, SystemClock()).milestones
    assert (found.scheduled is None, found.started, found.ready) == (False, None, None)


@pytest.mark.parametrize(
    ("annotations", "draining"),
    [
        pytest.param({}, None, id="serves"),
        pytest.param(
            {"servingplan.dev/draining-since": "2026-12-01T20:00:00Z"},
            Draining(since=datetime(2026, 12, 1, 20, tzinfo=UTC), released=False),
            id="drains",
        ),
        pytest.param(
            {
                "servingplan.dev/draining-since": "2026-12-01T20:00:00.5Z",
                "controller.kubernetes.io/pod-deletion-cost": "-2147483648",
            },
            Draining(since=datetime(2026, 12, 1, 20, 0, 0, 500_000, tzinfo=UTC), released=True),
            id="may go",
        ),
        pytest.param({"controller.kubernetes.io/pod-deletion-cost": "-5"}, None, id="a cost of the user's own"),
        pytest.param({"servingplan.dev/draining-since": "yesterday"}, None, id="not our mark"),
        pytest.param({"servingplan.dev/draining-since": "2026-12-01T20:00:00"}, None, id="no instant"),
    ],
)
def test_how_a_pod_drains_stands_on_the_pod(annotations, draining) -> None:
    assert replica(a_pod(annotations=annotations), SystemClock()).draining == draining


def a_view(**spec):
    ref = ObjectRef(api_version="apps/v1", kind="Deployment", name="vllm", namespace="llm")
    return TargetView(ref=ref, live={"spec": spec})


def test_an_engine_is_told_apart_by_what_the_user_states_of_it() -> None:
    view = a_view(template={"spec": {"containers": []}})
    plain = fingerprint(a_plan(), view)
    assert plain == fingerprint(a_plan(), a_view(template={"other": 1}))
    assert plain != fingerprint(a_plan(target=an_engine(max_model_len=8192)), view)


def test_a_target_is_told_apart_by_its_template() -> None:
    plan = a_plan(target=TargetRef(api_version="apps/v1", kind="Deployment", name="vllm"))
    one = a_view(replicas=2, template={"spec": {"containers": [{"image": "a"}]}})
    scaled = a_view(replicas=5, template={"spec": {"containers": [{"image": "a"}]}})
    other = a_view(replicas=2, template={"spec": {"containers": [{"image": "b"}]}})
    assert fingerprint(plan, one) == fingerprint(plan, scaled) != fingerprint(plan, other)
    without = a_view(minReplicas=2)
    assert fingerprint(plan, without) == fingerprint(plan, a_view(minReplicas=3))


def test_a_rise_on_a_demo_clock_counts_in_the_demos_time() -> None:
    clock = AcceleratedClock(start=CREATED, since=CREATED, factor=Fraction(120))
    plan, view = a_plan(), a_view()
    decided = clock.from_real(CREATED + 0.7 * SECOND)  # the pod's timestamp is cut to the second before
    scale = Scale(time=decided, before=0, after=1, because="a test")
    observation = Observation(current=1, replicas=())
    remembered = {"clock": clock, "observation": observation}
    begun = track(Rises(), plan, view, remembered=None, last_scale=scale, written=True, now=decided, **remembered)
    pod = a_pod()
    pod["status"]["conditions"][1]["lastTransitionTime"] = stamp(6)
    later = clock.from_real(CREATED + 8 * SECOND)
    remembered["observation"] = Observation(current=1, replicas=(replica(pod, clock),))
    done = track(begun, plan, view, remembered=scale, last_scale=scale, written=False, now=later, **remembered)
    assert [sample.took for sample in done.samples] == [timedelta(minutes=12, seconds=36)]
    assert done.running == ()
