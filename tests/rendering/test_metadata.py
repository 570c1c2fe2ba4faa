from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from servingplan.planning.target import DeletionPolicy
from servingplan.rendering.metadata import (
    Owner,
    field_manager,
    object_metadata,
    sealed,
    selector,
    serving_selector,
    stable_hash,
)
from support.plans import a_plan, an_engine

OWNER = Owner(uid="u-1", api_version="servingplan.dev/v1alpha1", kind="ServingPlan", name="support-chat")


@pytest.mark.parametrize(
    ("installation", "manager"),
    [
        pytest.param("default", "servingplan", id="the default installation has the plain name"),
        pytest.param("blue", "servingplan-blue", id="any other is told apart by its name"),
    ],
)
def test_two_installations_write_under_two_names(installation, manager):
    assert field_manager(installation) == manager


def test_a_deleted_plan_takes_its_objects_with_it():
    (reference,) = object_metadata(a_plan(), OWNER, "default")["ownerReferences"]
    assert reference == {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "ServingPlan",
        "name": "support-chat",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_a_retained_engine_is_tied_to_its_plan_by_labels_alone():
    plan = a_plan(target=an_engine(deletion_policy=DeletionPolicy.RETAIN))
    metadata = object_metadata(plan, OWNER, "default")
    assert "ownerReferences" not in metadata
    assert metadata["labels"]["servingplan.dev/plan"] == "support-chat"


def test_without_a_cluster_there_is_no_owner_to_refer_to():
    assert "ownerReferences" not in object_metadata(a_plan(), None, "default")


def test_a_draining_pod_leaves_the_service_and_stays_in_its_replica_set():
    draining = {"servingplan.dev/plan": "support-chat"}
    assert selector("support-chat").items() <= draining.items()
    assert not serving_selector("support-chat").items() <= draining.items()


def test_the_hash_of_an_object_changes_with_what_is_taken_out_of_it():
    whole = {"metadata": {"name": "a"}, "spec": {"x": 1, "y": 2}}
    less = {"metadata": {"name": "a"}, "spec": {"x": 1}}
    key = "servingplan.dev/rendered"
    assert sealed(whole)["metadata"]["annotations"][key] != sealed(less)["metadata"]["annotations"][key]


def test_sealing_keeps_other_annotations_and_its_input():
    manifest: dict[str, Any] = {"metadata": {"annotations": {"a": "b"}}}
    assert sealed(manifest)["metadata"]["annotations"]["a"] == "b"
    assert manifest == {"metadata": {"annotations": {"a": "b"}}}


def test_equal_content_has_one_hash_whatever_holds_it_and_in_whatever_order():
    ordered: Mapping[str, Any] = {"a": [1, 2], "b": {"c": None}}
    other = MappingProxyType({"b": MappingProxyType({"c": None}), "a": (1, 2)})
    assert stable_hash(ordered) == stable_hash(other)
    assert stable_hash(ordered) != stable_hash({"a": [2, 1], "b": {"c": None}})


def test_the_hash_is_the_same_in_every_release():
    # A hash that moves with the release would make every engine start anew on an upgrade.
    assert stable_hash({"model": "a", "tensor": 2}) == "3421db75dd193f59"
