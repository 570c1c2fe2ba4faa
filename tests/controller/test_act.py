"""From a decision to writes: their order, what is remembered of them, and what a stop in between leaves to be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from servingplan.clients.references import ObjectRef
from servingplan.controller.act import Actor, Outcome
from servingplan.controller.apply import Applier
from servingplan.controller.drain import Drainer
from servingplan.controller.targets import TargetView, kind_of, workload_view
from servingplan.errors import Conflict, Refused
from servingplan.planning.decision import decide
from servingplan.planning.observation import History, Observation, Scale
from servingplan.planning.ownership import CONTEST_ENDS_AFTER, Contest
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.target import TargetRef
from support.api_server import ApiServer
from support.live import StillClock, autoscaler, live_plan, owns_replicas, workload
from support.plans import a_plan, an_engine
from support.specs import document

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
"""Tuesday, 10:00 in Berlin: five replicas are asked for."""
MINUTE = timedelta(minutes=1)
LATELY = "2026-12-01T08:59:00Z"

OURS = owns_replicas("servingplan", subresource="scale")
KUBECTL = owns_replicas("kubectl", subresource="scale", operation="Update")
GITOPS = owns_replicas("gitops", time=LATELY)

DEPLOYMENT = ObjectRef(api_version="apps/v1", kind="Deployment", name="vllm", namespace="llm")
HPA = ObjectRef(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="vllm", namespace="llm")
MINIMUM = ("f:spec", "f:minReplicas")


def scaled(after: int, *, before: int = 2, minutes: float = -60) -> Scale:
    return Scale(time=NOW + minutes * MINUTE, before=before, after=after, because="window working-day")


def a_contest(**changes: Any) -> Contest:
    return replace(Contest(manager="kubectl", since=NOW - MINUTE, last_write=NOW - MINUTE, value=8), **changes)


def an_actor(server: ApiServer) -> Actor:
    applier = Applier(client=server, installation="default")  # type: ignore[arg-type]
    drainer = Drainer(client=server)  # type: ignore[arg-type]
    return Actor(applier=applier, drainer=drainer, clock=StillClock(), field_manager=server.field_manager)


def targeting(ref: ObjectRef = DEPLOYMENT) -> Plan:
    return a_plan(name="targeting", target=TargetRef(api_version=ref.api_version, kind=ref.kind, name=ref.name))


def a_minimum(minimum: int, *owners: Any, maximum: int = 8) -> dict[str, Any]:
    live = autoscaler(minReplicas=minimum, maxReplicas=maximum)
    live["metadata"]["managedFields"] = list(owners)
    return live


async def view_of(server: ApiServer, ref: ObjectRef) -> TargetView:
    return await kind_of(ref).read(server, ref)  # type: ignore[arg-type]


async def acted(
    server: ApiServer,
    *,
    plan: Plan | None = None,
    ref: ObjectRef = DEPLOYMENT,
    last_scale: Scale | None = None,
    contest: Contest | None = None,
) -> Outcome:
    """Look, decide and act once, as a reconcile does."""
    plan, actor = plan or targeting(ref), an_actor(server)
    view = await view_of(server, ref)
    last_scale = actor.last_scale(view, last_scale, contest, NOW)
    observation = Observation(current=view.current, ready=view.ready or 0, maximum=view.maximum)
    decision = decide(plan, observation, History(last_scale=last_scale), NOW)
    found = Outcome(observation=observation, last_scale=last_scale, contest=contest)
    return await actor.act(plan, live_plan(document(plan.name)), view, found, decision, now=NOW)


# ---- what was scaled last ----

REMEMBERED: dict[str, tuple[int, Sequence[Any], Scale | None, Contest | None, Scale | None]] = {
    "as remembered": (5, [OURS], scaled(5), None, scaled(5)),
    "nothing remembered and nothing ours": (5, [KUBECTL], None, None, None),
    "ours, and a stop kept it from being written down": (
        4, [OURS], scaled(5), None, Scale(time=NOW, before=5, after=4, because="window working-day"),
    ),
    "ours, and no status was ever written": (
        5, [OURS], None, None, Scale(time=NOW, before=5, after=5, because="taken over"),
    ),
    "somebody else's value": (1, [KUBECTL], scaled(5), None, scaled(5)),
    "somebody else's value that is ours too": (8, [OURS, GITOPS], scaled(5), None, scaled(5)),
    "a contested value, ours alone since its writer dropped it": (8, [OURS], scaled(5), a_contest(), scaled(5)),
    "a value that nobody owns": (0, [], scaled(5), None, scaled(5)),
    "what was done to an object that is gone": (2, [KUBECTL], scaled(5, minutes=-1440), None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", REMEMBERED.values(), ids=REMEMBERED)
def test_the_last_scale_of_ours_is_remembered_or_found_again(case: Any) -> None:
    current, owners, known, contest, expected = case
    view = workload_view(DEPLOYMENT, workload(replicas=current, owners=owners))
    assert an_actor(ApiServer()).last_scale(view, known, contest, NOW) == expected


def test_nothing_was_scaled_of_what_does_not_exist() -> None:
    assert an_actor(ApiServer()).last_scale(TargetView(ref=DEPLOYMENT, live=None), scaled(5), None, NOW) is None


async def test_our_own_patch_of_a_minimum_is_found_again_after_a_stop() -> None:
    """It stands on the object itself: an autoscaler has no ``/scale``."""
    server = ApiServer(a_minimum(4, owns_replicas("servingplan", time=LATELY, path=MINIMUM)), workload())
    found = an_actor(server).last_scale(await view_of(server, HPA), scaled(5), None, NOW)
    assert found == Scale(time=NOW, before=5, after=4, because="window working-day")
    outcome = await acted(server, ref=HPA, last_scale=scaled(5))
    assert (outcome.contest, server.writes) == (
        None,
        [("merge_patch", "HorizontalPodAutoscaler", {"spec": {"minReplicas": 5}})],
    )


# ---- a target ----


async def test_a_rise_is_one_write_and_is_remembered() -> None:
    server = ApiServer(workload(replicas=2, owners=[OURS]))
    outcome = await acted(server, last_scale=scaled(2, before=5))
    assert server.writes == [("apply_scale", "Deployment", 5)]
    assert outcome.scaled == outcome.last_scale == Scale(time=NOW, before=2, after=5, because="window working-day")
    assert (outcome.observation.current, outcome.contest) == (5, None)


async def test_what_is_as_asked_gets_no_write_and_keeps_its_memory() -> None:
    server = ApiServer(workload(replicas=5, owners=[OURS]))
    outcome = await acted(server, last_scale=scaled(5))
    assert (server.writes, outcome.scaled, outcome.last_scale) == ([], None, scaled(5))


async def test_a_value_that_is_there_already_is_taken_over_and_that_is_no_scale() -> None:
    server = ApiServer(workload(replicas=5, owners=[GITOPS]))
    outcome = await acted(server)
    assert server.writes == [("apply_scale", "Deployment", 5)]
    assert outcome.scaled is None
    assert outcome.last_scale == Scale(time=NOW, before=5, after=5, because="taken over")


async def test_a_raise_against_a_second_writer_is_forced_and_counted() -> None:
    server = ApiServer(workload(replicas=1, owners=[KUBECTL]))
    outcome = await acted(server, last_scale=scaled(5))
    assert server.writes == [("apply_scale forced", "Deployment", 5)]
    assert outcome.contest is not None
    assert (outcome.contest.manager, outcome.contest.raises) == ("kubectl", 1)
    assert outcome.again_at == NOW + CONTEST_ENDS_AFTER
    assert outcome.scaled is not None
    assert (outcome.scaled.before, outcome.scaled.after) == (1, 5)


async def test_a_value_above_ours_is_owned_with_its_writer_and_that_is_no_scale_of_ours() -> None:
    server = ApiServer(workload(replicas=8, owners=[GITOPS]))
    outcome = await acted(server, last_scale=scaled(5))
    assert server.writes == [("apply_scale", "Deployment", 8)]
    assert (outcome.scaled, outcome.last_scale) == (None, scaled(5))
    assert outcome.contest is not None


async def test_a_contest_that_a_stop_kept_from_being_written_down_is_found_again() -> None:
    """We own the other's value too by now: that must not make it ours to lower."""
    server = ApiServer(workload(replicas=8, owners=[GITOPS, OURS]))
    outcome = await acted(server, last_scale=scaled(5))
    assert server.writes == []
    assert outcome.contest is not None
    assert outcome.contest.manager == "gitops"


