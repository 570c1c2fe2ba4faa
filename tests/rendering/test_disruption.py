import pytest

from servingplan.planning.plan import Reserve
from servingplan.planning.target import TargetRef
from servingplan.rendering.disruption import disruption_budget
from support.plans import a_plan


@pytest.mark.parametrize(
    ("reserve", "allowed"),
    [
        pytest.param(Reserve(replicas=0, quiet=0), 1, id="a node can always be drained"),
        pytest.param(Reserve(replicas=1, quiet=1), 1, id="the reserve"),
        pytest.param(Reserve(replicas=3, quiet=2), 2, id="the smaller reserve"),
    ],
)
def test_a_drain_takes_no_more_than_the_reserve(reserve, allowed):
    assert disruption_budget(a_plan(reserve=reserve), None)["spec"]["maxUnavailable"] == allowed


def test_it_counts_every_pod_of_the_plan_and_lets_broken_ones_go():
    spec = disruption_budget(a_plan(), None)["spec"]
    assert spec["selector"] == {"matchLabels": {"servingplan.dev/plan": "support-chat"}}
    assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_a_named_target_keeps_its_own_budget():
    plan = a_plan(target=TargetRef(api_version="apps/v1", kind="Deployment", name="vllm"))
    with pytest.raises(ValueError, match="no engine"):
        disruption_budget(plan, None)
