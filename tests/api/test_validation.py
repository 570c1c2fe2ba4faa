"""Form: types, limits, unknown fields and duplicates, as the API server sees them but in our words."""

from __future__ import annotations

import pytest

from servingplan.api.validation import as_kept, form_problems
from support.specs import ENGINE, WORKING_DAY, document, scheduled


def problems_of(plan):
    return {problem.path: (problem.reason, problem.message) for problem in form_problems(as_kept(plan))}


@pytest.mark.parametrize(
    ("plan", "path", "reason", "says"),
    [
        pytest.param(
            document(bounds=None),
            "spec.bounds",
            "Required",
            "state it",
            id="a required field",
        ),
        pytest.param(
            document(batch={}),
            "spec.batch",
            "UnknownField",
            "remove it",
            id="a field of a later version",
        ),
        pytest.param(
            document(leadtime={}),
            "spec.leadtime",
            "UnknownField",
            "did you mean leadTime?",
            id="a spelling",
        ),
        pytest.param(
            document(suspend="yes"),
            "spec.suspend",
            "WrongType",
            "true or false",
            id="text for a flag",
        ),
        pytest.param(
            document(capacity={"requestsPerSecond": "5"}),
            "spec.capacity.requestsPerSecond",
            "WrongType",
            "a number",
            id="text for a number",
        ),
        pytest.param(
            document(bounds={"maxReplicas": 2.5}),
            "spec.bounds.maxReplicas",
            "WrongType",
            "a whole number",
            id="half a replica",
        ),
        pytest.param(
            document(scaleDown={"step": True}),
            "spec.scaleDown.step",
            "WrongType",
            "a whole number",
            id="a flag for a number",
        ),
        pytest.param(
            document(**scheduled(base={"requestsPerSecond": float("nan")})),
            "spec.schedule.base.requestsPerSecond",
            "WrongType",
            "finite",
            id="not a number",
        ),
        pytest.param(
            document(**scheduled(base={"requestsPerSecond": -1})),
            "spec.schedule.base.requestsPerSecond",
            "OutOfRange",
            "at least 0",
            id="a negative rate",
        ),
        pytest.param(
            document(**scheduled(base={"requestsPerSecond": 1000001})),
            "spec.schedule.base.requestsPerSecond",
            "OutOfRange",
            "at most 1e+06",
            id="a rate beyond all",
        ),
        pytest.param(
            document(engine={**ENGINE, "gpuMemoryUtilization": 0}),
            "spec.engine.gpuMemoryUtilization",
            "OutOfRange",
            "above 0",
            id="no memory",
        ),
        pytest.param(
            document(leadTime={"declared": "ten minutes"}),
            "spec.leadTime.declared",
            "InvalidValue",
            "1h30m",
            id="a duration in words",
        ),
        pytest.param(
            document(leadTime={"declared": "10m", "margin": "0.2"}),
            "spec.leadTime.margin",
            "InvalidValue",
            "20%",
            id="a share as a number",
        ),
        pytest.param(
            document(**scheduled(windows=[{**WORKING_DAY, "days": ["Monday"]}])),
            "spec.schedule.windows[0].days[0]",
            "NotSupported",
            "'Mon'",
            id="a weekday spelled out",
        ),
        pytest.param(
            document(**scheduled(windows=[{**WORKING_DAY, "days": []}])),
            "spec.schedule.windows[0].days",
            "TooFew",
            "at least 1",
            id="no weekday",
        ),
        pytest.param(
            document(**scheduled(windows=[{**WORKING_DAY, "days": ["Mon", "Mon"]}])),
            "spec.schedule.windows[0].days[1]",
            "Duplicate",
            "already",
            id="a weekday twice",
        ),
        pytest.param(
            document(**scheduled(windows=[WORKING_DAY, WORKING_DAY])),
            "spec.schedule.windows[1].name",
            "Duplicate",
            "'working-day'",
            id="a window's name twice",
        ),
        pytest.param(
            document(capacity={"perPoolSize": [{"replicas": 1, "requestsPerSecond": 5}] * 2}),
            "spec.capacity.perPoolSize[1].replicas",
            "Duplicate",
            "already",
            id="a pool size twice",
        ),
        pytest.param(
            document(engine={**ENGINE, "image": ""}),
            "spec.engine.image",
            "TooShort",
            "empty",
            id="an empty image",
        ),
        pytest.param(
            document(engine=[]),
            "spec.engine",
            "WrongType",
            "object",
            id="a list for an object",
        ),
        pytest.param(
            {**document(), "kind": "Deployment"},
            "kind",
            "WrongKind",
            "ServingPlan",
            id="another kind",
        ),
        pytest.param(
            {**document(), "apiVersion": "servingplan.dev/v1"},
            "apiVersion",
            "WrongKind",
            "v1alpha1",
            id="another version",
        ),
        pytest.param(
            {**document(), "metadata": {}},
            "metadata.name",
            "Required",
            "name",
            id="no name",
        ),
    ],
)
def test_a_malformed_value_is_one_problem_that_says_what_to_do(plan, path, reason, says):
    problems = problems_of(plan)
    assert set(problems) == {path}
    assert problems[path][0] == reason
    assert says in problems[path][1]


def test_an_override_lies_in_this_century():
    override = {"name": "x", "start": "0001-01-01T00:00", "end": "2026-12-01T19:00", "replicas": 1}
    assert set(problems_of(document(**scheduled(overrides=[override])))) == {"spec.schedule.overrides[0].start"}


def test_defaults_are_those_of_the_schema():
    kept = as_kept(document(reserve=None, scaleDown=None, bounds={"maxReplicas": 8}))["spec"]
    assert kept["reserve"] == {"replicas": 1}
    assert kept["scaleDown"] == {"step": 1, "every": "2m", "stabilization": "10m"}
    assert kept["bounds"] == {"minReplicas": 1, "maxReplicas": 8}
    assert kept["engine"]["parallelism"] == {"tensor": 1, "pipeline": 1, "data": 1, "expert": False}


def test_null_is_left_out_and_gets_the_default():
    plan = document()
    plan["spec"]["reserve"] = {"replicas": None}
    plan["spec"]["gpusPerReplica"] = None
    kept = as_kept(plan)["spec"]
    assert kept["reserve"] == {"replicas": 1}
    assert "gpusPerReplica" not in kept


def test_a_whole_float_is_an_integer():
    assert problems_of(document(bounds={"maxReplicas": 8.0})) == {}


def test_validation_leaves_the_document_as_it_was():
    plan, untouched = document(), document()
    form_problems(as_kept(plan))
    assert plan == untouched


def test_status_is_the_operators_own_and_not_judged():
    assert problems_of({**document(), "status": {"whatever": 1}}) == {}
