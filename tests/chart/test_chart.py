from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from servingplan.api.kinds import KINDS
from servingplan.clients.sources import parse_sources
from servingplan.controller.metrics import OperatorMetrics, PlanNumbers
from servingplan.controller.settings import read_settings
from support.charts import CHART, ROOT, Rejected, of_kind, render, rules, run_helm

CRDS = sorted(path.name for path in (ROOT / "crds").iterdir())
DIGEST = f"sha256:{'a' * 64}"
SECRETS = "/etc/servingplan/secrets"
SOURCES = {
    "default": {
        "url": "https://prometheus.monitoring.svc:9090",
        "caFile": f"{SECRETS}/prometheus/ca.crt",
        "bearerTokenFile": f"{SECRETS}/prometheus/token",
        "matchers": {"cluster": "berlin"},
    },
    "store": {
        "url": "http://mimir.monitoring.svc/prometheus",
        "basicAuth": {"usernameFile": f"{SECRETS}/mimir/user", "passwordFile": f"{SECRETS}/mimir/password"},
        "tenant": {"name": "X-Scope-OrgID", "value": "llm"},
        "timeout": "3s",
    },
}
EVERYTHING = {
    "alerts.enabled": True,
    "sources": SOURCES,
    "sourceSecrets": ["prometheus"],
    "metrics.serviceMonitor.enabled": True,
    "priorityClassName": "system-cluster-critical",
    "imagePullSecrets": [{"name": "pull"}],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"pool": "system"},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "everything on": EVERYTHING,
    "everything off": {
        "crds.install": False,
        "serviceAccount": {"create": False, "name": "mine"},
        "rbac.create": False,
        "admissionPolicy.enabled": False,
        "metrics.service.enabled": False,
        "podDisruptionBudget.enabled": False,
    },
    "some namespaces": {"watchNamespaces": ["llm", "search"]},
    "one replica": {"replicas": 1},
}


def operator_roles(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The roles that are bound to the operator's account."""
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for binding in of_kind(objects, "ClusterRoleBinding") + of_kind(objects, "RoleBinding")
    }
    return [item for item in objects if (item["kind"], item["metadata"]["name"]) in bound]


def container(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (deployment,) = of_kind(objects, "Deployment")
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return only


def environment(objects: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container(objects)["env"] if "value" in entry}


def test_helm_lint_finds_nothing():
    assert "0 chart(s) failed" in run_helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_every_object_is_complete_and_named_once(values):
    objects = render(values)

    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects]
    assert objects
    assert len(names) == len(set(names))
    for item in objects:
        assert item["apiVersion"]
        assert item["metadata"]["labels"]["app.kubernetes.io/instance"] == "release"


def test_two_releases_of_one_name_share_no_object_without_a_namespace():
    cluster_wide = [
        {(item["kind"], item["metadata"]["name"]) for item in render({"crds.install": False}, namespace=namespace)
         if "namespace" not in item["metadata"]}
        for namespace in ("blue", "green")
    ]  # fmt: skip

    assert all(cluster_wide)
    assert cluster_wide[0].isdisjoint(cluster_wide[1])


# ---- the CustomResourceDefinition ----


def test_the_chart_ships_the_generated_definitions():
    shipped = CHART / "files" / "crds"

    assert sorted(path.name for path in shipped.iterdir()) == CRDS
    for name in CRDS:
        assert (shipped / name).read_text() == (ROOT / "crds" / name).read_text(), "run `make crd`"


def test_helm_changes_nothing_of_a_definition_but_its_metadata():
    rendered = {found["metadata"]["name"]: found for found in of_kind(render(), "CustomResourceDefinition")}
    generated = [YAML(typ="safe", pure=True).load((ROOT / "crds" / name).read_text()) for name in CRDS]

    assert len(rendered) == len(generated)
    for found in generated:
        assert rendered[found["metadata"]["name"]]["spec"] == found["spec"]


@pytest.mark.parametrize(("keep", "policy"), [(True, "keep"), (False, None)], ids=["kept", "not kept"])
def test_uninstalling_keeps_the_plans_unless_told_otherwise(keep, policy):
    for crd in of_kind(render({"crds.keep": keep}), "CustomResourceDefinition"):
        assert (crd["metadata"].get("annotations") or {}).get("helm.sh/resource-policy") == policy


