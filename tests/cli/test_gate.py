"""A gate on variants, as the verbs that need no cluster tell of it."""

from __future__ import annotations

import json

import pytest

from servingplan.api.resolve import resolve
from servingplan.rendering.identity import identity
from support.specs import an_evaluation, document

GATED = {"acceptance": {"evaluationRef": {"name": "fp8"}}}
DIGEST = identity(resolve(document(), {}).engine).digest
VERBS = (("validate",), ("plan", "--from=2026-12-01"), ("explain", "--at=2026-12-01T12:00"))


@pytest.fixture
def written(tmp_path):
    """A file with the gated plan, and its evaluation where there is one."""

    def write(*evaluations):
        file = tmp_path / "plan.json"
        file.write_text(json.dumps({"kind": "List", "items": [document(**GATED), *evaluations]}))
        return str(file)

    return write


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(
    ("evaluations", "told"),
    [
        pytest.param((), "ModelEvaluation fp8 does not exist", id="none"),
        pytest.param((an_evaluation(verdict="Failed", variant=DIGEST),), "ModelEvaluation fp8 failed", id="failed"),
        pytest.param((an_evaluation(verdict="Passed", variant="sha256:x"),), "fp8 is about sha256:x", id="another"),
    ],
)
def test_a_variant_that_would_be_held_is_told(cli, written, verb, evaluations, told):
    result = cli(*verb, written(*evaluations))
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert f"spec.engine ({DIGEST[:19]}) is held where another engine runs" in said
    assert told in said


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_of_a_variant_that_passed_there_is_nothing_to_say(cli, written, verb):
    result = cli(*verb, written(an_evaluation(verdict="Passed", variant=DIGEST)))
    assert (result.exit_code, "is held" in result.stdout) == (0, False)


def test_validate_gives_programs_the_reason(cli, written):
    (plan,) = json.loads(cli("validate", written(), "-o", "json").stdout)["plans"]
    (warning,) = plan["warnings"]
    assert (plan["valid"], warning["path"], warning["reason"]) == (
        True,
        "spec.acceptance.evaluationRef",
        "NoEvaluation",
    )
