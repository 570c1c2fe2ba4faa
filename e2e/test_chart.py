"""The chart, installed with helm on a real API server: what its rights allow, and whom its policy refuses."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.failures import KubectlFailed
from servingplan.localcluster.kubectl import Kubectl
from support.charts import CHART, Rejected, run_helm
from support.specs import document, targeting

GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"

PLANS = {"apiGroups": ["servingplan.dev"], "resources": ["servingplans"], "verbs": ["*"]}
CREATE_DEPLOYMENTS = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]}
SCALE_VLLM = {"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["vllm"], "verbs": ["patch"]}
PATCH_HPAS = {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["patch"]}

HPA = targeting("HorizontalPodAutoscaler", "autoscaling/v2", "vllm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The chart, installed for one namespace of plans; the operator's pods are left out."""

    cluster: LocalCluster | ExternalCluster
    name: str
    home: str
    plans: str

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{self.home}:{self.name}-servingplan"

    def helm(self, verb: str, *arguments: str) -> str:
        return run_helm(
            verb, self.name, *arguments, f"--namespace={self.home}", f"--kubeconfig={self.cluster.kubeconfig}"
        )

    def as_user(self, user: str) -> Kubectl:
        return self.cluster.kubectl.with_options(f"--namespace={self.plans}", f"--as={user}")

    def may(self, verb: str, resource: str, *, namespace: str) -> bool:
        """Whether the operator's account may do this, as the API server's authorizer says."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": self.account, "resourceAttributes": _attributes(verb, resource, namespace)},
        }
        answer = self.cluster.kubectl.json("create", "-f", "-", stdin=json.dumps(review))
        return bool(answer["status"]["allowed"])


def _attributes(verb: str, resource: str, namespace: str) -> dict[str, str]:
    """``deployments.apps/scale`` and ``leases.coordination.k8s.io#name`` as a SubjectAccessReview asks for them."""
    path, _, name = resource.partition("#")
    kind, _, subresource = path.partition("/")
    plural, _, group = kind.partition(".")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "name": name}
    return {"namespace": namespace, **{key: value for key, value in asked.items() if value}}


@pytest.fixture(scope="module")
def release(cluster: LocalCluster | ExternalCluster) -> Iterator[Release]:
    end = secrets.token_hex(4)
    installed = Release(cluster=cluster, name="chart", home=f"operator-{end}", plans=f"plans-{end}")
    cluster.kubectl("create", "namespace", installed.home)
    cluster.kubectl("create", "namespace", installed.plans)
    # Other tests may have applied the definition already.
    values = ("--set=replicas=0", f"--set-json=watchNamespaces={json.dumps([installed.plans])}")
    installed.helm("install", str(CHART), "--take-ownership", *values)
    cluster.kubectl("wait", "--for=condition=Established", "crd/servingplans.servingplan.dev")
    _wait_until_the_policy_acts(installed)
    yield installed
    installed.helm("uninstall")
    for namespace in (installed.home, installed.plans):
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def user(release: Release) -> Iterator[Callable[..., Kubectl]]:
    """Makes a user with these rights in the plans' namespace; returns their kubectl."""
    names: list[str] = []

    def with_rights(*rules: dict[str, Any]) -> Kubectl:
        name = f"user-{secrets.token_hex(4)}"
        names.append(name)
        _grant(release, name, [PLANS, *rules])
        return release.as_user(name)

    yield with_rights
    kubectl = release.cluster.kubectl
    for name in names:
        kubectl("delete", f"role/{name}", f"rolebinding/{name}", f"--namespace={release.plans}")
    kubectl("delete", "servingplans", "--all", f"--namespace={release.plans}")


def _grant(release: Release, name: str, rules: list[dict[str, Any]]) -> None:
    api = "rbac.authorization.k8s.io/v1"
    metadata = {"name": name, "namespace": release.plans}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
    release.cluster.kubectl.apply(
        {"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": api, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference, "subjects": [subject]},
    )


