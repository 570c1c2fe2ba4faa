"""Starts of the real vLLM with compilation: the first fills the cache that the plan gives it, the next finds it there,
and the lead learns from both.
"""

from __future__ import annotations

from e2e.support.plans import edit, until_ready, until_status
from e2e.vllm.containers import always, engine, plan, pod_template
from e2e.vllm.test_falls import START_S, tell
from servingplan.planning.units import parse_duration


def compiled(caches):
    """The libraries that vLLM's compiler made, and when."""
    return {library: library.stat().st_mtime_ns for library in caches.rglob("*.so")}


def test_a_cold_and_a_warm_start_teach_the_lead(kubectl, namespace, run_operator, environment, vllm_image, tmp_path):
    caches = tmp_path / "caches"
    caches.mkdir()
    template = pod_template(environment)
    template["spec"]["volumes"].append({"name": "cache", "hostPath": {"path": str(caches), "type": "Directory"}})
    compiling = engine(environment, vllm_image, podTemplate=template, extraArgs=["--distributed-executor-backend=uni"])
    kubectl.apply(plan("compiled", namespace, compiling, replicas=1, feedback=None))
    run_operator()
    until_ready(kubectl, 1, "compiled", timeout_s=START_S)
    cold = compiled(caches)
    edit(kubectl, "compiled", schedule=always(2))
    until_ready(kubectl, 2, "compiled", timeout_s=START_S)

    assert cold
    assert compiled(caches) == cold, "the second start compiled anew"
    found = until_status(
        kubectl, "compiled", lambda s: s["leadTime"].get("learned", {}).get("rises") == 2, what="two rises learned"
    )["leadTime"]
    tell("lead", found["effective"], found["learned"], *found["samples"])
    stages = [[parse_duration(sample[stage]) for stage in sample if stage != "decided"] for sample in found["samples"]]
    assert parse_duration(found["learned"]["p95"]) >= max(max(each) for each in stages)
    (folder,) = caches.glob("*/*/*")
    assert "vllm" in {each.name for each in folder.iterdir()}
