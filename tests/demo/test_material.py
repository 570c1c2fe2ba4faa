"""What a demo applies."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from servingplan.demo.material import example_text, material, volume_objects
from servingplan.errors import InputError, UsageError
from support.specs import ENGINE, WORKED_EXAMPLE, config_map, document, scheduled, targeting

EXAMPLE = Path(__file__).parents[2] / "examples" / "worked-example.yaml"


def found(tmp_path, *objects, namespace=None, idle=False):
    file = tmp_path / "plan.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in objects))
    return material(str(file), namespace=namespace, idle=idle, standard_input=io.StringIO())


def example(**options):
    return material(None, **{"namespace": None, "idle": False, "standard_input": io.StringIO(), **options})


def test_the_worked_example_in_the_package_is_that_of_the_repository():
    assert example_text() == EXAMPLE.read_text()


def test_the_worked_example_needs_nothing_before_it():
    assert example().prerequisites(2) == ()
    assert example().plan.key == "llm/support-chat"


def test_an_idle_workload_takes_the_place_of_the_engine_in_a_cluster_without_gpus():
    played = example(namespace="servingplan-demo", idle=True)
    (workload,) = played.prerequisites(2)
    assert played.document["metadata"] == {"name": "support-chat", "namespace": "servingplan-demo"}
    assert "engine" not in played.document["spec"]
    assert (workload["kind"], workload["metadata"]["name"], workload["spec"]["replicas"]) == (
        "Deployment",
        "support-chat",
        2,
    )
    assert "resources" not in workload["spec"]["template"]["spec"]["containers"][0]


def test_a_plan_of_the_users_own_keeps_its_engine_in_their_cluster(tmp_path):
    assert found(tmp_path, document(), idle=True).plan.engine is not None


def test_config_maps_of_the_file_come_with_the_plan(tmp_path):
    holidays = scheduled(calendars=[{"name": "holidays", "configMap": {"name": "days"}, "treatAs": "Base"}])
    played = found(tmp_path, document(**holidays), config_map("days", {"dates": "2026-12-25"}), namespace="demo")
    (applied,) = played.prerequisites(0)
    assert (applied["metadata"]["namespace"], applied["data"]) == ("demo", {"dates": "2026-12-25"})


def test_a_named_deployment_is_played(tmp_path):
    (workload,) = found(tmp_path, document(**targeting(name="vllm"))).prerequisites(3)
    assert (workload["metadata"]["name"], workload["spec"]["replicas"]) == ("vllm", 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(targeting(kind="StatefulSet"), "engines and Deployments only", id="stateful-set"),
        pytest.param({"engine": {**ENGINE, "accelerator": {"resource": "amd.com/gpu"}}}, "amd.com/gpu", id="gpu"),
    ],
)
def test_what_the_demo_cannot_play_is_said(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message):
        found(tmp_path, document(**changes))


def test_a_file_of_several_plans_is_refused(tmp_path):
    with pytest.raises(UsageError, match="several plans"):
        found(tmp_path, document("one"), document("two"))


def test_problems_name_the_file(tmp_path):
    with pytest.raises(InputError) as raised:
        found(tmp_path, document(**scheduled(timeZone="Europe/Atlantis")))
    assert "plan.yaml:1: spec.schedule.timeZone" in raised.value.problems[0].path


def test_volume_claims_of_the_engine_are_bound(tmp_path):
    engine = {**ENGINE, "modelVolume": {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}}
    played = found(tmp_path, document(spec=WORKED_EXAMPLE, engine=engine))
    assert played.claims() == ("models",)
    volume, claim = volume_objects("llm", played.claims())
    assert volume["spec"]["claimRef"] == {"namespace": "llm", "name": "models"}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]


def test_labels_that_the_pods_insist_on_are_known(tmp_path):
    engine = {**ENGINE, "podTemplate": {"spec": {"nodeSelector": {"gpu": "l40s"}}}}
    assert found(tmp_path, document(engine=engine)).node_labels() == {"gpu": "l40s"}
