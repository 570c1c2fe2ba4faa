from servingplan.planning.target import DeletionPolicy, TargetRef
from servingplan.rendering.metadata import Owner
from servingplan.rendering.objects import render
from support.plans import a_full_engine, a_plan, an_engine

OWNER = Owner(uid="u-1", api_version="servingplan.dev/v1alpha1", kind="ServingPlan", name="support-chat")


def test_the_deployment_is_applied_last_and_never_with_replicas():
    rendered = render(a_plan(), OWNER, "default")
    assert [manifest["kind"] for manifest in rendered] == ["Service", "PodDisruptionBudget", "Deployment"]
    assert "replicas" not in rendered[-1]["spec"]


def test_all_objects_have_the_plans_name_namespace_and_label():
    for manifest in render(a_plan(target=a_full_engine()), OWNER, "default"):
        assert manifest["metadata"]["name"] == "support-chat"
        assert manifest["metadata"]["namespace"] == "llm"
        assert manifest["metadata"]["labels"]["servingplan.dev/plan"] == "support-chat"


def test_a_retained_engine_stays_reachable():
    retained = a_plan(target=an_engine(deletion_policy=DeletionPolicy.RETAIN))
    assert all("ownerReferences" not in manifest["metadata"] for manifest in render(retained, OWNER, "default"))
    assert all("ownerReferences" in manifest["metadata"] for manifest in render(a_plan(), OWNER, "default"))


def test_nothing_is_rendered_for_a_workload_that_exists_already():
    target = TargetRef(api_version="apps/v1", kind="Deployment", name="vllm")
    assert render(a_plan(target=target), OWNER, "default") == ()


def test_rendering_is_repeatable():
    plan = a_plan(target=a_full_engine())
    assert render(plan, OWNER, "default") == render(plan, OWNER, "default")