async def test_an_ended_contest_is_remembered_as_such_so_that_it_does_not_begin_again() -> None:
    server = ApiServer(workload(replicas=5, owners=[OURS, owns_replicas("gitops", time="2026-12-01T08:40:00Z")]))
    old = NOW - 20 * MINUTE
    outcome = await acted(server, last_scale=scaled(5), contest=a_contest(since=old, last_write=old))
    assert (server.writes, outcome.contest, outcome.scaled) == ([], None, None)
    expected = Scale(time=NOW, before=5, after=5, because="nobody else writes replicas any more")
    assert outcome.last_scale == expected


# ---- kinds that are patched ----


async def test_a_minimum_that_is_as_asked_gets_no_patch_although_it_is_not_ours() -> None:
    server = ApiServer(a_minimum(5, owns_replicas("kubectl", time=LATELY, path=MINIMUM)), workload())
    outcome = await acted(server, ref=HPA)
    assert (server.writes, outcome.contest) == ([], None)
    again = await acted(server, ref=HPA, last_scale=outcome.last_scale)
    assert (server.writes, again.contest) == ([], None)


async def test_a_minimum_goes_no_higher_than_the_autoscaler_s_own_maximum() -> None:
    server = ApiServer(a_minimum(2, maximum=3), workload())
    await acted(server, ref=HPA)
    assert server.writes == [("merge_patch", "HorizontalPodAutoscaler", {"spec": {"minReplicas": 3}})]