# ---- what the operator may do ----


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_no_role_has_secrets_wildcards_roles_or_a_delete(values):
    for rule in rules(*operator_roles(render(values))):
        assert rule.resource not in {
            "secrets",
            "serviceaccounts",
            "serviceaccounts/token",
            "pods/exec",
            "pods/eviction",
        }
        assert rule.group not in {"rbac.authorization.k8s.io", "admissionregistration.k8s.io"}
        assert "*" not in {rule.group, rule.resource} | rule.verbs
        assert rule.verbs.isdisjoint({"delete", "deletecollection", "impersonate", "bind", "escalate"})


def test_the_operator_never_writes_a_plan_or_evidence_but_its_status():
    granted = {
        rule.resource: rule.verbs for rule in rules(*operator_roles(render())) if rule.group == "servingplan.dev"
    }

    assert granted == {
        f"{kind.plural}{part}": verbs
        for kind in KINDS
        for part, verbs in (("", {"get", "list", "watch"}), ("/status", {"patch"}), ("/finalizers", {"update"}))
    }


def test_the_writes_of_the_operator_are_these_and_no_more():
    reads = {"get", "list", "watch"}
    writes = {
        (rule.group, rule.resource): set(rule.verbs - reads)
        for rule in rules(*of_kind(render(), "ClusterRole")[:1])
        if rule.verbs - reads
    }

    assert writes == {
        ("servingplan.dev", "servingplans/status"): {"patch"},
        ("servingplan.dev", "servingplans/finalizers"): {"update"},
        ("servingplan.dev", "capacitybenchmarks/status"): {"patch"},
        ("servingplan.dev", "capacitybenchmarks/finalizers"): {"update"},
        ("servingplan.dev", "modelevaluations/status"): {"patch"},
        ("servingplan.dev", "modelevaluations/finalizers"): {"update"},
        ("batch", "jobs"): {"create", "patch"},
        ("apps", "deployments"): {"create", "patch"},
        ("", "configmaps"): {"create", "patch"},
        ("", "pods"): {"patch"},
        ("", "services"): {"create", "patch"},
        ("policy", "poddisruptionbudgets"): {"create", "patch"},
        ("apps", "deployments/scale"): {"patch"},
        ("apps", "replicasets/scale"): {"patch"},
        ("apps", "statefulsets/scale"): {"patch"},
        ("leaderworkerset.x-k8s.io", "leaderworkersets/scale"): {"patch"},
        ("autoscaling", "horizontalpodautoscalers"): {"patch"},
        ("keda.sh", "scaledobjects"): {"patch"},
        ("events.k8s.io", "events"): {"create", "patch"},
    }


def test_without_a_ledger_the_operator_writes_no_config_map():
    values = {"ledger.days": 0}
    granted = [rule.verbs for rule in rules(*operator_roles(render(values))) if rule.resource == "configmaps"]

    assert granted == [{"get", "list", "watch"}]
    assert read_settings({}, environment(render(values))).ledger_days == 0


@pytest.mark.parametrize("values", [{}, {"installation": "blue"}], ids=["as it comes", "named"])
def test_only_the_lease_of_this_installation_can_be_changed_and_only_where_the_operator_runs(values):
    objects = render(values)
    (role,) = of_kind(objects, "Role")
    lease = read_settings({}, environment(objects)).lease_name

    assert role["metadata"]["namespace"] == "ops"
    changing = [rule for rule in rules(role) if rule.verbs != {"create"}]
    assert [(rule.resource, rule.names, rule.verbs) for rule in changing] == [("leases", (lease,), {"get", "update"})]


def test_with_namespaces_the_operator_acts_there_and_only_reads_nodes_kinds_and_names_elsewhere():
    objects = render({"watchNamespaces": ["llm", "search"]})
    bound = operator_roles(objects)

    everywhere = rules(*(role for role in bound if role["kind"] == "ClusterRole"))
    assert {(rule.resource, rule.verbs) for rule in everywhere} == {
        ("nodes", frozenset({"get", "list", "watch"})),
        ("customresourcedefinitions", frozenset({"list", "watch"})),
        ("namespaces", frozenset({"list", "watch"})),
    }
    assert [role["metadata"]["namespace"] for role in bound if role["kind"] == "Role"] == ["llm", "search", "ops"]
    bindings = of_kind(objects, "RoleBinding")
    assert [binding["metadata"]["namespace"] for binding in bindings] == ["llm", "search", "ops"]
    assert {binding["subjects"][0]["namespace"] for binding in bindings} == {"ops"}


