"""What is written to an owned engine's objects: only what differs, only what is ours, and never a dropped field."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from servingplan.clients.references import ObjectRef
from servingplan.controller.apply import Applied, Applier
from servingplan.controller.holding import is_ours, name_taken
from servingplan.controller.targets import TargetView, workload_view
from servingplan.planning.ownership import Verdict
from servingplan.planning.reasons import Reason
from servingplan.rendering.metadata import ADOPT_ANNOTATION, INSTALLATION_LABEL, PLAN_LABEL, Owner
from servingplan.rendering.objects import render
from support.api_server import ApiServer
from support.live import owns_replicas, workload
from support.plans import a_plan, an_engine
from support.small_operator import ENGINE, SmallOperator
from support.small_operator import PLAN as PLAN_REF
from support.specs import ENGINE as ENGINE_SPEC
from support.specs import document

PLAN = a_plan()
OWNER = Owner(uid="uid-support-chat", api_version="servingplan.dev/v1alpha1", kind="ServingPlan", name="support-chat")
SERVICE, BUDGET, DEPLOYMENT = render(PLAN, OWNER, "default")

SCALE = owns_replicas("servingplan", subresource="scale")
MAIN = owns_replicas("servingplan", time="2026-12-01T07:00:00Z")


def live(manifest: dict[str, Any], *owners: Any, **metadata: Any) -> dict[str, Any]:
    """A rendered object as the server keeps it, with the owners of its replicas."""
    given = {**manifest["metadata"], "resourceVersion": "7", "managedFields": list(owners), **metadata}
    return {**manifest, "metadata": given, "spec": {**manifest["spec"], "replicas": 5}}


async def applied(server: ApiServer, deployment: dict[str, Any], plan: Any = PLAN) -> Applied:
    view = workload_view(ObjectRef.of(deployment), deployment)
    applier = Applier(client=server, installation="default")  # type: ignore[arg-type]
    return await applier.apply_objects(plan, OWNER, view)


async def test_what_the_cluster_has_already_is_not_sent() -> None:
    there = [live(DEPLOYMENT, SCALE), live(SERVICE), live(BUDGET)]
    server = ApiServer(*there)
    assert await applied(server, there[0]) == Applied(held=False, trouble=None)
    assert server.writes == []


async def test_what_is_missing_or_differs_is_sent() -> None:
    changed = live({**SERVICE, "spec": {**SERVICE["spec"], "ports": []}})
    server = ApiServer(changed)
    await applied(server, live(DEPLOYMENT, SCALE))
    assert server.writes == [("apply forced", "Service", None), ("apply forced", "PodDisruptionBudget", None)]


async def test_an_edited_engine_is_sent() -> None:
    deployment = live(DEPLOYMENT, SCALE)
    server = ApiServer(deployment, live(SERVICE), live(BUDGET))
    edited = a_plan(target=an_engine(max_model_len=4096))
    await applied(server, deployment, edited)
    assert server.writes == [("apply forced", "Deployment", None)]


MAIN_ENTRY = {
    "the only owner: replicas would fall to one": ((MAIN,), []),
    "beside our scale: it is dropped": ((MAIN, SCALE), [("apply forced", "Deployment", None)]),
    "gone already": ((SCALE,), []),
}


@pytest.mark.parametrize(("owners", "writes"), MAIN_ENTRY.values(), ids=MAIN_ENTRY)
async def test_the_replicas_of_the_creation_are_dropped_only_when_scale_has_them(owners: Any, writes: Any) -> None:
    deployment = live(DEPLOYMENT, *owners)
    server = ApiServer(deployment, live(SERVICE), live(BUDGET))
    await applied(server, deployment)
    assert server.writes == writes


@pytest.mark.parametrize("manifest", [SERVICE, BUDGET], ids=lambda manifest: manifest["kind"])
async def test_what_somebody_else_has_under_our_name_is_left_alone_and_the_rest_is_written(manifest: Any) -> None:
    spec = {**manifest["spec"], "selector": {"app": "web"}}
    strangers = {**manifest, "spec": spec, "metadata": {"name": PLAN.name, "namespace": PLAN.namespace}}
    server = ApiServer(strangers)
    outcome = await applied(server, live(DEPLOYMENT, SCALE))
    assert outcome.trouble is not None
    assert outcome.trouble.reason is Reason.NAME_TAKEN
    assert f"{manifest['kind']} llm/support-chat exists and is not this plan's" in outcome.trouble.message
    (other,) = {"Service", "PodDisruptionBudget"} - {manifest["kind"]}
    assert server.writes == [("apply forced", other, None)]


# ---- what is looked at ----


def looked_at(operator: SmallOperator) -> list[str]:
    """The kinds that were read since this was asked last."""
    reads, operator.server.reads = [read.split()[1] for read in operator.server.reads], []
    return reads


async def an_engine_in_order() -> SmallOperator:
    operator = SmallOperator("2026-12-01T12:00")
    operator.server.put(document())
    await operator.look()
    operator.server.make_ready(ENGINE)
    await operator.look()
    operator.wrote()
    looked_at(operator)
    return operator


async def test_what_nobody_else_changes_is_looked_at_once_a_relist() -> None:
    operator = await an_engine_in_order()
    await operator.look()
    assert looked_at(operator) == ["ServingPlan", "Deployment", "Pod"]
    operator.applier.verify_anew()
    await operator.look()
    assert looked_at(operator) == ["ServingPlan", "Deployment", "Pod", "Service", "PodDisruptionBudget"]


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "edited"])
@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget"])
async def test_what_somebody_else_did_to_it_is_mended_with_the_next_relist(kind: str, gone: bool) -> None:
    operator = await an_engine_in_order()
    (ref,) = [ref for ref in operator.server.objects if ref.kind == kind]
    rendered = deepcopy(operator.server.objects[ref]["spec"])
    if gone:
        del operator.server.objects[ref]
    else:
        operator.server.put({**operator.server.objects[ref], "spec": {"selector": rendered["selector"]}})
    operator.applier.verify_anew()
    await operator.look()
    assert operator.wrote() == ["apply"]
    assert operator.server.objects[ref]["spec"] == rendered


async def test_what_the_plan_renders_anew_is_applied_at_once() -> None:
    operator = await an_engine_in_order()
    operator.server.put(document(engine={**ENGINE_SPEC, "port": 9000}))
    await operator.look()
    service = next(live for ref, live in operator.server.objects.items() if ref.kind == "Service")
    assert service["spec"]["ports"][0]["port"] == 9000


async def test_a_plan_that_comes_again_is_looked_at_wholly() -> None:
    operator = await an_engine_in_order()
    plan = operator.server.objects.pop(PLAN_REF)
    await operator.look()
    operator.server.put(plan)
    looked_at(operator)
    await operator.look()
    assert looked_at(operator)[-2:] == ["Service", "PodDisruptionBudget"]


async def test_what_somebody_else_has_is_looked_at_every_time() -> None:
    """It may go, or be given to the plan, at any time."""
    operator = SmallOperator("2026-12-01T12:00")
    operator.server.put(
        {**SERVICE, "spec": {"selector": {"app": "web"}}, "metadata": {"name": PLAN.name, "namespace": PLAN.namespace}}
    )
    operator.server.put(document())
    await operator.look()
    looked_at(operator)
    await operator.look()
    assert looked_at(operator)[-1:] == ["Service"]


@pytest.mark.parametrize(("write", "force", "verb"), [(4, False, "apply_scale"), (4, True, "apply_scale forced")])
async def test_replicas_are_written_as_the_verdict_says_and_looked_at_again(write: int, force: bool, verb: str) -> None:
    deployment = workload(replicas=5, owners=[SCALE])
    server = ApiServer(deployment)
    verdict = Verdict(write=write, force=force, contest=None, again_at=None)
    applier = Applier(client=server, installation="default")  # type: ignore[arg-type]
    seen: TargetView = await applier.write_replicas(workload_view(ObjectRef.of(deployment), deployment), verdict)
    assert server.writes == [(verb, "Deployment", 4)]
    assert seen.current == 4
    assert seen.resource_version == server.objects[seen.ref]["metadata"]["resourceVersion"] != "7"


# ---- whose object it is ----

OUR_LABELS = {PLAN_LABEL: "support-chat", INSTALLATION_LABEL: "default"}
CONTROLLER = {"uid": "uid-support-chat", "controller": True}
SELECTOR = {"matchLabels": {PLAN_LABEL: "support-chat"}}

HELD = {
    "ours": ({"labels": OUR_LABELS, "ownerReferences": [CONTROLLER]}, SELECTOR, True),
    "retained: labels alone": ({"labels": OUR_LABELS}, SELECTOR, True),
    "without labels": ({}, SELECTOR, False),
    "another plan's": ({"labels": OUR_LABELS | {PLAN_LABEL: "other"}}, SELECTOR, False),
    "another installation's": ({"labels": OUR_LABELS | {INSTALLATION_LABEL: "blue"}}, SELECTOR, False),
    "labelled like ours, controlled by another": (
        {"labels": OUR_LABELS, "ownerReferences": [CONTROLLER | {"uid": "uid-of-an-earlier-plan"}]}, SELECTOR, False,
    ),
    "labelled like ours, owned by another that does not control it": (
        {"labels": OUR_LABELS, "ownerReferences": [{"uid": "uid-of-an-application"}]}, SELECTOR, True,
    ),
    "given to us": ({"annotations": {ADOPT_ANNOTATION: "support-chat"}}, SELECTOR, True),
    "given to us with another selector": (
        {"annotations": {ADOPT_ANNOTATION: "support-chat"}}, {"matchLabels": {"app": "vllm"}}, False,
    ),
    "given to us, selecting more narrowly": (
        {"annotations": {ADOPT_ANNOTATION: "support-chat"}},
        {"matchLabels": {PLAN_LABEL: "support-chat", "app": "vllm"}},
        False,
    ),
    "given to another plan": ({"annotations": {ADOPT_ANNOTATION: "other"}}, SELECTOR, False),
    "given to us, controlled by another": (
        {"annotations": {ADOPT_ANNOTATION: "support-chat"}, "ownerReferences": [{"uid": "x", "controller": True}]},
        SELECTOR,
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "selector", "ours"), HELD.values(), ids=HELD)
def test_an_object_is_ours(metadata: dict[str, Any], selector: dict[str, Any], ours: bool) -> None:
    found = {"metadata": metadata, "spec": {"selector": selector}}
    asked = {"plan": "support-chat", "uid": "uid-support-chat", "installation": "default", "selector": SELECTOR}
    assert is_ours(found, **asked) is ours


def test_a_taken_name_says_what_to_do() -> None:
    ref = ObjectRef(api_version="v1", kind="Service", name="chat", namespace="llm")
    trouble = name_taken(ref, plan="chat", selector={"b": "2", "a": "1"})
    assert trouble.message == (
        "Service llm/chat exists and is not this plan's, so it is not touched. Rename the plan, delete the Service, "
        "or annotate it with servingplan.dev/adopt-by=chat if its selector is a=1,b=2"
    )
