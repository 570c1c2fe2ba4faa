"""Which engine runs, read back from Deployments as the operator writes them."""

import copy
from dataclasses import replace

import pytest

from servingplan.api.resolve import resolve
from servingplan.api.target import engine_read_back
from servingplan.planning.acceptance import Evaluation, Gate, Missing, Verdict
from servingplan.planning.reasons import Reason
from servingplan.rendering.deployment import deployment
from servingplan.rendering.identity import identity
from servingplan.rendering.running import remember_variant
from servingplan.rendering.variant import acted_on, variant_of
from support.plans import a_plan
from support.specs import ENGINE, document

ENGINE_OF, STATED, VARIANT, BEFORE = (
    f"servingplan.dev/{name}" for name in ("engine", "variant-spec", "variant", "variant-before")
)
EDIT = {**ENGINE, "quantization": "gptq", "parallelism": {"tensor": 2}}


def a_gated_plan(engine=ENGINE, found=Missing.ABSENT):
    return replace(resolve(document(engine=engine), {}), acceptance=Gate(evaluation="fp8", found=found))


def running(engine=ENGINE, **annotations):
    """The Deployment of an engine, with annotations that somebody changed; None takes one away."""
    live = copy.deepcopy(deployment(a_gated_plan(engine), None, None))
    live["metadata"]["annotations"] |= annotations
    live["metadata"]["annotations"] = {k: v for k, v in live["metadata"]["annotations"].items() if v is not None}
    return live


def judged(plan, live):
    return variant_of(plan, live, engine_read_back)


def reason(plan, live):
    return judged(plan, live).acceptance.reason


def test_without_a_gate_there_is_nothing_to_judge():
    assert judged(a_plan(), running()) is None


def test_a_held_plan_goes_on_with_the_engine_that_runs():
    plan = a_gated_plan(EDIT)
    found = judged(plan, running())
    goes_on = acted_on(plan, found)
    assert found.held
    assert goes_on.engine == a_gated_plan().engine
    assert (plan.gpus_per_replica, goes_on.gpus_per_replica) == (2, 1)


def test_what_is_rendered_for_a_held_plan_is_what_runs():
    plan = a_gated_plan(EDIT)
    live = running()
    assert deployment(acted_on(plan, judged(plan, live)), None, None) == live


def test_a_plan_that_is_not_held_is_acted_on_as_it_is():
    passed = Evaluation(variant=identity(a_gated_plan(EDIT).engine).digest, verdict=Verdict.PASSED)
    plan = a_gated_plan(EDIT, passed)
    assert acted_on(plan, judged(plan, running())) is plan


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"drainTimeout": "9m"}, id="drain timeout"),
        pytest.param({"startTimeout": "9m"}, id="start timeout"),
        pytest.param({"servedModelName": "chat"}, id="served name"),
        pytest.param({"resources": {"requests": {"cpu": "8"}}}, id="resources"),
    ],
)
def test_an_edit_that_changes_no_answer_is_not_held(edit):
    found = judged(a_gated_plan({**ENGINE, **edit}), running())
    assert (found.held, found.acceptance.reason) == (False, Reason.VARIANT_RUNS)


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(None, Reason.FIRST_VARIANT, id="no Deployment"),
        pytest.param({"metadata": {}}, Reason.FIRST_VARIANT, id="somebody else's Deployment that is handed over"),
        pytest.param(running(), Reason.NO_EVALUATION, id="another engine's"),
        pytest.param(running(EDIT), Reason.VARIANT_RUNS, id="this engine's"),
        pytest.param(
            running(EDIT, **{STATED: None, VARIANT: None}),
            Reason.VARIANT_RUNS,
            id="this engine's, by an operator before",
        ),
        pytest.param(
            running(**{BEFORE: identity(a_gated_plan(EDIT).engine).digest}), Reason.VARIANT_RAN_BEFORE, id="ran before"
        ),
    ],
)
def test_the_deployment_tells_what_runs(live, expected):
    assert reason(a_gated_plan(EDIT), live) is expected


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param(None, id="written by an operator before"),
        pytest.param("", id="empty"),
        pytest.param("{", id="no JSON"),
        pytest.param('{"image": "vllm:1"}', id="no engine"),
        pytest.param('{"image": "vllm:1", "model": "/m", "extraArgs": ["--port=1"]}', id="an engine that is refused"),
        pytest.param('{"image": "vllm:1", "model": "/m"}', id="not the engine of the template"),
    ],
)
def test_what_cannot_be_told_is_held_and_left_as_it_is(stated):
    plan = a_gated_plan(EDIT)
    found = judged(plan, running(**{STATED: stated}))
    assert (found.held, found.unreadable, found.digests[1]) == (True, True, "")
    assert acted_on(plan, found) is plan


def test_an_engine_is_read_back_as_it_was_stated():
    full = {
        **EDIT,
        "gpuMemoryUtilization": 0.9,
        "extraArgs": ["--enable-auto-tool-choice"],
        "apiKeySecretRef": {"name": "k", "key": "token"},
        "cacheVolume": {"persistentVolumeClaim": {"claimName": "cache"}},
        "deletionPolicy": "Retain",
        "podTemplate": {"spec": {"nodeSelector": {"gpu": "l40s"}}},
    }
    engine = a_gated_plan(full).engine
    assert engine_read_back(engine.stated) == engine


def test_what_is_stated_says_nothing_that_is_left_at_its_default():
    short = a_gated_plan({"image": "vllm:1", "model": "/m", "port": 8000, "drainTimeout": "5m"}).engine
    assert short.stated == '{"image": "vllm:1", "model": "/m"}'


def test_the_variant_that_ran_before_is_remembered_from_the_change_on():
    old, new = running(), running(EDIT)
    changed = remember_variant(new, old)
    before = old["metadata"]["annotations"][VARIANT]
    assert changed["metadata"]["annotations"][BEFORE] == before
    assert remember_variant(new, changed)["metadata"]["annotations"][BEFORE] == before
    assert BEFORE not in remember_variant(old, old)["metadata"]["annotations"]


def test_an_edit_outside_the_variant_does_not_forget_what_ran_before():
    live = running(**{BEFORE: "sha256:before"})
    edited = deployment(a_gated_plan({**ENGINE, "drainTimeout": "9m"}), None, None)
    assert remember_variant(edited, live)["metadata"]["annotations"][BEFORE] == "sha256:before"
