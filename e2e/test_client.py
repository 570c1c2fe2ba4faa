"""The operator's Kubernetes client against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import kopf
import pytest

from servingplan.clients.answers import ApplyConflict, KindNotServed
from servingplan.clients.connection import Connection
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.events import EVENTS_API, EventLimits, EventRecorder
from servingplan.controller.login import login_with
from servingplan.errors import Conflict, NotFound, Refused

MANAGER = "servingplan-e2e"

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %(plural)s.e2e.servingplan.dev}
spec:
  group: e2e.servingplan.dev
  scope: Namespaced
  names: {plural: %(plural)s, singular: widget, kind: %(kind)s}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {replicas: {type: integer}}}
            status: {type: object, properties: {replicas: {type: integer}}}
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
"""


class Requests:
    """Every attempt that was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []

    def __call__(self, *, verb: str, resource: str, code: str, seconds: float) -> None:
        self.sent.append((verb, resource, code))


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def connection(cluster, requests: Requests) -> AsyncIterator[Connection]:
    made = Connection(load_endpoint(kubeconfig=Path(cluster.kubeconfig)), observe=requests)
    yield made
    await made.close()


@pytest.fixture
def client(connection: Connection) -> KubernetesClient:
    return KubernetesClient(session=connection.session, server=connection.server, field_manager=MANAGER)


def deployment(namespace: str, name: str = "chat", **spec: object) -> dict:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "engine", "image": "vllm:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def config_map(namespace: str, name: str, **data: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"e2e": "yes"}},
        "data": data,
    }


def version(found: dict) -> str:
    return found["metadata"]["resourceVersion"]


async def test_an_applied_object_comes_back_live_and_owned_by_the_installation(client, namespace) -> None:
    applied = await client.apply(deployment(namespace, replicas=0))
    assert applied["metadata"]["uid"]
    assert {entry["manager"] for entry in applied["metadata"]["managedFields"]} == {MANAGER}
    assert (await client.get(ObjectRef.of(applied)))["spec"]["replicas"] == 0


async def scale_now(client: KubernetesClient, ref: ObjectRef, replicas: int, *, force: bool = False) -> dict:
    """Scale against the newest state: the Deployment's controller writes its status all the while."""
    async with asyncio.timeout(60):
        while True:
            seen = version(await client.get_scale(ref))
            try:
                return await client.apply_scale(ref, replicas=replicas, resource_version=seen, force=force)
            except ApplyConflict:
                raise
            except Conflict:
                continue


async def owners(client: KubernetesClient, ref: ObjectRef) -> list[tuple[str, str, bool]]:
    """Who owns replicas: manager, subresource, and whether the server says since when."""
    return [
        (entry["manager"], entry.get("subresource", ""), "time" in entry)
        for entry in (await client.get(ref))["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    ]


async def test_replicas_of_another_manager_are_a_conflict_that_names_it_until_forced(
    client, kubectl, namespace
) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace)))
    await scale_now(client, ref, 1, force=True)
    kubectl("scale", "deployment/chat", "--replicas=2")
    with pytest.raises(ApplyConflict, match=f"scale to 3 of Deployment {namespace}/chat") as conflict:
        await scale_now(client, ref, 3)
    assert conflict.value.managers == ("kubectl",)
    assert conflict.value.fields == (".spec.replicas",)
    scaled = await scale_now(client, ref, 3, force=True)
    assert (scaled["kind"], scaled["spec"]["replicas"]) == ("Scale", 3)


async def test_what_is_written_through_scale_has_an_owner_but_no_time(client, kubectl, namespace) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace)))
    await scale_now(client, ref, 2, force=True)
    assert await owners(client, ref) == [(MANAGER, "scale", False)]
    kubectl("scale", "deployment/chat", "--replicas=3")
    assert await owners(client, ref) == [("kubectl", "scale", False)]


async def test_a_first_scale_to_the_value_that_nobody_owns_shares_it_with_whoever_was_before(client, namespace) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace)))
    await scale_now(client, ref, 1, force=True)
    assert sorted(await owners(client, ref)) == [("before-first-apply", "scale", False), (MANAGER, "scale", False)]


async def test_a_scale_to_zero_by_another_leaves_no_owner_at_all(client, kubectl, namespace) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace)))
    await scale_now(client, ref, 2, force=True)
    kubectl("scale", "deployment/chat", "--replicas=0")
    assert await owners(client, ref) == []
    assert (await scale_now(client, ref, 3))["spec"]["replicas"] == 3


async def test_replicas_that_nobody_owns_are_a_conflict_with_whoever_was_before(client, kubectl, namespace) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace)))
    kubectl("scale", "deployment/chat", "--replicas=2")
    assert await owners(client, ref) == []
    with pytest.raises(ApplyConflict) as conflict:
        await scale_now(client, ref, 3)
    assert conflict.value.managers == ("before-first-apply",)


