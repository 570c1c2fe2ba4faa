"""Watch events and relists: which plans are looked at, and what the store holds afterwards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from servingplan.api.references import Kind, Reference
from servingplan.clients.answers import KindNotServed
from servingplan.clients.kubernetes import ObjectList
from servingplan.clients.references import ObjectRef
from servingplan.controller.store import Key, Store
from servingplan.controller.watches import PODS_SETTLE_S, Watches
from servingplan.errors import Refused, Unreachable
from servingplan.rendering.metadata import PLAN_LABEL
from support.live import autoscaler, live_plan, node, pod, workload
from support.specs import config_map, document, scheduled, targeting

NO_KEDA, DENIED = KindNotServed("not served"), Refused("list of Node was refused (403)")
ENGINE, TARGETING, RIVAL = Key("llm", "support-chat"), Key("llm", "targeting"), Key("llm", "rival")


def plan(name: str = "support-chat", *, generation: int = 1, **spec: Any) -> dict[str, Any]:
    return live_plan(document(name, **spec), generation=generation)


class Lists:
    """A server that answers lists: objects by kind; an exception stands for a kind that it does not give."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.asked: list[tuple[str, str, str]] = []
        self.before_last: Callable[[], None] = lambda: None

    async def list(self, api_version: str, kind: str, namespace: str = "", *, label_selector: str = "") -> ObjectList:
        self.asked.append((kind, namespace, label_selector))
        if kind == "Node":
            self.before_last()
        answer = self.answers.get(kind, ())
        if isinstance(answer, Exception):
            raise answer
        return ObjectList(items=tuple(answer), resource_version="9")

    async def resolve(self, api_version: str, kind: str) -> None:
        if isinstance(error := self.answers.get(kind), Exception):
            raise error


class Watching:
    """Watches with a store of its own, and the looks that they asked for."""

    def __init__(self, *plans: dict[str, Any], answers: Mapping[str, Any] | None = None) -> None:
        self.store, self.lists = Store(), Lists(answers)
        self.looks: list[tuple[Key, float]] = []
        self.watches = Watches(
            client=self.lists,  # type: ignore[arg-type]
            store=self.store,
            look=lambda key, after_s: self.looks.append((key, after_s)),
        )
        for each in plans:
            self.store.put_plan(each)

    @property
    def keys(self) -> list[Key]:
        return [key for key, _ in self.looks]


# ---- plans ----


def test_a_plan_is_looked_at_when_it_comes_and_when_its_spec_changes_but_not_for_its_status() -> None:
    seen = Watching()
    for kind, generation in (("ADDED", 1), ("MODIFIED", 1), ("MODIFIED", 2), ("MODIFIED", 2)):
        seen.watches.plan(kind, plan(generation=generation))
    assert seen.looks == [(ENGINE, 0.0), (ENGINE, 0.0)]


def test_a_deleted_plan_is_looked_at_with_those_that_wait_for_its_target() -> None:
    seen = Watching(plan("targeting", **targeting()), plan("rival", **targeting()), plan())
    seen.watches.plan("DELETED", plan("targeting", **targeting()))
    assert seen.keys == [RIVAL, TARGETING]
    assert TARGETING not in seen.store.plans


def test_those_that_wait_are_told_also_when_a_reconcile_was_first_to_see_that_it_is_gone() -> None:
    seen = Watching(plan("rival", **targeting()))
    seen.watches.plan("DELETED", plan("targeting", **targeting()))
    assert seen.keys == [RIVAL, TARGETING]


# ---- everything else ----


def profile(text: str) -> dict[str, Any]:
    return config_map("profile", {"profile.csv": text})