async def test_a_minimum_that_somebody_lowered_is_raised_again_and_that_is_a_contest() -> None:
    server = ApiServer(a_minimum(1, owns_replicas("kubectl-edit", time=LATELY, path=MINIMUM)), workload())
    outcome = await acted(server, ref=HPA, last_scale=scaled(5))
    assert server.writes == [("merge_patch", "HorizontalPodAutoscaler", {"spec": {"minReplicas": 5}})]
    assert outcome.contest is not None
    assert outcome.contest.manager == "kubectl-edit"


# ---- an engine ----

ENGINE = ObjectRef(api_version="apps/v1", kind="Deployment", name="support-chat", namespace="llm")


async def test_an_engine_is_created_with_its_replicas_which_scale_takes_before_the_apply_drops_them() -> None:
    server = ApiServer()
    outcome = await acted(server, plan=a_plan(), ref=ENGINE)
    assert server.writes == [
        ("apply", "Deployment", 5),
        ("apply_scale", "Deployment", 5),
        ("apply forced", "Deployment", None),
        ("apply forced", "Service", None),
        ("apply forced", "PodDisruptionBudget", None),
    ]
    assert outcome.scaled == Scale(time=NOW, before=0, after=5, because="window working-day")
    assert outcome.contest is None


async def test_an_engine_that_somebody_deleted_is_created_again_without_a_contest() -> None:
    """What it was scaled to last is not what it is created with: that was another object."""
    outcome = await acted(ApiServer(), plan=a_plan(), ref=ENGINE, last_scale=scaled(2, before=5))
    assert outcome.contest is None
    assert outcome.last_scale == Scale(time=NOW, before=0, after=5, because="window working-day")


async def test_an_engine_as_it_should_be_costs_no_write() -> None:
    server = ApiServer()
    first = await acted(server, plan=a_plan(), ref=ENGINE)
    server.writes.clear()
    again = await acted(server, plan=a_plan(), ref=ENGINE, last_scale=first.last_scale)
    assert (server.writes, again.scaled, again.refused) == ([], None, None)


async def test_a_refusal_is_reported_with_what_was_done_before_it() -> None:
    server = ApiServer(workload(replicas=2, owners=[OURS]))
    refusal = Refused("scale to 5 of Deployment llm/vllm was refused (403): exceeded quota")
    server.refuse("apply_scale", refusal)
    outcome = await acted(server, last_scale=scaled(2))
    assert outcome.refused is not None
    assert (outcome.refused.reason, outcome.refused.message) == (Reason.APPLY_REFUSED, str(refusal))
    assert (outcome.scaled, outcome.last_scale) == (None, scaled(2))


async def test_a_conflict_goes_up_so_that_everything_is_looked_at_again() -> None:
    server = ApiServer(workload(replicas=2, owners=[OURS]))
    server.refuse("apply_scale", Conflict("it changed in between"))
    with pytest.raises(Conflict):
        await acted(server, last_scale=scaled(2))


# ---- what was written is told, whatever comes after ----

EDITED = a_plan(target=an_engine(max_model_len=4096))


async def an_engine_with(replicas: int, *owners: dict[str, Any]) -> ApiServer:
    """An engine as it should be, but for its replicas and who owns them."""
    server = ApiServer()
    await acted(server, plan=a_plan(), ref=ENGINE)
    live = server.objects[ENGINE]
    spec = {**live["spec"], "replicas": replicas}
    server.objects[ENGINE] = {**live, "spec": spec, "metadata": {**live["metadata"], "managedFields": list(owners)}}
    server.writes.clear()
    return server


CONFLICTS = {
    "none": (0, False, True),
    "one, as the Deployment's controller makes": (1, False, True),
    "no end of them": (9, True, False),
}


@pytest.mark.parametrize(("conflicts", "unfinished", "applied"), CONFLICTS.values(), ids=CONFLICTS)
async def test_a_conflict_after_the_replicas_loses_neither_the_change_nor_the_contest(
    conflicts: int, unfinished: bool, applied: bool
) -> None:
    server = await an_engine_with(2, KUBECTL)
    server.refuse("apply", *(Conflict("it changed in between") for _ in range(conflicts)))
    outcome = await acted(server, plan=EDITED, ref=ENGINE, last_scale=scaled(5))
    assert outcome.scaled == Scale(time=NOW, before=2, after=5, because="window working-day")
    assert outcome.contest is not None
    assert outcome.contest.manager == "kubectl"
    assert outcome.unfinished is unfinished
    assert server.writes[0] == ("apply_scale forced", "Deployment", 5)
    assert (("apply forced", "Deployment", None) in server.writes) is applied


async def test_a_conflict_before_anything_is_written_ends_the_reconcile() -> None:
    server = await an_engine_with(5, OURS)
    server.refuse("apply", Conflict("it changed in between"))
    with pytest.raises(Conflict):
        await acted(server, plan=EDITED, ref=ENGINE, last_scale=scaled(5))