async def test_a_scale_against_an_old_state_is_a_conflict_even_when_forced(client, kubectl, namespace) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace)))
    seen = version(await client.get_scale(ref))
    kubectl("scale", "deployment/chat", "--replicas=2")
    with pytest.raises(Conflict) as conflict:
        await client.apply_scale(ref, replicas=5, resource_version=seen, force=True)
    assert not isinstance(conflict.value, ApplyConflict)
    assert (await client.get_scale(ref))["spec"]["replicas"] == 2


async def served_by_a_new_client(connection: Connection, kind: str) -> KubernetesClient:
    """A client that has not been told yet that the kind is missing, as soon as the server serves it."""
    async with asyncio.timeout(60):
        while True:
            client = KubernetesClient(session=connection.session, server=connection.server, field_manager=MANAGER)
            try:
                assert (await client.resolve("e2e.servingplan.dev/v1", kind)).has_scale
            except KindNotServed:
                await asyncio.sleep(0.1)
            else:
                return client


async def test_a_custom_resource_is_scaled_by_merge_patch_against_a_known_state(
    client, connection, cluster, namespace, tmp_path
) -> None:
    plural, kind = f"widgets{namespace[-8:]}", f"Widget{namespace[-8:]}"
    definition = tmp_path / "crd.yaml"
    definition.write_text(WIDGETS % {"plural": plural, "kind": kind})
    with pytest.raises(KindNotServed, match=kind):
        await client.resolve("e2e.servingplan.dev/v1", kind)
    cluster.kubectl("apply", "-f", str(definition))
    try:
        fresh = await served_by_a_new_client(connection, kind)
        ref = ObjectRef(api_version="e2e.servingplan.dev/v1", kind=kind, name="w", namespace=namespace)
        await fresh.apply(
            {
                "apiVersion": ref.api_version,
                "kind": kind,
                "metadata": {"name": "w", "namespace": namespace},
                "spec": {"replicas": 1},
            }
        )
        seen = version(await fresh.get_scale(ref))
        scaled = await fresh.merge_patch_scale(ref, replicas=4, resource_version=seen)
        assert scaled["spec"]["replicas"] == 4
        with pytest.raises(Conflict):
            await fresh.merge_patch_scale(ref, replicas=5, resource_version=seen)
        status = {**await fresh.get(ref), "status": {"replicas": 4}}
        assert (await fresh.apply_status(status))["status"] == {"replicas": 4}
    finally:
        cluster.kubectl("delete", "-f", str(definition), "--wait=false")


async def test_status_is_written_by_the_status_path_alone(client, namespace) -> None:
    live = await client.apply(deployment(namespace, replicas=0))
    written = await client.apply_status(
        {**deployment(namespace, replicas=9), "status": {"observedGeneration": live["metadata"]["generation"]}}
    )
    assert written["spec"]["replicas"] == 0
    by_us = [entry for entry in written["metadata"]["managedFields"] if entry["manager"] == MANAGER]
    assert {entry.get("subresource", "") for entry in by_us} == {"", "status"}


async def test_a_dry_run_changes_nothing(client, namespace) -> None:
    await client.apply(config_map(namespace, "a"), dry_run=True)
    with pytest.raises(NotFound):
        await client.get(ObjectRef.of(config_map(namespace, "a")))


async def test_a_list_is_complete_over_many_pages_and_selects_by_label(client, namespace, requests: Requests) -> None:
    for index in range(7):
        await client.apply(config_map(namespace, f"c{index}"))
    requests.sent.clear()
    listed = await client.list("v1", "ConfigMap", namespace, label_selector="e2e=yes", page_size=3)
    assert [item["metadata"]["name"] for item in listed.items] == [f"c{index}" for index in range(7)]
    assert {(item["apiVersion"], item["kind"]) for item in listed.items} == {("v1", "ConfigMap")}
    assert int(listed.resource_version) > 0
    assert requests.sent == [("list", "configmaps", "200")] * 3


async def test_create_replace_and_patch_refuse_what_changed_in_between(client, namespace) -> None:
    created = await client.create(config_map(namespace, "a", key="1"))
    with pytest.raises(Conflict, match=f"create of ConfigMap {namespace}/a"):
        await client.create(config_map(namespace, "a"))
    replaced = await client.replace({**created, "data": {"key": "2"}})
    with pytest.raises(Conflict):
        await client.replace({**created, "data": {"key": "3"}})
    ref = ObjectRef.of(created)
    with pytest.raises(Conflict):
        await client.merge_patch(ref, {"data": {"key": "3"}}, resource_version=version(created))
    patched = await client.merge_patch(ref, {"data": {"key": "3"}}, resource_version=version(replaced))
    assert patched["data"] == {"key": "3"}