def _wait_until_the_policy_acts(release: Release) -> None:
    _grant(release, "prober", [PLANS])
    prober = release.as_user("prober")

    def refusal() -> str:
        try:
            prober("create", "--dry-run=server", "-f", "-", stdin=_plan(release, "probe"))
        except KubectlFailed as refused:
            return refused.stderr
        return ""

    # Where another installation has the same policy for all namespaces, either of the two may be the one that answers.
    eventually(refusal, lambda said: "ValidatingAdmissionPolicy" in said, what="a refusal by the admission policy")


def _plan(release: Release, name: str = "chat", **overrides: Any) -> str:
    return json.dumps(document(name, release.plans, **overrides))


def _create(kubectl: Kubectl, plan: str) -> str:
    return kubectl("create", "-f", "-", stdin=plan)


# ---- the operator's rights ----


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("watch", "servingplans.servingplan.dev"),
        ("patch", "servingplans.servingplan.dev/status"),
        ("create", "deployments.apps"),
        ("patch", "deployments.apps/scale"),
        ("patch", "services"),
        ("patch", "poddisruptionbudgets.policy"),
        ("patch", "horizontalpodautoscalers.autoscaling"),
        ("list", "pods"),
        ("patch", "pods"),
        ("create", "events.events.k8s.io"),
    ],
)
def test_the_operator_may_do_its_work_where_the_plans_are_and_nowhere_else(release, verb, resource):
    assert release.may(verb, resource, namespace=release.plans)
    assert not release.may(verb, resource, namespace="kube-system")


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "secrets"),
        ("list", "secrets"),
        ("patch", "servingplans.servingplan.dev"),
        ("delete", "deployments.apps"),
        ("delete", "pods"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("create", "serviceaccounts/token"),
        ("create", "rolebindings.rbac.authorization.k8s.io"),
    ],
)
def test_the_operator_may_not_do_what_is_not_its_work(release, verb, resource):
    assert not release.may(verb, resource, namespace=release.plans)


def test_the_operator_keeps_its_lease_at_home_only(release):
    assert release.may("create", "leases.coordination.k8s.io", namespace=release.home)
    assert release.may("update", "leases.coordination.k8s.io#servingplan-operator", namespace=release.home)
    assert not release.may("update", "leases.coordination.k8s.io#other", namespace=release.home)
    assert not release.may("create", "leases.coordination.k8s.io", namespace=release.plans)


# ---- who may write plans ----


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({}, "you may not create deployments.apps in namespace"),
        (targeting(), "you may not patch deployments/scale in namespace"),
        (HPA, "you may not patch horizontalpodautoscalers in namespace"),
    ],
    ids=["engine", "target", "autoscaler"],
)
def test_who_may_not_do_it_by_hand_is_refused_with_what_to_ask_for(release, user, overrides, says):
    with pytest.raises(KubectlFailed) as refused:
        _create(user(), _plan(release, **overrides))

    assert f"{says} {release.plans}" in refused.value.stderr
    assert "ask whoever runs the cluster" in refused.value.stderr


@pytest.mark.parametrize(
    ("overrides", "right"),
    [({}, CREATE_DEPLOYMENTS), (targeting(), SCALE_VLLM), (HPA, PATCH_HPAS)],
    ids=["engine", "target", "autoscaler"],
)
def test_who_may_do_it_by_hand_may_do_it_by_a_plan(release, user, overrides, right):
    assert "created" in _create(user(right), _plan(release, **overrides))


def test_the_right_to_scale_one_workload_does_not_open_another(release, user):
    with pytest.raises(KubectlFailed, match="this ServingPlan scales Deployment/database"):
        _create(user(SCALE_VLLM), _plan(release, **targeting(name="database")))


def test_a_kind_that_is_not_scaled_here_is_refused_with_the_kinds_that_are(release, user):
    with pytest.raises(KubectlFailed) as refused:
        _create(user(CREATE_DEPLOYMENTS), _plan(release, **targeting("RayCluster", "ray.io/v1")))

    assert "apps/Deployment" in refused.value.stderr
    assert "extraScaleTargets" in refused.value.stderr


