"""A gate on variants on a real control plane: what is held, what lets one through, and that nothing is taken back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.support.eventually import eventually
from e2e.support.operator import Operator, demo_clock
from e2e.support.plans import deployments, edit, plan, status, until_condition, until_ready
from e2e.support.runners import end_runner, runner
from servingplan.controller.clock import AcceleratedClock
from servingplan.localcluster.audit import Write
from servingplan.localcluster.kubectl import Kubectl
from support.evidence import RUNNER, an_evaluation_report, evaluation_document
from support.specs import ENGINE, document

NIGHT = "2026-12-01T01:00:00+01:00"
GATED = {"reserve": {"replicas": 0}, "acceptance": {"evaluationRef": {"name": "gptq"}}}
NAME = "gptq"


@pytest.fixture
def held(local_cluster):
    """Pods of Jobs run until a test ends them."""
    local_cluster.hold_jobs()
    return local_cluster


@pytest.fixture
def operate(run_operator, clock) -> Callable[[], Operator]:
    """Starts an operator that has an image for runners."""
    return lambda: run_operator(f"--runner-image={RUNNER}", clock=clock)


@pytest.fixture
def written(local_cluster, installation, namespace) -> Callable[[datetime], list[Write]]:
    """The operator's writes in the test's namespace since an instant."""
    user = f"system:serviceaccount:{installation.home}:operator-servingplan"
    return lambda since: [
        write for write in local_cluster.audit.entries(since=since, user=user) if write.namespace == namespace
    ]


@pytest.fixture
def clock() -> AcceleratedClock:
    """The plan's clock, for every process of a test."""
    return demo_clock(NIGHT, 30)


@pytest.fixture
def restart(kubectl, operate, written) -> Callable[[Operator], Operator]:
    """Stops an operator and starts another one, which must look at both plans and write nothing."""

    def again(operator: Operator) -> Operator:
        until_counts_are_told(kubectl, "support-chat", "other")
        assert operator.stop() == 0
        since = datetime.now(UTC)
        operator = operate()
        eventually(lambda: looked_at(operator), {"support-chat", "other"}.__eq__, what="a look at both plans")
        assert [write for write in written(since) if write.resource != "leases"] == []
        return operator

    return again


def looked_at(operator: Operator) -> set[str]:
    """The plans that a process has reconciled: each shows its conditions from then on."""
    lines = re.findall(r'_plan_condition\{([^}]*)status="True",type="PlanValid"\}', operator.get("/metrics"))
    return {found[1] for line in lines if (found := re.search(r'name="([^"]*)"', line))}


def until_counts_are_told(kubectl: Kubectl, *names: str) -> None:
    """Waits until status has the counts of the Deployments, which it may hold back for half a minute of the clock."""
    fields = ("readyReplicas", "availableReplicas")

    def told(name: str) -> bool:
        found, live = status(kubectl, name), deployments(kubectl)[name]["status"]
        return all(found.get(field, 0) == live.get(field, 0) for field in fields)

    eventually(lambda: [name for name in names if not told(name)], lambda late: not late, what="counts in status")


def evaluate(kubectl: Kubectl, verdict: str, reason: str) -> None:
    """Evaluates the variant that the plan states now: a trial runs beside the plan, and its runner hands this back."""
    kubectl("delete", "modelevaluation", NAME, "--ignore-not-found", "--cascade=foreground")
    kubectl.apply(evaluation_document(NAME, None))
    report(kubectl, verdict, reason)


def report(kubectl: Kubectl, verdict: str, reason: str) -> None:
    """What the runner of the evaluation hands back when it is done."""
    pod = runner(kubectl, NAME)
    assert {"--baseline=http://support-chat:8000", f"--variant=http://{NAME}-trial:8000"} <= set(
        pod["spec"]["containers"][0]["args"]
    )
    end_runner(kubectl, pod, an_evaluation_report(verdict, reason))


def template(kubectl: Kubectl, name: str = "support-chat") -> Any:
    return deployments(kubectl)[name]["spec"]["template"]


def arguments(kubectl: Kubectl) -> list[str]:
    found: list[str] = template(kubectl)["spec"]["containers"][0]["args"]
    return found


