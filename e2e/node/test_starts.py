"""Starts that fail on a real node: the conditions name the pod, the stage and the cause that the kubelet tells."""

from __future__ import annotations

import pytest

from e2e.node.plans import served
from e2e.support.operator import demo_clock
from e2e.support.plans import edit, pods, until_condition
from e2e.support.workloads import condition

FACTOR = 30
BEFORE_THE_LEAD = "2026-12-01T07:38:00+01:00"
"""The lead of a ramp at 8:00 begins ten minutes later, which are 20 s; that is long enough for a crash to repeat."""

EXIT_CODE = 3
NEVER_S = 3600


@pytest.fixture
def failing(kubectl, namespace, engine_image, run_operator):
    """Three plans whose replicas never become ready, each for a reason of its own, in the lead of their ramp."""
    kubectl.apply(
        served("absent", namespace, "localhost/nobody-has-this:1", replicas=3),
        served("crashing", namespace, engine_image, replicas=3, env={"EXIT": str(EXIT_CODE)}),
        served("hanging", namespace, engine_image, replicas=3, env={"START_S": str(NEVER_S)}),
    )
    run_operator(clock=demo_clock(BEFORE_THE_LEAD, FACTOR))


def names(kubectl, plan):
    return [pod["metadata"]["name"] for pod in pods(kubectl, plan)]


def test_what_holds_a_start_up_is_named_with_its_pod_while_the_ramp_comes_nearer(
    kubectl, failing, engine_image, namespace
):
    absent = until_condition(kubectl, "absent", "ReadyByNextRamp", "False", "ImagePull")
    crashing = until_condition(kubectl, "crashing", "ReadyByNextRamp", "False", "EngineCrash")
    hanging = until_condition(kubectl, "hanging", "ReadyByNextRamp", "False", "StartStuck")
    assert any(f"{name}: ImagePull: " in absent["message"] for name in names(kubectl, "absent"))
    assert "PullBackOff" in absent["message"] or "ErrImagePull" in absent["message"]
    assert "in stage pulling" in absent["message"]
    assert any(f"{name}: EngineCrash: " in crashing["message"] for name in names(kubectl, "crashing"))
    assert "container engine ended" in crashing["message"]
    assert f"exit code {EXIT_CODE} (Error)" in crashing["message"]
    assert any(f"{name} (engine)" in hanging["message"] for name in names(kubectl, "hanging"))
    for plan in ("absent", "crashing", "hanging"):
        ready = until_condition(kubectl, plan, "Ready", "False", "BelowRequired")
        assert ready["message"].startswith("0 of ")

    edit(kubectl, "absent", engine={"image": engine_image})
    until_condition(kubectl, "absent", "Ready", "True", "AsPlanned", timeout_s=120)
    assert condition(kubectl.json("get", "servingplan", "crashing"), "Ready")["status"] == "False"
