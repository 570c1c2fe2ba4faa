import pytest

from servingplan.planning.target import TargetRef
from servingplan.rendering.deployment import deployment
from servingplan.rendering.service import service
from support.plans import a_plan, an_engine


def test_the_service_selects_the_pods_that_serve():
    assert service(a_plan(), None)["spec"]["selector"] == {
        "servingplan.dev/plan": "support-chat",
        "servingplan.dev/serving": "true",
    }


def test_its_labels_are_on_every_new_pod():
    plan = a_plan()
    pod_labels = deployment(plan, None, None)["spec"]["template"]["metadata"]["labels"]
    assert service(plan, None)["spec"]["selector"].items() <= pod_labels.items()


def test_it_answers_at_the_engines_port_and_finds_each_pods_own_by_name():
    (port,) = service(a_plan(target=an_engine(port=9000)), None)["spec"]["ports"]
    assert port == {"name": "http", "port": 9000, "protocol": "TCP", "targetPort": "http"}


def test_a_named_target_keeps_its_own_service():
    plan = a_plan(target=TargetRef(api_version="apps/v1", kind="Deployment", name="vllm"))
    with pytest.raises(ValueError, match="no engine"):
        service(plan, None)