def test_with_namespaces_and_without_cluster_reads_there_is_no_right_beyond_them():
    objects = render({"watchNamespaces": ["llm"], "rbac.clusterReads": False})

    assert not of_kind(objects, "ClusterRoleBinding")


def test_an_extra_kind_can_be_read_and_scaled_and_nothing_else():
    ray = {"apiGroup": "ray.io", "kind": "RayCluster", "resource": "rayclusters"}
    granted = {rule.resource: rule.verbs for rule in rules(*operator_roles(render({"extraScaleTargets": [ray]})))}

    assert granted["rayclusters"] == {"get", "list", "watch"}
    assert granted["rayclusters/scale"] == {"get", "patch"}
    assert "leaderworkersets" not in granted


# ---- the operator's pods ----


def test_the_pod_runs_without_privileges():
    (deployment,) = of_kind(render(), "Deployment")
    pod = deployment["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all("hostPath" not in volume for volume in pod["volumes"])


def test_the_operator_accepts_the_environment_that_the_chart_gives_it():
    values = {"installation": "blue", "watchNamespaces": ["search", "llm"], "port": 9000, "relist": "2m", "workers": 2}
    settings = read_settings({}, environment(render({**values, "log.level": "debug", "log.format": "text"})))

    assert (settings.installation, settings.namespaces, settings.health_port) == ("blue", ("llm", "search"), 9000)
    assert (settings.relist_seconds, settings.workers) == (120, 2)
    assert (settings.log_level, settings.log_format) == ("debug", "text")


def test_the_operator_is_told_the_image_of_runners_where_the_chart_has_one():
    told = environment(render({"evidence.runnerImage": "registry.local/servingplan-runner:1"}))
    assert read_settings({}, told).runner_image == "registry.local/servingplan-runner:1"
    assert read_settings({}, environment(render())).runner_image is None


def test_the_defaults_of_the_chart_are_those_of_the_operator():
    assert read_settings({}, environment(render())) == read_settings({}, {})


def test_the_operator_reads_the_sources_that_the_chart_mounts():
    objects = render({"sources": SOURCES, "sourceSecrets": ["prometheus", "mimir"]})
    (config,) = of_kind(objects, "ConfigMap")
    mounts = {mount["mountPath"]: mount for mount in container(objects)["volumeMounts"]}
    file = Path(str(read_settings({}, environment(objects)).sources_file))
    document = YAML(typ="safe", pure=True).load(config["data"][file.name])

    assert set(parse_sources(document, where="sources.yaml")) == {"default", "store"}
    assert mounts[str(file.parent)]["readOnly"] is True
    volumes = {
        volume["name"]: volume for volume in of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["volumes"]
    }
    assert volumes[mounts[str(file.parent)]["name"]]["configMap"]["name"] == config["metadata"]["name"]
    for name in ("prometheus", "mimir"):
        mount = mounts[f"{SECRETS}/{name}"]
        assert mount["readOnly"] is True
        assert volumes[mount["name"]]["secret"]["secretName"] == name


def test_without_sources_there_is_no_file_of_them():
    objects = render()

    assert not of_kind(objects, "ConfigMap")
    assert read_settings({}, environment(objects)).sources_file is None


def test_other_sources_are_other_pods():
    def annotations(url):
        (deployment,) = of_kind(render({"sources": {"default": {"url": url}}}), "Deployment")
        return deployment["spec"]["template"]["metadata"]["annotations"]

    assert annotations("http://a:9090") == annotations("http://a:9090") != annotations("http://b:9090")


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"repository": "r/servingplan"}, r"r/servingplan:\d+\.\d+\.\d+"),
        ({"repository": "r/servingplan", "tag": "next"}, "r/servingplan:next"),
        ({"repository": "r/servingplan", "tag": "next", "digest": DIGEST}, f"r/servingplan@{DIGEST}"),
    ],
    ids=["version of the chart", "tag", "digest before tag"],
)  # fmt: skip
def test_the_image_is_named_by_version_tag_or_digest(image, expected):
    assert re.fullmatch(expected, container(render({"image": image}))["image"])


@pytest.mark.parametrize(("replicas", "budgets"), [(0, 0), (1, 0), (2, 1)])
def test_a_disruption_budget_never_blocks_a_single_pod(replicas, budgets):
    assert len(of_kind(render({"replicas": replicas}), "PodDisruptionBudget")) == budgets


