"""What ``emit cronjob`` prints, on a real API server: accepted as it is; its account may do its jobs and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from e2e.support.kinds import hpa
from e2e.support.workloads import gpu_deployment
from servingplan.api.yaml_reader import read_yaml
from servingplan.cli.program import program
from servingplan.localcluster.failures import KubectlFailed
from servingplan.localcluster.kubectl import Kubectl
from support.specs import document, targeting

WORKLOAD = targeting()
AUTOSCALER = targeting("HorizontalPodAutoscaler", "autoscaling/v2")

Manifests = Sequence[Mapping[str, Any]]
Emit = Callable[[Mapping[str, Any]], Manifests]


@pytest.fixture
def emit(namespace: str, kubectl: Kubectl, tmp_path: Path) -> Emit:
    """Print CronJobs for a plan of the test's namespace that has such a target, and apply them beside workloads."""

    def emitted(target: Mapping[str, Any]) -> Manifests:
        workloads = [gpu_deployment(name, replicas=1) for name in ("vllm", "other")]
        kubectl.apply(*workloads, *(hpa(name, name, minimum=1, maximum=8) for name in ("vllm", "other")))
        file = tmp_path / "plan.json"
        file.write_text(json.dumps(document(namespace=namespace, **target)))
        # Over both clock changes, so that weekly and dated jobs are among them.
        result = CliRunner().invoke(program, ["emit", "cronjob", str(file), "--weeks", "52"])
        assert result.exit_code == 0, result.output
        manifests = [body for _, body in read_yaml(result.stdout)]
        kubectl.apply(*manifests)
        return manifests

    return emitted


def commands(manifests: Manifests) -> list[list[str]]:
    """What the jobs run, after ``kubectl``."""
    pods = [m["spec"]["jobTemplate"]["spec"]["template"]["spec"] for m in manifests if m["kind"] == "CronJob"]
    return [container["command"][1:] for pod in pods for container in pod["containers"]]


def as_its_account(kubectl: Kubectl, namespace: str, manifests: Manifests) -> Kubectl:
    """kubectl with the rights that the jobs have."""
    (account,) = [m["metadata"]["name"] for m in manifests if m["kind"] == "ServiceAccount"]
    return kubectl.with_options(f"--as=system:serviceaccount:{namespace}:{account}")


def test_jobs_set_replicas_with_their_own_rights(emit, kubectl, namespace):
    manifests = emit(WORKLOAD)
    account = as_its_account(kubectl, namespace, manifests)
    kubectl("delete", "hpa", "--all")
    for command in commands(manifests):
        account(*command)
        wanted = int(command[-1].removeprefix("--replicas="))
        assert kubectl.json("get", "deployment", "vllm")["spec"]["replicas"] == wanted


def test_jobs_set_the_minimum_with_their_own_rights(emit, kubectl, namespace):
    manifests = emit(AUTOSCALER)
    account = as_its_account(kubectl, namespace, manifests)
    for command in commands(manifests):
        account(*command)
        wanted = json.loads(command[-1].removeprefix("--patch="))["spec"]["minReplicas"]
        assert kubectl.json("get", "hpa", "vllm")["spec"]["minReplicas"] == wanted


@pytest.mark.parametrize(
    "command",
    [
        ("scale", "deployments.apps/other", "--replicas=0"),
        ("patch", "deployments.apps/vllm", "--type=merge", '--patch={"metadata":{"labels":{"a":"b"}}}'),
        ("delete", "deployments.apps/vllm"),
        ("get", "secrets"),
    ],
    ids=["another workload", "another field", "deletion", "secrets"],
)
def test_the_account_may_do_nothing_else(emit, kubectl, namespace, command):
    account = as_its_account(kubectl, namespace, emit(WORKLOAD))
    with pytest.raises(KubectlFailed, match="orbidden"):
        account(*command)


def test_the_server_keeps_every_schedule_in_its_zone(emit, kubectl):
    manifests = emit(WORKLOAD)
    kept = {j["metadata"]["name"]: j["spec"] for j in kubectl.json("get", "cronjobs")["items"]}
    stated = {m["metadata"]["name"]: m["spec"] for m in manifests if m["kind"] == "CronJob"}
    assert kept.keys() == stated.keys()
    for name, spec in stated.items():
        assert all(kept[name][key] == spec[key] for key in ("schedule", "timeZone", "startingDeadlineSeconds"))
