"""The verbs for people on call, as processes of their own, against a real API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from e2e.support.cli import Cli, run
from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.kubectl import Kubectl
from support.specs import document, scheduled

CRD = Path(__file__).parent.parent / "crds" / "servingplan.dev_servingplans.yaml"
BERLIN = ZoneInfo("Europe/Berlin")

STATUS = {
    "observedGeneration": 1,
    "desiredReplicas": 5,
    "currentReplicas": 5,
    "readyReplicas": 4,
    "window": "working-day",
    "nextChange": {
        "time": "2030-01-01T19:00:00Z",
        "replicas": 2,
        "because": "window working-day ends",
        "summary": "2 at Tue 20:00 CET",
    },
    "decision": [
        {"name": "demand", "value": "18/s", "reason": "Window", "message": "window working-day asks for 18/s"}
    ],
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "BelowRequired",
            "message": "4 of 5 replicas are ready",
            "lastTransitionTime": "2026-12-01T07:00:00Z",
        },
        {
            "type": "PlanValid",
            "status": "True",
            "reason": "Resolved",
            "message": "the plan resolves",
            "lastTransitionTime": "2026-12-01T06:00:00Z",
        },
    ],
}


@pytest.fixture
def crd(cluster: LocalCluster | ExternalCluster) -> None:
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
    cluster.kubectl("wait", "--for=condition=Established", "crd/servingplans.servingplan.dev", "--timeout=30s")
    eventually(lambda: cluster.kubectl("get", "splan", "-A"), lambda _: True, what="served ServingPlans")


@pytest.fixture
def plan(crd: None, kubectl: Kubectl, namespace: str) -> str:
    """The worked example, applied by a person who does not use server-side apply."""
    kubectl("apply", "-f", "-", stdin=json.dumps(document(namespace=namespace)))
    return "support-chat"


def live(kubectl: Kubectl, name: str = "support-chat") -> Any:
    return kubectl.json("get", "splan", name, "-o", "json", "--show-managed-fields")


def overrides(kubectl: Kubectl) -> list[str]:
    return [override["name"] for override in live(kubectl)["spec"]["schedule"].get("overrides", [])]


def set_status(kubectl: Kubectl, **changes: Any) -> None:
    kubectl(
        "patch",
        "splan",
        "support-chat",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": {**STATUS, **changes}}),
    )


def test_status_shows_desired_ready_and_the_condition_that_is_not_good(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    set_status(kubectl)
    answer = cli("status")
    assert answer.code == 0, answer.err
    row = next(line for line in answer.out.splitlines() if "/support-chat" in line)
    assert row.split()[1:4] == ["working-day", "5", "4"]
    assert "2 at Tue 1 Jan 20:00 CET" in row
    assert "4 of 5 replicas are ready" in answer.out
    assert "the plan resolves" not in answer.out


def test_status_of_one_plan_shows_every_condition(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    set_status(kubectl)
    assert "the plan resolves" in cli("status", plan).out


def test_status_as_json_is_the_plans_own_status(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    set_status(kubectl)
    assert cli("status", "-o", "json").json[0]["status"]["readyReplicas"] == 4


def test_a_plan_that_no_operator_has_seen_says_so(cli: Cli, plan: str) -> None:
    answer = cli("status", plan)
    assert answer.code == 0
    assert "not seen by an operator" in answer.out


def test_next_counts_down_to_the_next_change_in_local_time(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2, minutes=10, seconds=50)
    set_status(kubectl, nextChange={**STATUS["nextChange"], "time": soon.isoformat().replace("+00:00", "Z")})
    answer = cli("next", plan)
    assert answer.code == 0, answer.err
    assert "2h 10m" in answer.out or "2h 9m" in answer.out
    assert f"{soon.astimezone(BERLIN):%H:%M}" in answer.out
    assert "5 → 2" in answer.out


def test_suspend_and_resume_leave_everything_else_and_no_trace(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    before = live(kubectl)["spec"]
    assert cli("suspend", plan).code == 0
    assert live(kubectl)["spec"] == {**before, "suspend": True}
    assert cli("resume", plan).code == 0
    after = live(kubectl)
    assert after["spec"] == before
    assert "servingplan-cli" not in {entry["manager"] for entry in after["metadata"]["managedFields"]}


def test_suspend_warns_where_another_manager_states_the_field(
    cli: Cli, plan: str, kubectl: Kubectl, namespace: str
) -> None:
    kubectl("apply", "-f", "-", stdin=json.dumps(document(namespace=namespace, suspend=False)))
    answer = cli("suspend", plan)
    assert answer.code == 0
    assert "kubectl-client-side-apply" in answer.err
    assert live(kubectl)["spec"]["suspend"] is True


def test_resume_counts_even_where_somebody_else_suspended(
    cli: Cli, crd: None, kubectl: Kubectl, namespace: str
) -> None:
    kubectl(
        "apply",
        "--server-side",
        "--field-manager=gitops",
        "-f",
        "-",
        stdin=json.dumps(document(namespace=namespace, suspend=True)),
    )
    answer = cli("resume", "support-chat")
    assert answer.code == 0
    assert live(kubectl)["spec"]["suspend"] is False


def test_an_override_is_written_beside_what_others_manage(
    cli: Cli, crd: None, kubectl: Kubectl, namespace: str
) -> None:
    launch = {"name": "launch", "start": "2030-12-01T07:00", "end": "2030-12-01T19:00", "requestsPerSecond": 40}
    ours = json.dumps(document(namespace=namespace, **scheduled(overrides=[launch])))
    kubectl("apply", "--server-side", "--field-manager=gitops", "-f", "-", stdin=ours)
    answer = cli("override", "support-chat", "--for", "2h", "--replicas", "7", "-o", "json")
    assert answer.code == 0, answer.err
    written = answer.json["override"]
    assert written["name"].startswith("oncall-")
    assert overrides(kubectl) == ["launch", written["name"]]
    # The other manager's next apply neither conflicts nor takes it away.
    kubectl("apply", "--server-side", "--field-manager=gitops", "-f", "-", stdin=ours)
    assert overrides(kubectl) == ["launch", written["name"]]


def test_an_override_says_that_the_rise_comes_a_lead_later(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    set_status(kubectl, currentReplicas=2)
    answer = cli("override", plan, "--for", "2h", "--replicas", "7", "-o", "json")
    asked, ready = (datetime.fromisoformat(answer.json[key]) for key in ("askedAt", "readyAt"))
    assert ready - asked == timedelta(minutes=12)
    assert "12m later than asked" in answer.err


def test_fewer_replicas_need_no_lead(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    set_status(kubectl, currentReplicas=5)
    answer = cli("override", plan, "--for", "2h", "--replicas", "3")
    assert answer.code == 0
    assert "later than asked" not in answer.err


def test_a_dry_run_changes_nothing(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    answer = cli("override", plan, "--for", "2h", "--replicas", "7", "--dry-run")
    assert answer.code == 0
    assert "dry run" in answer.out
    assert overrides(kubectl) == []


def test_suspending_keeps_an_override_and_resuming_too(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    cli("override", plan, "--for", "2h", "--replicas", "7")
    (name,) = overrides(kubectl)
    assert cli("suspend", plan).code == 0
    assert cli("resume", plan).code == 0
    assert overrides(kubectl) == [name]


def test_own_overrides_that_are_over_go_and_those_of_others_stay(
    cli: Cli, crd: None, kubectl: Kubectl, namespace: str
) -> None:
    plan = "support-chat"
    whole = json.dumps(document(namespace=namespace))
    kubectl("apply", "--server-side", "--field-manager=team", "-f", "-", stdin=whole)
    over = {"start": "2020-01-01T07:00", "end": "2020-01-01T09:00", "replicas": 3}
    for manager, name in (("servingplan-cli", "oncall-20200101-0700"), ("gitops", "old-launch")):
        part = {"apiVersion": "servingplan.dev/v1alpha1", "kind": "ServingPlan", "metadata": {"name": plan}}
        part["spec"] = {"schedule": {"overrides": [{"name": name, **over}]}}
        kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=json.dumps(part))
    answer = cli("override", plan, "--for", "1h", "--replicas", "6", "-o", "json")
    assert answer.code == 0, answer.err
    assert answer.json["removed"] == ["oncall-20200101-0700"]
    assert overrides(kubectl) == ["old-launch", answer.json["override"]["name"]]


def test_list_shows_who_wrote_an_override_and_remove_takes_only_ours(cli: Cli, plan: str, kubectl: Kubectl) -> None:
    part = {"apiVersion": "servingplan.dev/v1alpha1", "kind": "ServingPlan", "metadata": {"name": plan}}
    launch = {"name": "launch", "start": "2030-12-01T07:00", "end": "2030-12-01T19:00", "replicas": 6}
    part["spec"] = {"schedule": {"overrides": [launch]}}
    kubectl("apply", "--server-side", "--field-manager=gitops", "-f", "-", stdin=json.dumps(part))
    name = cli("override", plan, "--for", "1h", "--rps", "30", "-o", "json").json["override"]["name"]
    listed = {
        found["name"]: (found["state"], found["writtenBy"])
        for found in cli("override", plan, "--list", "-o", "json").json
    }
    assert listed == {"launch": ("ahead", "gitops"), name: ("active", "servingplan-cli")}
    refused = cli("override", plan, "--remove", "launch")
    assert refused.code == 2
    assert "gitops" in refused.err
    assert cli("override", plan, "--remove", name).code == 0
    assert overrides(kubectl) == ["launch"]


def test_explain_of_a_live_plan_shows_its_trail_and_decides_for_another_time(
    cli: Cli, plan: str, kubectl: Kubectl
) -> None:
    set_status(kubectl)
    assert "window working-day asks for 18/s" in cli("explain", plan).out
    at = cli("explain", plan, "--at", "2030-01-01T07:50", "-o", "json").json
    assert (at["required"], at["desired"], at["because"]) == (2, 5, "ready before window working-day")


def test_a_missing_config_map_is_a_problem_of_the_plan(cli: Cli, crd: None, kubectl: Kubectl, namespace: str) -> None:
    holidays = [{"name": "holidays", "configMap": {"name": "gone"}, "treatAs": "Base"}]
    kubectl("apply", "-f", "-", stdin=json.dumps(document(namespace=namespace, **scheduled(calendars=holidays))))
    answer = cli("explain", "support-chat", "--at", "2030-01-01")
    assert answer.code == 1
    assert "ConfigMap 'gone' does not exist" in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("status", "nobody"), "there is none"),
        (("override", "nobody", "--for", "1h", "--replicas", "3"), "there is none"),
    ],
    ids=["status", "override"],
)
def test_a_plan_that_does_not_exist_is_one_sentence(
    cli: Cli, crd: None, arguments: tuple[str, ...], words: str
) -> None:
    answer = cli(*arguments)
    assert answer.code == 3
    assert words in answer.err
    assert len(answer.err.splitlines()) == 1


def test_what_the_server_refuses_is_one_sentence(cli: Cli, plan: str, cluster: LocalCluster | ExternalCluster) -> None:
    nobody = run("status", "--kubeconfig", str(_as_nobody(cluster)), "-n", "default")
    assert nobody.code == 3
    assert "refuses" in nobody.err
    assert len(nobody.err.splitlines()) == 1


def _as_nobody(cluster: LocalCluster | ExternalCluster) -> Path:
    """A kubeconfig of an account without any rights."""
    token = cluster.kubectl("create", "token", "default", "--namespace=default").strip()
    config = cluster.kubectl.json("config", "view", "--raw", "-o", "json")
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    file = Path(cluster.kubeconfig).parent / "nobody.json"
    file.write_text(json.dumps(config))
    return file