def test_a_changed_spec_needs_the_right_and_changed_labels_do_not(release, user):
    _create(user(CREATE_DEPLOYMENTS), _plan(release))
    other = user()

    assert "labeled" in other("label", "servingplan/chat", "team=search")
    assert "annotated" in other("annotate", "servingplan/chat", "note=seen")
    with pytest.raises(KubectlFailed, match=r"you may not create deployments\.apps"):
        other("patch", "servingplan/chat", "--type=merge", '--patch={"spec":{"suspend":true}}')


def test_an_unchanged_spec_that_is_applied_again_needs_no_right(release, user):
    allowed = user(CREATE_DEPLOYMENTS)
    allowed("apply", "--server-side", "-f", "-", stdin=_plan(release))

    assert "applied" in user()("apply", "--server-side", "-f", "-", stdin=_plan(release))


def test_who_may_only_write_status_does_so_without_being_judged(release, user):
    _create(user(CREATE_DEPLOYMENTS), _plan(release))
    status = {"status": {"observedGeneration": 1}}
    reporter = user({"apiGroups": ["servingplan.dev"], "resources": ["servingplans/status"], "verbs": ["get", "patch"]})

    assert "patched" in reporter(
        "patch", "servingplan/chat", "--subresource=status", "--type=merge", f"--patch={json.dumps(status)}"
    )


def test_the_garbage_collector_takes_its_finalizer_off(release, user):
    _create(user(CREATE_DEPLOYMENTS), _plan(release))
    add = {"metadata": {"finalizers": ["foregroundDeletion"]}}
    remove = {"metadata": {"finalizers": None}}
    release.as_user(GARBAGE_COLLECTOR)("patch", "servingplan/chat", "--type=merge", f"--patch={json.dumps(add)}")

    assert "patched" in release.as_user(GARBAGE_COLLECTOR)(
        "patch", "servingplan/chat", "--type=merge", f"--patch={json.dumps(remove)}"
    )


def test_deleting_a_plan_needs_no_right_beyond_plans(release, user):
    _create(user(CREATE_DEPLOYMENTS), _plan(release))

    assert "deleted" in user()("delete", "servingplan/chat", "--cascade=foreground")


# ---- upgrade and uninstall ----


def test_an_upgrade_brings_new_values_and_keeps_the_plans(release, user):
    _create(user(CREATE_DEPLOYMENTS), _plan(release))
    ray = [{"apiGroup": "ray.io", "kind": "RayCluster", "resource": "rayclusters"}]
    release.helm("upgrade", str(CHART), "--reuse-values", f"--set-json=extraScaleTargets={json.dumps(ray)}")

    assert release.may("patch", "rayclusters.ray.io/scale", namespace=release.plans)
    assert release.cluster.kubectl("get", "servingplan/chat", f"--namespace={release.plans}", "-o", "name")


def test_uninstalling_leaves_plans_and_definition_and_takes_the_rights(cluster, release, user):
    _create(user(CREATE_DEPLOYMENTS), _plan(release))
    home = f"second-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", home)
    second = Release(cluster=cluster, name="second", home=home, plans=release.plans)
    second.helm("install", str(CHART), "--take-ownership", "--set=replicas=0", "--set=installation=second")
    assert second.may("create", "deployments.apps", namespace=release.plans)

    second.helm("uninstall")

    assert not second.may("create", "deployments.apps", namespace=release.plans)
    assert cluster.kubectl("get", "servingplan/chat", f"--namespace={release.plans}", "-o", "name")
    cluster.kubectl("delete", "namespace", home, "--wait=false")


def test_values_that_cannot_work_are_refused_before_anything_is_installed(release):
    with pytest.raises(Rejected, match="replicas"):
        release.helm("upgrade", str(CHART), "--set=replicas=-1")
