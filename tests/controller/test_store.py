"""What the watches have seen: which plans an object concerns, who holds a target, who scales it, which nodes count."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.api.references import Kind, Reference
from servingplan.clients.references import ObjectRef
from servingplan.controller.store import Key, Node, Store, target_of
from servingplan.rendering.metadata import PLAN_LABEL
from support.live import autoscaler, live_plan, node, pod, workload
from support.specs import config_map, document, scheduled, targeting

ENGINE = Key("llm", "support-chat")
TARGETING = Key("llm", "targeting")
FLOOR = Key("llm", "floor")


def a_store(*plans: dict[str, Any]) -> Store:
    store = Store()
    for plan in plans:
        store.put_plan(plan)
    return store


def engine_plan(name: str = "support-chat", **live: Any) -> dict[str, Any]:
    return live_plan(document(name), **live)


def target_plan(name: str = "targeting", target: str = "vllm", **live: Any) -> dict[str, Any]:
    return live_plan(document(name, **targeting(name=target)), **live)


def floor_plan(name: str = "floor", kind: str = "HorizontalPodAutoscaler", version: str = "autoscaling/v2") -> Any:
    return live_plan(document(name, **targeting(kind, version, "vllm")))


def elsewhere(live: dict[str, Any]) -> dict[str, Any]:
    return {**live, "metadata": {**live["metadata"], "namespace": "other"}}


CONCERNED = {
    "the Deployment of an engine, whatever its labels": (workload("support-chat"), {ENGINE}),
    "a labelled pod": ({**pod(), "metadata": {**pod()["metadata"], "labels": {PLAN_LABEL: "support-chat"}}}, {ENGINE}),
    "a pod without our label": (pod(), set()),
    "a pod that has the name of an engine": (pod("support-chat"), set()),
    "a pod labelled for a plan that is gone": (
        {**pod(), "metadata": {**pod()["metadata"], "labels": {PLAN_LABEL: "gone"}}}, set(),
    ),
    "a named target, and what a floor's autoscaler scales": (workload("vllm"), {TARGETING, FLOOR}),
    "another kind of that name": (workload("vllm", kind="StatefulSet"), set()),
    "the same name in another namespace": (elsewhere(workload("vllm")), set()),
    "an unknown workload": (workload("web"), set()),
    "a workload that is labelled for a plan": (workload("web", labels={PLAN_LABEL: "targeting"}), {TARGETING}),
}  # fmt: skip


@pytest.mark.parametrize(("live", "keys"), CONCERNED.values(), ids=CONCERNED)
def test_an_object_concerns_plans(live: dict[str, Any], keys: set[Key]) -> None:
    store = a_store(engine_plan(), target_plan(), floor_plan())
    store.put_autoscaler(autoscaler())
    assert store.concerned(live) == keys


def test_an_autoscaler_concerns_the_plan_that_names_it_and_the_plan_of_what_it_scales() -> None:
    store = a_store(engine_plan(), target_plan(), floor_plan())
    assert store.put_autoscaler(autoscaler()) == {TARGETING, FLOOR}
    assert store.drop_autoscaler(ObjectRef.of(autoscaler())) == {TARGETING, FLOOR}
    assert store.concerned(workload("vllm")) == {TARGETING}


def test_an_autoscaler_that_was_turned_to_another_workload_concerns_the_old_one_too() -> None:
    store = a_store(engine_plan(), target_plan())
    store.put_autoscaler(autoscaler("scaler"))
    turned = autoscaler("scaler", target={"apiVersion": "apps/v1", "kind": "Deployment", "name": "support-chat"})
    assert store.put_autoscaler(turned) == {ENGINE, TARGETING}
    assert store.autoscaler_of(target_of(target_plan())) is None
    assert store.concerned(workload("vllm")) == {TARGETING}


def test_a_plan_that_names_an_older_version_of_the_api_is_concerned_likewise() -> None:
    store = a_store(floor_plan(version="autoscaling/v1"))
    assert store.put_autoscaler(autoscaler()) == {FLOOR}


def test_a_plan_that_is_dropped_or_replaced_is_looked_up_no_more() -> None:
    store = a_store(target_plan())
    store.put_plan(target_plan(target="other"))
    assert (store.concerned(workload("vllm")), store.concerned(workload("other"))) == (set(), {TARGETING})
    store.drop_plan(TARGETING)
    store.drop_plan(TARGETING)
    assert store.concerned(workload("other")) == set()


# ---- who holds a target ----

OLD, NEW = "2026-11-01T08:00:00Z", "2026-11-30T08:00:00Z"

HOLDERS = {
    "alone": ([target_plan("a")], "a"),
    "the older of two": ([target_plan("a", created=NEW), target_plan("b", created=OLD)], "b"),
    "of the same age, by UID": ([target_plan("a", uid="2"), target_plan("b", uid="1")], "b"),
    "an older engine": ([target_plan("a", "b", created=NEW), engine_plan("b", created=OLD)], "b"),
    "a target named before the engine": ([target_plan("b", "a", created=OLD), engine_plan("a", created=NEW)], "b"),
    "an older plan of another target": ([target_plan("a", created=NEW), target_plan("b", "web", created=OLD)], "a"),
    "an older plan in another namespace": (
        [target_plan("a", created=NEW), elsewhere(target_plan("b", created=OLD))], "a",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("plans", "holder"), HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("turn", [1, -1], ids=["in order", "in reverse"])
def test_the_oldest_plan_holds_a_target(plans: list[dict[str, Any]], holder: str, turn: int) -> None:
    assert a_store(*plans[::turn]).holder(Key("llm", "a")) == Key("llm", holder)


def test_a_plan_that_was_deleted_meanwhile_holds_its_own_target() -> None:
    assert a_store(target_plan("b")).holder(Key("llm", "a")) == Key("llm", "a")


# ---- who scales it ----


def test_a_scaled_object_is_named_rather_than_the_autoscaler_that_it_made() -> None:
    store = a_store()
    store.put_autoscaler(autoscaler("keda-hpa-vllm", owner="vllm"))
    made = store.autoscaler_of(target_of(target_plan()))
    assert made is not None
    assert (made.ref.name, made.owner) == ("keda-hpa-vllm", "vllm")
    store.put_autoscaler(autoscaler("z", kind="ScaledObject"))
    found = store.autoscaler_of(target_of(target_plan()))
    assert found is not None
    assert (found.ref.kind, found.ref.name) == ("ScaledObject", "z")


def test_a_scaled_object_that_names_no_kind_scales_a_deployment() -> None:
    store = a_store()
    store.put_autoscaler(autoscaler(kind="ScaledObject", target={"name": "vllm"}))
    assert store.autoscaler_of(target_of(target_plan())) is not None
    stateful = live_plan(document(**targeting("StatefulSet", name="vllm")))
    assert store.autoscaler_of(target_of(stateful)) is None


# ---- ConfigMaps ----


def test_a_config_map_concerns_its_readers_once_per_change() -> None:
    profile = {"configMap": {"name": "profile"}}
    store = a_store(live_plan(document(**scheduled(profile=profile))), target_plan())
    assert store.put_content(Kind.CONFIG_MAP, config_map("profile", {"profile.csv": "a"})) == {ENGINE}
    assert store.put_content(Kind.CONFIG_MAP, config_map("profile", {"profile.csv": "a"})) == set()
    assert store.put_content(Kind.CONFIG_MAP, config_map("profile", {"profile.csv": "b"})) == {ENGINE}
    assert store.put_content(Kind.CONFIG_MAP, config_map("other", {})) == set()
    assert store.drop_content(Kind.CONFIG_MAP, config_map("profile", {})) == {ENGINE}
    assert store.contents == {("llm", Reference(Kind.CONFIG_MAP, "other")): {}}


# ---- nodes ----

GPUS = {"nvidia.com/gpu": 8}

NODES = {
    "ready": (node(), Node(allocatable=GPUS, elastic=False)),
    "cordoned": (node(unschedulable=True), Node(allocatable={}, elastic=False)),
    "not ready": (node(ready="False"), Node(allocatable={}, elastic=False, ready=False)),
    "out of reach": (node(ready="Unknown"), Node(allocatable={}, elastic=False, ready=False)),
    "made by Karpenter": (node(labels={"karpenter.sh/nodepool": "gpu"}), Node(allocatable=GPUS, elastic=True)),
    "of a node group that grows": (
        node(labels={"eks.amazonaws.com/nodegroup": "gpu"}), Node(allocatable=GPUS, elastic=True),
    ),
    "kept by the cluster autoscaler": (
        node(annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}),
        Node(allocatable=GPUS, elastic=True),
    ),
    "with an amount that is no number": (node(gpus="8k"), Node(allocatable={}, elastic=False)),
}  # fmt: skip


@pytest.mark.parametrize(("live", "expected"), NODES.values(), ids=NODES)
def test_a_node_counts_by_what_it_can_take(live: dict[str, Any], expected: Node) -> None:
    store = a_store()
    assert store.put_node(live) is True
    assert store.nodes["node-1"] == expected
    assert store.put_node(live) is False


def test_complete_lists_replace_everything() -> None:
    store = a_store(engine_plan(), target_plan())
    store.put_autoscaler(autoscaler())
    store.put_node(node())
    store.put_content(Kind.CONFIG_MAP, config_map("profile", {}))
    store.replace([target_plan(target="web")], {}, [], [])
    assert store.plans.keys() == {TARGETING}
    assert (store.contents, store.autoscalers, store.nodes) == ({}, {}, {})
    assert store.autoscaler_of(target_of(target_plan())) is None
    assert (store.concerned(workload("vllm")), store.concerned(workload("web"))) == (set(), {TARGETING})