async def test_only_the_very_object_is_deleted(client, namespace) -> None:
    first = await client.create(config_map(namespace, "a"))
    ref = ObjectRef.of(first)
    with pytest.raises(Conflict):
        await client.delete(ref, uid="00000000-0000-0000-0000-000000000000")
    await client.delete(ref, uid=first["metadata"]["uid"])
    with pytest.raises(NotFound, match="it does not exist"):
        await client.delete(ref)


async def test_what_the_server_refuses_is_said_in_its_words(client, namespace) -> None:
    with pytest.raises(Refused, match=r"spec\.replicas.*must be greater than or equal to 0"):
        await client.apply(deployment(namespace, replicas=-1))


async def test_a_kind_without_scale_and_a_kind_that_is_not_served_are_told_apart(client, namespace) -> None:
    with pytest.raises(KindNotServed, match="has no /scale"):
        await client.get_scale(ObjectRef(api_version="v1", kind="ConfigMap", name="a", namespace=namespace))
    with pytest.raises(KindNotServed, match="check the spelling"):
        await client.get(ObjectRef(api_version="apps/v9", kind="Deployment", name="a", namespace=namespace))


async def test_a_missing_kind_is_looked_up_once_for_many_who_ask(client, requests: Requests) -> None:
    for _ in range(5):
        with pytest.raises(KindNotServed):
            await client.resolve("keda.example.org/v1", "ScaledThing")
    assert requests.sent == [("get", "discovery", "404")]


async def test_the_account_that_is_used_is_the_kubeconfigs_and_refusals_name_what_is_missing(
    cluster, namespace
) -> None:
    limited = Connection(load_endpoint(kubeconfig=Path(cluster.kubeconfig_for(namespace, "default"))))
    client = KubernetesClient(session=limited.session, server=limited.server, field_manager=MANAGER)
    with pytest.raises(Refused, match=r"cannot list resource.*check RBAC"):
        await client.list("v1", "Secret", namespace)
    await limited.close()


async def test_repeated_events_are_one_series_in_kubectl(client, kubectl, namespace) -> None:
    plan = await client.create(config_map(namespace, "chat"))
    recorder = EventRecorder(
        client=client, controller="servingplan.dev/operator", instance="e2e-0", limits=EventLimits(series_every_s=0)
    )
    for _ in range(4):
        recorder.record(plan, reason="Scaled", note="5 replicas for working-day", action="Scale")
        await recorder.flush()
    recorder.record(plan, reason="Scaled", note="2 replicas for base", action="Scale")
    await recorder.flush()
    events = (await client.list(EVENTS_API, "Event", namespace)).items
    ours = {event["note"]: event.get("series", {}).get("count", 1) for event in events if event["reason"] == "Scaled"}
    assert ours == {"5 replicas for working-day": 4, "2 replicas for base": 1}
    shown = kubectl("events", "--for", "configmap/chat")
    assert "5 replicas for working-day" in shown


async def test_of_two_writers_on_one_state_at_most_one_succeeds(client, namespace) -> None:
    ref = ObjectRef.of(await client.apply(deployment(namespace, replicas=0)))

    async def race() -> list[str]:
        seen = version(await client.get_scale(ref))
        writes = (client.apply_scale(ref, replicas=n, resource_version=seen, force=True) for n in (1, 2))
        results = await asyncio.gather(*writes, return_exceptions=True)
        return sorted(type(result).__name__ for result in results)

    async with asyncio.timeout(60):
        # The Deployment's controller writes its status meanwhile: then both are too late.
        while (result := await race()) != ["Conflict", "dict"]:
            assert result == ["Conflict", "Conflict"]


async def test_kopf_watches_over_the_same_connections_and_writes_nothing(
    client, connection, namespace, requests
) -> None:
    registry, stop = kopf.OperatorRegistry(), asyncio.Event()
    seen = {"listed": asyncio.Event(), "watched": asyncio.Event()}
    kopf.on.login(registry=registry)(login_with(connection))

    @kopf.on.event("v1", "configmaps", registry=registry)
    async def look(name: str, **_: object) -> None:
        if name in seen:
            seen[name].set()

    await client.create(config_map(namespace, "listed"))
    requests.sent.clear()
    watching = asyncio.create_task(
        kopf.operator(registry=registry, standalone=True, namespaces=[namespace], stop_flag=stop)
    )
    async with asyncio.timeout(60):
        await seen["listed"].wait()
        await client.create(config_map(namespace, "watched"))
        await seen["watched"].wait()
    stop.set()
    await watching
    assert ("watch", "configmaps", "200") in requests.sent
    assert {verb for verb, _, _ in requests.sent} - {"create"} <= {"get", "list", "watch"}
    assert [sent[:2] for sent in requests.sent if sent[0] == "create"] == [("create", "configmaps")]
    await client.get(ObjectRef.of(config_map(namespace, "watched")))
