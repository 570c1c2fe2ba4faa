"""The CRD on a real API server: it accepts what resolves, and refuses what breaks a rule with the rule's own words."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from servingplan.api import rules
from servingplan.api.crd import all_crds_yaml
from servingplan.api.documents import read_documents
from servingplan.api.kinds import KINDS
from servingplan.api.resolve import resolve
from servingplan.api.validation import as_kept
from servingplan.api.yaml_reader import read_yaml
from servingplan.localcluster.failures import KubectlFailed
from servingplan.localcluster.kubectl import Kubectl
from support import evidence
from support.scalars import SCALARS
from support.specs import ENGINE, config_maps, document, targeting
from support.violations import VIOLATIONS, Violation

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))

UNTYPED = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: untypeds.test.servingplan.dev}
spec:
  group: test.servingplan.dev
  scope: Namespaced
  names: {plural: untypeds, singular: untyped, kind: Untyped, listKind: UntypedList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture(scope="module", autouse=True)
def _definition(cluster: Any) -> None:
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=all_crds_yaml())
    names = [f"crd/{kind.plural}.servingplan.dev" for kind in KINDS]
    cluster.kubectl("wait", "--for=condition=Established", *names)


@pytest.fixture(scope="module")
def untyped(cluster: Any) -> Iterator[None]:
    """A kind without a schema: what kubectl sends arrives as it is."""
    cluster.kubectl("apply", "-f", "-", stdin=UNTYPED)
    cluster.kubectl("wait", "--for=condition=Established", "crd/untypeds.test.servingplan.dev")
    yield
    cluster.kubectl("delete", "crd", "untypeds.test.servingplan.dev")


def in_namespace(plan: Mapping[str, Any], namespace: str) -> str:
    return json.dumps({**plan, "metadata": {**plan["metadata"], "namespace": namespace}})


def refused(kubectl: Kubectl, text: str, *verb: str) -> str:
    with pytest.raises(KubectlFailed) as failure:
        kubectl(*(verb or ("create", "--dry-run=server")), "-f", "-", stdin=text)
    return str(failure.value)


@pytest.mark.parametrize(
    "violation",
    [*VIOLATIONS, *evidence.VIOLATIONS, *evidence.EVALUATION_VIOLATIONS],
    ids=lambda violation: violation.id,
)
def test_a_broken_rule_is_refused_with_its_message_at_its_path(kubectl, namespace, violation: Violation):
    said = refused(kubectl, in_namespace(violation.plan, namespace))
    assert violation.rule.message in said
    assert violation.path.startswith("metadata.") or f"{violation.path}: Invalid value" in said


def test_a_target_cannot_become_another(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=in_namespace(document(**targeting()), namespace))
    said = refused(kubectl, in_namespace(document(**targeting(name="other")), namespace), "apply")
    assert rules.TARGET_REF_STAYS.message in said


@pytest.mark.parametrize(
    ("before", "after"),
    [(document(), document(**targeting())), (document(**targeting()), document())],
    ids=["engine to targetRef", "targetRef to engine"],
)
def test_engine_and_target_cannot_become_each_other(kubectl, namespace, before, after):
    kubectl("create", "-f", "-", stdin=in_namespace(before, namespace))
    said = refused(kubectl, in_namespace(after, namespace), "replace")
    assert rules.TARGET_FORM_STAYS.message in said


def test_a_field_of_a_later_version_is_refused(kubectl, namespace):
    assert 'unknown field "spec.overflow"' in refused(kubectl, in_namespace(document(overflow={}), namespace))


def test_the_server_sets_the_defaults_that_the_command_line_uses(kubectl, namespace):
    plan = document(
        engine={"image": "vllm:1", "model": "/m", "modelVolume": {"persistentVolumeClaim": {"claimName": "c"}}},
        reserve=None,
        scaleDown=None,
        suspend=None,
        leadTime={"declared": "10m"},
        bounds={"maxReplicas": 8, "minReplicas": None},
        workload=None,
    )
    kubectl("create", "-f", "-", stdin=in_namespace(plan, namespace))
    stored = kubectl.json("get", "splan", "support-chat")
    assert stored["spec"] == as_kept(plan)["spec"]
    assert resolve(stored, {}).bounds == resolve(plan, {}).bounds


def test_what_a_pod_template_holds_is_kept_as_it_is(kubectl, namespace):
    template = {"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}], "unheardOf": {"a": [1, "x"]}}}
    plan = document(engine={**ENGINE, "podTemplate": template})
    kubectl("create", "-f", "-", stdin=in_namespace(plan, namespace))
    assert kubectl.json("get", "splan", "support-chat")["spec"]["engine"]["podTemplate"] == template


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_accepted_and_means_the_same_to_server_and_command_line(kubectl, namespace, file: Path):
    text = file.read_text(encoding="utf-8").replace("namespace: llm", f"namespace: {namespace}")
    kubectl("apply", "-f", "-", stdin=text)
    documents = read_documents(["-"], standard_input=io.StringIO(text))
    maps = {entry.name: entry.body["data"] for entry in documents if entry.body["kind"] == "ConfigMap"}
    (plan,) = [entry.body for entry in documents if entry.body["kind"] == "ServingPlan"]
    stored = kubectl.json("get", "splan", plan["metadata"]["name"])
    stored_maps = {name: kubectl.json("get", "configmap", name)["data"] for name in maps}
    assert stored["spec"] == as_kept(plan)["spec"]
    assert resolve(stored, config_maps(stored_maps)) == resolve(plan, config_maps(maps))


UNQUOTED = """
apiVersion: servingplan.dev/v1alpha1
kind: ServingPlan
metadata: {name: unquoted}
spec:
  suspend: yes
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  capacity: {requestsPerSecond: 5.0}
  schedule:
    timeZone: Europe/Berlin
    base: {requestsPerSecond: .5}
    windows:
    - {name: day, days: [Mon], start: 08:00, end: 20:00, requestsPerSecond: 1e1}
    overrides:
    - {name: launch, start: 2026-12-01T07:00, end: 2026-12-01T19:00, replicas: 0x3}
  leadTime: {declared: 10m, margin: 20%, max: ~}
  bounds: {maxReplicas: 010}