def test_probes_metrics_and_monitor_meet_at_the_same_port():
    objects = render({**EVERYTHING, "port": 9000})
    (monitor,) = of_kind(objects, "ServiceMonitor")
    (service,) = of_kind(objects, "Service")
    operator = container(objects)

    assert operator["ports"] == [{"name": "http", "containerPort": 9000}]
    assert {operator[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {"http"}
    assert service["spec"]["ports"] == [{"name": "http", "port": 9000, "targetPort": "http"}]
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ["http"]
    labels = service["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()


# ---- alerts ----


def alerts(**values: Any) -> list[dict[str, Any]]:
    (rule,) = of_kind(render({"alerts.enabled": True, **values}), "PrometheusRule")
    (group,) = rule["spec"]["groups"]
    return group["rules"]


def test_alerts_ask_for_metrics_and_labels_that_the_operator_has():
    metrics = OperatorMetrics(version="1")
    metrics.plan_reconciled("llm", "chat", PlanNumbers(desired=1, required=1, current=1, ready=1, reserve=0))
    metrics.conditions("llm", "chat", {"Ready": "True"})
    metrics.leading(leads=True)
    metrics.reconcile_failed("Refused")
    exposed = metrics.render().decode()

    for alert in alerts():
        (name,) = re.findall(r"servingplan_\w+", alert["expr"])
        (series,) = re.findall(rf"^{name}(?:{{.*}})? .*$", exposed, re.MULTILINE)[:1]
        used = set(re.findall(r"(\w+)=\"", alert["expr"])) | set(
            re.findall(r"\$labels\.(\w+)", str(alert["annotations"]))
        )
        assert used <= set(re.findall(r"(\w+)=\"", series)), alert["alert"]


def test_an_alert_fires_on_the_bad_status_of_its_condition():
    bad = {
        found["type"]: found["status"]
        for alert in alerts()
        if (found := re.search(r'type="(?P<type>\w+)",status="(?P<status>\w+)"', alert["expr"]))
    }

    bad_when_true = {"ScalingLimited", "Reconciling", "Stalled"}
    assert {kind for kind, status in bad.items() if status == "True"} == bad_when_true
    assert {status for kind, status in bad.items() if kind not in bad_when_true} == {"False"}


def test_each_alert_links_to_a_runbook_page_that_exists():
    for alert in alerts(**{"alerts.runbooks": "https://wiki.example/runbooks/"}):
        page = alert["annotations"]["runbook_url"].removeprefix("https://wiki.example/runbooks/")
        assert (ROOT / "docs" / "runbooks" / page).is_file(), page


def test_a_condition_can_be_left_without_an_alert():
    named = {
        alert["annotations"]["runbook_url"].rpartition("/")[2] for alert in alerts(**{"alerts.disabled": ["DrainSafe"]})
    }

    assert "DrainSafe.md" not in named
    assert "ReserveIntact.md" in named


# ---- values that are refused ----


@pytest.mark.parametrize(
    "values",
    [
        {"imagee": {"tag": "x"}},
        {"image.digest": "latest"},
        {"image.pullPolicy": "Sometimes"},
        {"replicas": -1},
        {"replicas": "two"},
        {"watchNamespaces": "llm"},
        {"watchNamespaces": ["LLM"]},
        {"installation": "Blue_1"},
        {"extraScaleTargets": [{"apiGroup": "ray.io", "resources": ["rayclusters"]}]},
        {"extraScaleTargets": [{"apiGroup": "*", "kind": "X", "resource": "*"}]},
        {"sources": {"Main": {"url": "http://prometheus:9090"}}},
        {"sources": {"main": {"url": "prometheus:9090"}}},
        {"sources": {"main": {"url": "http://prometheus:9090", "token": "secret"}}},
        {"sourceSecrets": [{"name": "prometheus"}]},
        {"log.level": "loud"},
        {"relist": "often"},
        {"ledger.days": 1000},
        {"alerts.runbooks": "docs"},
        {"serviceAccount": {"create": False}},
    ],
    ids=str,
)
def test_values_that_cannot_work_are_refused(values):
    (key,) = values
    with pytest.raises(Rejected, match=re.escape(key.split(".")[0])):
        render(values)


# ---- README ----


def test_the_readme_of_the_chart_names_every_value_with_its_default():
    from scripts.chart_readme import updated  # noqa: PLC0415

    readme = CHART / "README.md"
    assert readme.read_text() == updated(readme.read_text(), (CHART / "values.yaml").read_text()), (
        "run `make chart-readme`"
    )