def until_rolled_out(kubectl: Kubectl) -> None:
    def done(found: Mapping[str, Any]) -> bool:
        counts = {found["status"].get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas")}
        seen: bool = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        return seen and counts == {1}

    eventually(lambda: deployments(kubectl)["support-chat"], done, what="the rolled out variant")
    eventually(
        lambda: {c["type"] for c in status(kubectl)["conditions"]},
        lambda types: "Reconciling" not in types,
        what="a plan that rolls no more",
    )


def test_a_variant_waits_for_its_evaluation_and_nothing_takes_back_what_runs(
    held, gpu_nodes, kubectl, namespace, operate, restart
):
    gpu_nodes(3)
    kubectl.apply(document(namespace=namespace, **GATED), document("other", namespace, **GATED))
    operator = operate()
    until_ready(kubectl, 1, "support-chat", "other")
    until_condition(kubectl, "support-chat", "VariantAccepted", "True", "VariantRuns")
    until_condition(kubectl, "other", "VariantAccepted", "True", "VariantRuns")
    first, untouched = template(kubectl), deployments(kubectl)["other"]["metadata"]["generation"]

    edit(kubectl, engine={"quantization": "gptq"})
    held = until_condition(kubectl, "support-chat", "VariantAccepted", "False", "NoEvaluation")
    assert "--quantization gptq, running with fp8" in held["message"]
    operator = restart(operator)

    for verdict, why in (("Failed", "Worse"), ("Inconclusive", "TooFewItems")):
        evaluate(kubectl, verdict, why)
        until_condition(kubectl, "support-chat", "VariantAccepted", "False", f"Evaluation{verdict}")
        until_condition(kubectl, "support-chat", "EngineUpToDate", "False", f"Evaluation{verdict}")
        operator = restart(operator)
    assert template(kubectl) == first
    conditions = {c["type"]: c["status"] for c in status(kubectl)["conditions"]}
    assert conditions["Ready"] == "True"
    assert not {"Reconciling", "Stalled"} & set(conditions)

    evaluate(kubectl, "Passed", "NotWorse")
    until_condition(kubectl, "support-chat", "VariantAccepted", "True", "EvaluationPassed")
    eventually(lambda: arguments(kubectl), lambda found: "--quantization=gptq" in found, what="the accepted variant")
    until_rolled_out(kubectl)
    operator = restart(operator)

    accepted = template(kubectl)
    kubectl("delete", "modelevaluation", NAME)
    until_condition(kubectl, "support-chat", "VariantAccepted", "True", "VariantRuns")
    operator = restart(operator)
    assert template(kubectl) == accepted

    edit(kubectl, engine={"maxNumSeqs": 64})
    until_condition(kubectl, "support-chat", "VariantAccepted", "False", "NoEvaluation")
    assert template(kubectl) == accepted

    edit(kubectl, engine={"quantization": ENGINE["quantization"], "maxNumSeqs": ENGINE["maxNumSeqs"]})
    eventually(lambda: template(kubectl), first.__eq__, what="the way back, which waits for nothing")
    until_rolled_out(kubectl)
    assert deployments(kubectl)["other"]["metadata"]["generation"] == untouched
    until_condition(kubectl, "other", "VariantAccepted", "True", "VariantRuns")


def test_an_evaluation_for_another_variant_lets_nothing_through(held, gpu_nodes, kubectl, namespace, operate):
    gpu_nodes(2)
    kubectl.apply(document(namespace=namespace, **GATED))
    operate()
    until_condition(kubectl, "support-chat", "VariantAccepted", "True", "VariantRuns")
    edit(kubectl, engine={"quantization": "gptq"})
    until_condition(kubectl, "support-chat", "VariantAccepted", "False", "NoEvaluation")
    kubectl.apply(evaluation_document(NAME, None))
    runner(kubectl, NAME)
    until_condition(kubectl, "support-chat", "VariantAccepted", "False", "EvaluationRunning")
    measured = status(kubectl)["variant"]["stated"]
    edit(kubectl, engine={"maxNumSeqs": 64})
    eventually(lambda: status(kubectl)["variant"]["stated"], measured.__ne__, what="another variant")
    report(kubectl, "Passed", "NotWorse")
    until_condition(kubectl, "support-chat", "VariantAccepted", "False", "OtherVariantEvaluated")
    found = kubectl.json("get", "modelevaluation", NAME)["status"]
    assert (found["verdict"], found["variant"]["digest"]) == ("Passed", measured)
    assert found["baseline"]["digest"] == status(kubectl)["variant"]["running"]
    assert "--quantization=fp8" in arguments(kubectl)


def test_the_command_line_shows_what_is_held_and_why(cluster, gpu_nodes, kubectl, namespace, operate):
    gpu_nodes(1)
    kubectl.apply(document(namespace=namespace, **GATED))
    operate()
    until_condition(kubectl, "support-chat", "VariantAccepted", "True", "VariantRuns")
    edit(kubectl, engine={"quantization": "gptq"})
    until_condition(kubectl, "support-chat", "VariantAccepted", "False", "NoEvaluation")
    for verb in (["status"], ["status", "support-chat"], ["explain", "support-chat"]):
        said = cli(*verb, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}")
        assert "VariantAccepted False" in said
        assert "ModelEvaluation gptq does not exist" in " ".join(said.split())
    kept = {"apiVersion": "servingplan.dev/v1alpha1", "kind": "ServingPlan", **plan(kubectl)}
    assert "is held where another engine runs" in " ".join(cli("validate", "-", stdin=json.dumps(kept)).split())


def cli(*arguments: str, stdin: str = "") -> str:
    return subprocess.run(
        [sys.executable, "-m", "servingplan.cli", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        input=stdin,
        env={**os.environ, "COLUMNS": "160"},
    ).stdout