"""


def test_unquoted_times_dates_and_numbers_mean_the_same_to_kubectl_and_the_command_line(kubectl):
    kubectl("create", "-f", "-", stdin=UNQUOTED)
    stored = kubectl.json("get", "splan", "unquoted")
    ((_, read),) = read_yaml(UNQUOTED)
    assert stored["spec"] == as_kept(read)["spec"]
    assert stored["spec"]["schedule"]["windows"][0]["end"] == "20:00"
    assert stored["spec"]["bounds"]["maxReplicas"] == 8


@pytest.mark.usefixtures("untyped")
def test_every_way_to_write_a_scalar_arrives_as_the_command_line_reads_it(kubectl):
    lines = [f"  k{index}: {written}" for index, (written, _) in enumerate(SCALARS)]
    text = "\n".join(["apiVersion: test.servingplan.dev/v1", "kind: Untyped", "metadata: {name: s}", "data:", *lines])
    kubectl("create", "-f", "-", stdin=text)
    arrived = kubectl.json("get", "untyped", "s")["data"]
    ((_, read),) = read_yaml(text)
    assert arrived == read["data"] == {f"k{index}": value for index, (_, value) in enumerate(SCALARS)}


def test_the_columns_are_those_of_the_reference(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=in_namespace(document(), namespace))
    header = kubectl("get", "splan", "-o", "wide").splitlines()[0].split()
    assert header == [
        "NAME",
        "WINDOW",
        "DESIRED",
        "READY",
        "REPLICAS",
        "NEXT",
        "READY",
        "REASON",
        "AGE",
        "FLOOR",
        "RESERVE",
        "LEAD",
    ]
    assert "NAME" in kubectl("get", "servingplan")


def test_explain_describes_the_fields(kubectl):
    assert "busiest five minutes" in kubectl("explain", "splan.spec.schedule.windows.requestsPerSecond")
