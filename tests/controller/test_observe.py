"""What one reconcile sees: the target and its pods, whose it is, who scales it too, and which GPUs there are."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.api.references import Kind, Reference
from servingplan.api.resolve import resolve
from servingplan.clients.answers import KindNotServed
from servingplan.clients.references import ObjectRef
from servingplan.controller.observe import Observer, Seen
from servingplan.controller.store import Key, Store, target_of
from servingplan.planning.observation import Stage
from servingplan.planning.reasons import Reason
from servingplan.rendering.metadata import ADOPT_ANNOTATION, INSTALLATION_LABEL, PLAN_LABEL
from servingplan.rendering.situation import Accelerators
from support.api_server import ApiServer
from support.live import StillClock, autoscaler, live_plan, node, pod, ready_pod, workload
from support.specs import ENGINE, config_map, config_maps, document, targeting

GPU = [{"nvidia.com/gpu": "2"}]


class Looking:
    """An observer of one plan, with the server and the store that it looks at."""

    def __init__(self, document: dict[str, Any], *objects: dict[str, Any], pods: list[Any] | None = None) -> None:
        self.document = live_plan(document)
        self.key = Key(document["metadata"]["namespace"], document["metadata"]["name"])
        self.server, self.store = ApiServer(*objects, *(pods or [])), Store()
        self.store.put_plan(self.document)
        self.observer = Observer(
            client=self.server,  # type: ignore[arg-type]
            store=self.store,
            clock=StillClock(),
            installation="default",
        )

    async def look(self) -> Seen:
        return await self.observer.observe(self.key, resolve(self.document, {}), self.document)

    async def trouble(self) -> tuple[Reason, str]:
        seen = await self.look()
        assert seen.trouble is not None
        assert seen.observation is None
        return seen.trouble.reason, seen.trouble.message


def named(kind: str = "Deployment", version: str = "apps/v1") -> dict[str, Any]:
    return document("targeting", **targeting(kind, version))


def ours(**more: Any) -> dict[str, Any]:
    labels = {PLAN_LABEL: "support-chat", INSTALLATION_LABEL: "default"}
    return workload("support-chat", labels=labels, **more)


# ---- the target ----


async def test_a_target_is_observed_with_its_pods() -> None:
    live = workload(replicas=3, readyReplicas=1, availableReplicas=1, limits=GPU)
    seen = await Looking(named(), live, pods=[ready_pod("a"), pod("b", node=None)]).look()
    assert seen.trouble is None
    assert seen.observation is not None
    assert (seen.observation.current, seen.observation.ready, seen.observation.available) == (3, 1, 1)
    assert [(each.name, each.stage) for each in seen.observation.replicas] == [
        ("a", Stage.READY),
        ("b", Stage.SCHEDULING),
    ]
    assert (seen.view.gpus, seen.view.gpu_resource) == (2, "nvidia.com/gpu")


async def test_a_replica_whose_node_went_down_says_so() -> None:
    unready = pod("a", phase="Running", node="node-1")
    looking = Looking(named(), workload(replicas=1), pods=[unready])
    looking.store.put_node(node(ready="Unknown"))
    seen = await looking.look()
    assert seen.observation is not None
    (found,) = seen.observation.replicas
    assert found.trouble is not None
    assert (found.trouble.reason, found.starting) == (Reason.NODE_NOT_READY, False)


async def test_an_engine_that_does_not_exist_yet_is_no_trouble() -> None:
    seen = await Looking(document()).look()
    assert seen.trouble is None
    assert seen.observation is not None
    assert (seen.observation.current, seen.observation.ready, seen.observation.trouble) == (None, 0, None)


async def test_the_pods_of_a_custom_resource_tell_who_is_ready_and_how_many_gpus_each_takes() -> None:
    pods = [ready_pod("a"), ready_pod("b"), pod("c")]
    for each in pods:
        each["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "4"}}
    looking = Looking(named("Pool", "example.org/v1"), _pool(), pods=pods)
    looking.server.scales[target_of(looking.document)] = {
        "spec": {"replicas": 3},
        "status": {"replicas": 3, "selector": "app=vllm"},
    }
    seen = await looking.look()
    assert seen.observation is not None
    assert (seen.observation.ready, seen.observation.available) == (2, 2)
    assert (seen.view.gpus, seen.view.gpu_resource) == (4, "nvidia.com/gpu")


def _pool() -> dict[str, Any]:
    return {**workload(), "apiVersion": "example.org/v1", "kind": "Pool", "status": {}}


LISTS = {
    "a target that has settled, once in a while": (named(), workload(replicas=2, readyReplicas=2), 1),
    "a target that moves, at each look": (named(), workload(replicas=5, readyReplicas=2), 3),
    "an engine, at each look: its pods are watched": (document(), ours(replicas=2, readyReplicas=2), 3),
    "nothing where the selector is not known": (named(), {**workload(), "spec": {"template": {}}}, 0),
}


@pytest.mark.parametrize(("plan", "live", "lists"), LISTS.values(), ids=LISTS)
async def test_pods_are_listed(plan: dict[str, Any], live: dict[str, Any], lists: int) -> None:
    looking = Looking(plan, live, pods=[ready_pod("a")])
    seen = [await looking.look() for _ in range(3)]
    assert len([read for read in looking.server.reads if read.startswith("list Pod")]) == lists
    assert seen[0].observation is not None
    assert seen[2].observation is not None
    assert seen[0].observation.replicas == seen[2].observation.replicas


async def test_a_plan_that_is_forgotten_is_listed_anew() -> None:
    looking = Looking(named(), workload(replicas=2, readyReplicas=2))
    await looking.look()
    looking.observer.forget(looking.key)
    await looking.look()
    assert len([read for read in looking.server.reads if read.startswith("list Pod")]) == 2


# ---- whose target it is ----


async def test_a_target_that_an_older_plan_names_is_claimed() -> None:
    looking = Looking(named(), workload())
    looking.store.put_plan(live_plan(document("first", **targeting()), created="2026-11-01T08:00:00Z"))
    reason, message = await looking.trouble()
    assert reason is Reason.TARGET_CLAIMED
    assert message == "plan first is older and holds Deployment llm/vllm; delete one of the two plans"


async def test_a_deployment_of_somebody_else_has_the_name_of_an_engine() -> None:
    reason, message = await Looking(document(), workload("support-chat")).trouble()
    assert reason is Reason.NAME_TAKEN
    assert "annotate it with servingplan.dev/adopt-by=support-chat if its selector is" in message


def given(*containers: str, **pod: Any) -> dict[str, Any]:
    """A stranger's Deployment that is annotated for the plan and selects what an engine's would."""
    live = workload("support-chat", replicas=2)
    live["metadata"]["annotations"] = {ADOPT_ANNOTATION: "support-chat"}
    live["spec"]["selector"] = {"matchLabels": {PLAN_LABEL: "support-chat"}}
    live["spec"]["template"]["spec"] = {"containers": [{"name": name} for name in containers], **pod}
    return live


async def test_a_deployment_that_is_given_with_the_engine_s_container_alone_is_no_trouble() -> None:
    assert (await Looking(document(), given("engine")).look()).trouble is None


@pytest.mark.parametrize(
    ("live", "named"),
    [
        pytest.param(given("vllm"), "vllm", id="the engine under another name"),
        pytest.param(given("engine", "proxy", "agent"), "agent, proxy", id="containers beside it"),
        pytest.param(given("engine", initContainers=[{"name": "fetch"}]), "fetch", id="a container before it"),
    ],
)
async def test_a_deployment_whose_containers_would_go_on_beside_the_engine_is_refused(live: Any, named: str) -> None:
    reason, message = await Looking(document(), live).trouble()
    assert reason is Reason.NAME_TAKEN
    assert message == (
        f"Deployment llm/support-chat is given to this plan and is not touched: its pods would run {named} beside the "
        "plan's container engine. In the Deployment, rename the container of the engine to engine and remove what "
        "else there is; what is to stay belongs into spec.engine.podTemplate too"
    )


async def test_a_container_that_the_plan_names_too_may_stay() -> None:
    engine = {**ENGINE, "podTemplate": {"spec": {"containers": [{"name": "proxy", "image": "registry.local/proxy:1"}]}}}
    assert (await Looking(document(engine=engine), given("engine", "proxy")).look()).trouble is None


async def test_a_container_that_somebody_adds_to_an_engine_of_ours_is_no_trouble() -> None:
    live = ours(replicas=2)
    live["spec"]["template"]["spec"]["containers"] = [{"name": "engine"}, {"name": "injected"}]
    assert (await Looking(document(), live).look()).trouble is None


async def test_an_engine_s_own_deployment_is_no_trouble() -> None:
    assert (await Looking(document(), ours()).look()).trouble is None


async def test_a_missing_target_is_named_in_the_server_s_words_with_what_to_do() -> None:
    reason, message = await Looking(named()).trouble()
    assert reason is Reason.TARGET_NOT_FOUND
    assert message == (
        "read of Deployment llm/vllm: it does not exist. Create it, or correct spec.targetRef in a new plan."
    )


async def test_a_kind_without_scale_is_no_target() -> None:
    looking = Looking(named("Pool", "example.org/v1"), _pool())
    looking.server.scales[target_of(looking.document)] = KindNotServed("kind Pool has no /scale")
    reason, _ = await looking.trouble()
    assert reason is Reason.TARGET_NOT_SCALABLE


@pytest.mark.parametrize("version", ["autoscaling/v1", "autoscaling/v2"])
async def test_an_autoscaler_that_a_scaled_object_made_is_refused(version: str) -> None:
    """The object itself tells: it need not have come by in a watch."""
    live = {**autoscaler("vllm", owner="chat", maxReplicas=8), "apiVersion": version}
    reason, message = await Looking(named("HorizontalPodAutoscaler", version), live, workload()).trouble()
    assert reason is Reason.OWNED_BY_SCALED_OBJECT
    assert message.endswith("point spec.targetRef of a new plan at ScaledObject chat")


# ---- who scales it ----


async def test_an_autoscaler_of_the_target_is_named() -> None:
    looking = Looking(named(), workload())
    looking.store.put_autoscaler(autoscaler("any"))
    assert (await looking.look()).autoscaler == "HorizontalPodAutoscaler llm/any"
    looking.store.put_autoscaler(autoscaler("keda-hpa-any", owner="any"))
    looking.store.drop_autoscaler(ObjectRef.of(autoscaler("any")))
    assert (await looking.look()).autoscaler == "ScaledObject llm/any"


async def test_an_autoscaler_of_an_engine_is_named_and_one_of_something_else_is_not() -> None:
    looking = Looking(document(), ours())
    looking.store.put_autoscaler(autoscaler("other"))
    assert (await looking.look()).autoscaler is None
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "support-chat"}
    looking.store.put_autoscaler(autoscaler("any", target=target))
    assert (await looking.look()).autoscaler == "HorizontalPodAutoscaler llm/any"


async def test_in_floor_mode_the_autoscaler_is_the_target() -> None:
    live = autoscaler("vllm", minReplicas=2, maxReplicas=4)
    scaled = workload(replicas=3, readyReplicas=3)
    looking = Looking(named("HorizontalPodAutoscaler", "autoscaling/v2"), live, scaled)
    looking.store.put_autoscaler(live)
    seen = await looking.look()
    assert seen.autoscaler is None
    assert seen.observation is not None
    assert (seen.observation.current, seen.observation.maximum, seen.observation.ready) == (2, 4, 3)


# ---- GPUs ----


async def test_the_accelerators_of_all_usable_nodes_are_counted() -> None:
    looking = Looking(named(), workload(limits=GPU))
    assert (await looking.look()).accelerators is None, "before any node is known, nothing is said"
    for each in (node("a"), node("b", gpus="4"), node("c", unschedulable=True)):
        looking.store.put_node(each)
    assert (await looking.look()).accelerators == Accelerators(allocatable=12, elastic=False)
    looking.store.put_node(node("d", labels={"karpenter.sh/nodepool": "gpu"}))
    assert (await looking.look()).accelerators == Accelerators(allocatable=20, elastic=True)


async def test_a_target_whose_pods_name_no_accelerator_has_none_to_count() -> None:
    looking = Looking(named(), workload())
    looking.store.put_node(node())
    assert (await looking.look()).accelerators is None


async def test_an_engine_s_accelerators_are_known_before_it_exists() -> None:
    looking = Looking(document())
    looking.store.put_node(node())
    assert (await looking.look()).accelerators == Accelerators(allocatable=8, elastic=False)


# ---- what a plan refers to ----


def maps(*names: str) -> frozenset[Reference]:
    return frozenset(Reference(Kind.CONFIG_MAP, name) for name in names)


async def test_config_maps_are_taken_from_the_watch_or_read_and_kept_for_a_while() -> None:
    looking = Looking(document(), config_map("read", {"dates": "2026-12-24"}))
    looking.store.put_content(Kind.CONFIG_MAP, config_map("watched", {"profile.csv": "x"}))
    wanted = maps("watched", "read", "missing")
    expected = config_maps({"watched": {"profile.csv": "x"}, "read": {"dates": "2026-12-24"}, "missing": None})
    assert await looking.observer.references(looking.key, wanted) == expected
    looking.server.objects.clear()
    assert await looking.observer.references(looking.key, wanted) == expected
    assert not looking.observer.watches_all(looking.key, wanted)
    assert looking.observer.watches_all(looking.key, maps("watched"))


async def test_a_config_map_that_gets_the_label_counts_at_once() -> None:
    looking, wanted = Looking(document(), config_map("calendar", {"dates": "old"})), maps("calendar")
    assert await looking.observer.references(looking.key, wanted) == config_maps({"calendar": {"dates": "old"}})
    looking.store.put_content(Kind.CONFIG_MAP, config_map("calendar", {"dates": "new"}))
    assert await looking.observer.references(looking.key, wanted) == config_maps({"calendar": {"dates": "new"}})