def test_a_config_map_wakes_its_readers_when_its_data_changes_and_when_it_goes() -> None:
    seen = Watching(plan(**scheduled(profile={"configMap": {"name": "profile"}})), plan("targeting", **targeting()))
    for kind, text in (("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "b"), ("DELETED", "b")):
        seen.watches.referred(Kind.CONFIG_MAP, kind, profile(text))
    assert seen.keys == [ENGINE] * 3
    assert seen.store.contents == {}


def test_workloads_and_pods_wake_their_plans_once_a_burst_is_over() -> None:
    labelled = pod()
    labelled["metadata"]["labels"] = {PLAN_LABEL: "support-chat"}
    seen = Watching(plan(), plan("targeting", **targeting()))
    for live in (workload(), labelled, workload("web")):
        seen.watches.workload(live)
    assert seen.looks == [(TARGETING, PODS_SETTLE_S), (ENGINE, PODS_SETTLE_S)]


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_an_autoscaler_wakes_the_plan_of_what_it_scales_when_it_comes_and_when_it_goes(kind: str) -> None:
    seen = Watching(plan("targeting", **targeting()), plan())
    seen.watches.autoscaler("ADDED", autoscaler("any", kind=kind))
    seen.watches.autoscaler("DELETED", autoscaler("any", kind=kind))
    assert seen.keys == [TARGETING, TARGETING]
    assert seen.store.autoscalers == {}


def test_a_node_wakes_all_plans_only_when_its_accelerators_change() -> None:
    seen = Watching(plan(), plan("targeting", **targeting()))
    for kind, live in (
        ("ADDED", node()),
        ("MODIFIED", node()),  # as its kubelet does every few minutes
        ("MODIFIED", node(unschedulable=True)),
        ("DELETED", node(unschedulable=True)),
        ("DELETED", node()),
    ):
        seen.watches.node(kind, live)
    assert seen.looks == [(ENGINE, PODS_SETTLE_S), (TARGETING, PODS_SETTLE_S)] * 3


# ---- relist ----


async def test_a_relist_replaces_what_is_known_and_looks_at_every_plan_those_that_went_too() -> None:
    seen = Watching(plan("gone"), answers={"ServingPlan": [plan()], "Node": [node()], "ScaledObject": [
        autoscaler("any", kind="ScaledObject")
    ]})  # fmt: skip
    await seen.watches.relist(())
    assert seen.keys == [Key("llm", "gone"), ENGINE]
    assert seen.store.plans.keys() == {ENGINE}
    assert seen.store.autoscalers.keys() == {ObjectRef.of(autoscaler("any", kind="ScaledObject"))}
    assert seen.store.nodes.keys() == {"node-1"}


async def test_a_relist_reads_the_watched_namespaces_and_nodes_without_one() -> None:
    seen = Watching()
    await seen.watches.relist(("a", "b"))
    plans = [(namespace, selector) for kind, namespace, selector in seen.lists.asked if kind == "ServingPlan"]
    maps = [(namespace, selector) for kind, namespace, selector in seen.lists.asked if kind == "ConfigMap"]
    assert plans == [("a", ""), ("b", "")]
    assert maps == [("a", "servingplan.dev/config=true"), ("b", "servingplan.dev/config=true")]
    assert ("Node", "", "") in seen.lists.asked


async def test_what_comes_while_lists_are_read_counts_more_than_the_lists() -> None:
    """The lists are one after the other: what they say of a plan may be older than its last event."""
    seen = Watching(plan("leaving"))
    seen.lists.answers = {"ServingPlan": [plan(), plan("leaving")], "ConfigMap": [profile("old")], "Node": [node()]}

    def meanwhile() -> None:
        seen.watches.plan("ADDED", plan("coming"))
        seen.watches.plan("MODIFIED", plan(generation=2))
        seen.watches.plan("DELETED", plan("leaving"))
        seen.watches.referred(Kind.CONFIG_MAP, "MODIFIED", profile("new"))
        seen.watches.node("DELETED", node())

    seen.lists.before_last = meanwhile
    await seen.watches.relist(())
    assert seen.store.plans.keys() == {ENGINE, Key("llm", "coming")}
    assert seen.store.plans[ENGINE]["metadata"]["generation"] == 2
    assert seen.store.contents == {("llm", Reference(Kind.CONFIG_MAP, "profile")): {"profile.csv": "new"}}
    assert seen.store.nodes == {}
    seen.lists.before_last = lambda: None
    await seen.watches.relist(())
    assert seen.store.plans[ENGINE]["metadata"]["generation"] == 1, "what came during one relist is not kept for ever"


async def test_a_relist_that_fails_forgets_nothing() -> None:
    seen = Watching(plan(), answers={"ConfigMap": Unreachable("list of ConfigMap: no route")})
    with pytest.raises(Unreachable):
        await seen.watches.relist(())
    assert seen.store.plans.keys() == {ENGINE}
    assert seen.looks == []


@pytest.mark.parametrize(
    ("answers", "kinds"),
    [
        pytest.param({}, {"nodes", "scaledobjects"}, id="with KEDA"),
        pytest.param({"ScaledObject": NO_KEDA}, {"nodes", "scaledobjects"}, id="KEDA may come"),
        pytest.param({"Node": DENIED}, {"scaledobjects"}, id="with KEDA, some namespaces alone"),
        pytest.param({"Node": DENIED, "ScaledObject": NO_KEDA}, set(), id="KEDA may come and nobody would see it"),
    ],
)
async def test_a_kind_that_may_come_is_watched_where_its_coming_is_seen(
    answers: Mapping[str, Any], kinds: set[str]
) -> None:
    assert await Watching(answers=answers).watches.optional_kinds() == kinds


async def test_kinds_that_are_missing_or_not_ours_to_read_are_done_without(caplog: pytest.LogCaptureFixture) -> None:
    answers = {
        "ServingPlan": [plan()],
        "ScaledObject": NO_KEDA,
        "Node": DENIED,
    }
    seen = Watching(answers=answers)
    with caplog.at_level(logging.WARNING):
        await seen.watches.relist(())
        await seen.watches.relist(())
    assert seen.keys == [ENGINE, ENGINE]
    assert [record.getMessage() for record in caplog.records] == ["Node is not read: list of Node was refused (403)"]
